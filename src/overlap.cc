#include "src/overlap.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

namespace attn {
namespace {

struct Dimension {
  std::int64_t size, stride;  // stride in bytes, positive
};

// Memory that a view touches, as bytes from `start`: its dimensions of more than one element, strides ascending. An
// array, not a vector: every call comes through here, and must not allocate.
struct Footprint {
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;  // behind the last byte; equal to start where the view has no element
  std::int64_t run = 0;    // bytes that lie side by side
  std::array<Dimension, 4> dimension_memory;
  int dimension_count = 0;

  std::span<const Dimension> dimensions() const { return {dimension_memory.data(), std::size_t(dimension_count)}; }

  // Keeps strides ascending.
  void insert(const Dimension& dimension) {
    int place = dimension_count++;
    for (; place > 0 && dimension_memory[place - 1].stride > dimension.stride; --place)
      dimension_memory[place] = dimension_memory[place - 1];
    dimension_memory[place] = dimension;
  }
};

Footprint footprint_of(const View4& view) {
  Footprint print;
  print.run = static_cast<std::int64_t>(size_of(view.dtype));
  print.start = reinterpret_cast<std::uintptr_t>(view.data);
  std::int64_t extent = print.run;
  for (int d = 0; d < 4; ++d) {
    if (view.shape[d] == 0) return {print.start, print.start};
    if (view.shape[d] == 1 || view.strides[d] == 0) continue;
    std::int64_t stride = view.strides[d] * static_cast<std::int64_t>(size_of(view.dtype));
    if (stride < 0) {
      print.start += static_cast<std::uintptr_t>(stride * (view.shape[d] - 1));
      stride = -stride;
    }
    extent += stride * (view.shape[d] - 1);
    print.insert({view.shape[d], stride});
  }
  print.end = print.start + static_cast<std::uintptr_t>(extent);
  return print;
}

// Enough for no overlap: each dimension steps over all that the smaller ones reach.
bool dimensions_nest(const Footprint& print) {
  std::int64_t reach = print.run;
  for (const Dimension& d : print.dimensions()) {
    if (d.stride < reach) return false;
    reach += d.stride * (d.size - 1);
  }
  return true;
}

using Run = std::pair<std::uintptr_t, std::uintptr_t>;

// The runs of bytes in ascending order; false where there are too many to list.
bool list_runs(const Footprint& print, std::vector<Run>* runs) {
  constexpr std::int64_t kMostRuns = 1 << 22;
  std::span<const Dimension> dimensions = print.dimensions();
  std::int64_t run = print.run;
  while (!dimensions.empty() && dimensions.front().stride == run) {
    run *= dimensions.front().size;
    dimensions = dimensions.subspan(1);
  }
  std::int64_t count = 1;
  for (const Dimension& d : dimensions) {
    if (d.size > kMostRuns / count) return false;
    count *= d.size;
  }
  runs->assign(1, {print.start, print.start + static_cast<std::uintptr_t>(run)});
  for (const Dimension& d : dimensions) {
    const std::size_t inner = runs->size();
    for (std::int64_t i = 1; i < d.size; ++i) {
      const auto step = static_cast<std::uintptr_t>(i * d.stride);
      for (std::size_t r = 0; r < inner; ++r) runs->push_back({(*runs)[r].first + step, (*runs)[r].second + step});
    }
  }
  std::sort(runs->begin(), runs->end());
  return true;
}

bool runs_meet(const std::vector<Run>& runs) {
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].first < runs[i - 1].second) return true;
  }
  return false;
}

// From the first byte to behind the last; empty where the view has no element.
Run bytes_of(const View4& view) {
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  auto first = reinterpret_cast<std::uintptr_t>(view.data), end = first + static_cast<std::uintptr_t>(size);
  for (int d = 0; d < 4; ++d) {
    if (view.shape[d] == 0) return {first, first};
    const std::int64_t reach = view.strides[d] * size * (view.shape[d] - 1);
    (reach < 0 ? first : end) += static_cast<std::uintptr_t>(reach);
  }
  return {first, end};
}

}  // namespace

bool overlaps_itself(const View4& view) {
  for (int d = 0; d < 4; ++d) {
    if (view.shape[d] == 0) return false;
  }
  for (int d = 0; d < 4; ++d) {
    if (view.shape[d] > 1 && view.strides[d] == 0) return true;
  }
  const Footprint print = footprint_of(view);
  if (dimensions_nest(print)) return false;
  std::vector<Run> runs;
  return !list_runs(print, &runs) || runs_meet(runs);
}

bool overlap(const View4& a, const View4& b) {
  const Run bytes_a = bytes_of(a), bytes_b = bytes_of(b);
  if (bytes_a.second <= bytes_b.first || bytes_b.second <= bytes_a.first) return false;
  const Footprint print_a = footprint_of(a), print_b = footprint_of(b);
  if (print_a.start == print_a.end || print_b.start == print_b.end) return false;
  // The ranges meet: exact, since slots of one buffer (q, k, v, out side by side) interleave without sharing bytes.
  std::vector<Run> runs_a, runs_b;
  if (!list_runs(print_a, &runs_a) || !list_runs(print_b, &runs_b)) return true;
  std::size_t i = 0, j = 0;
  while (i < runs_a.size() && j < runs_b.size()) {
    if (runs_a[i].second <= runs_b[j].first) {
      ++i;
    } else if (runs_b[j].second <= runs_a[i].first) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace attn
