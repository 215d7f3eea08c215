// Appending: everything that can fail first, then pages are taken and rows stored.
#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include "attn/executor.h"
#include "attn/kv_cache.h"
#include "src/arithmetic/float_environment.h"
#include "src/cache/check_append.h"
#include "src/cache/contents.h"
#include "src/cache/store_tokens.h"
#include "src/sentence.h"

namespace attn {
namespace {

// One sequence's part of a batch: rows [first_row, first_row + tokens) of batch entry `entry`.
struct Part {
  SequencePages* sequence;
  std::int64_t entry, first_row, tokens;
};

Status find_parts(KvCache::Contents* contents, std::span<const SequenceId> ids, const AppendRows& rows,
                  std::vector<Part>* parts) {
  std::unordered_set<SequenceId> seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    SequencePages* sequence = contents->find(ids[i]);
    if (!sequence) return unknown_sequence(ids[i]);
    if (!seen.insert(ids[i]).second)
      return error("sequences: ", ids[i], " is given twice; one append has one part for each sequence");
    const auto b = static_cast<std::int64_t>(i);
    if (rows.starts.empty()) {
      parts->push_back({sequence, b, 0, rows.k.shape[2]});
    } else {
      parts->push_back({sequence, 0, rows.starts[i], rows.starts[i + 1] - rows.starts[i]});
    }
  }
  return {};
}

// The page that a part's first token goes to, if the sequence has it already; nullptr otherwise.
Page* open_page(const SequencePages& sequence, const PageLayout& layout) {
  const auto index = static_cast<std::size_t>(sequence.tokens / layout.page_tokens);
  return index < sequence.pages.size() ? sequence.pages[index] : nullptr;
}

// New pages, and copies of shared ones: all but the last of those who write a page copy it.
std::int64_t count_pages(const std::vector<Part>& parts, const PageLayout& layout) {
  std::int64_t pages = 0;
  std::unordered_map<const Page*, std::int64_t> writers;
  for (const Part& part : parts) {
    if (part.tokens == 0) continue;
    const std::int64_t before = part.sequence->tokens, after = before + part.tokens;
    pages += divide_up(after, layout.page_tokens) - before / layout.page_tokens;
    if (const Page* open = open_page(*part.sequence, layout)) {
      if (++writers[open] >= open->users) --pages;
    }
  }
  return pages;
}

// Gives the part's sequence pages of its own for all its new tokens.
void take_pages(KvCache::Contents* contents, const Part& part) {
  if (part.tokens == 0) return;
  SequencePages& s = *part.sequence;
  const std::int64_t page = contents->layout.page_tokens;
  const auto first = static_cast<std::size_t>(s.tokens / page);
  s.pages.resize(static_cast<std::size_t>(divide_up(s.tokens + part.tokens, page)), nullptr);
  Page* open = s.pages[first];
  if (open && open->users > 1) {
    s.pages[first] = contents->pool.take();
    copy_tokens(contents->layout, *open, s.tokens % page, *s.pages[first]);
    contents->pool.leave(open);
  }
  for (std::size_t i = first; i < s.pages.size(); ++i) {
    if (s.pages[i]) continue;
    s.pages[i] = contents->pool.take();
    if (i == first) clear_tokens(contents->layout, s.tokens % page, *s.pages[i]);  // they were dropped
  }
}

SourceRows rows_of(const View4& view, std::int64_t entry, std::int64_t head, std::int64_t row) {
  return {view.at(entry, head, row), view.dtype, view.strides[2], view.strides[3]};
}

// What the tasks of one append share: a task is one head of one part.
struct Storing {
  const PageLayout& layout;
  const AppendRows& rows;
  const std::vector<Part>& parts;
};

void store_head(const Storing& storing, const Part& part, std::int64_t head) {
  const PageLayout& layout = storing.layout;
  for (std::int64_t done = 0; done < part.tokens;) {
    const std::int64_t token = part.sequence->tokens + done, first = token % kUnitKeys;
    const std::int64_t count = std::min(kUnitKeys - first, part.tokens - done);
    std::byte* page = part.sequence->pages[static_cast<std::size_t>(token / layout.page_tokens)]->head(head);
    std::byte *keys = page + layout.key_offset(token), *values = page + layout.value_offset(token);
    if (first == 0) {  // of what another sequence had there nothing stays: save() writes whole units
      std::memset(keys, 0, static_cast<std::size_t>(layout.unit.key_bytes()));
      std::memset(values, 0, static_cast<std::size_t>(layout.unit.value_bytes()));
    }
    const std::int64_t row = part.first_row + done;
    store_keys(layout.unit, rows_of(storing.rows.k, part.entry, head, row), first, count, keys);
    store_values(layout.unit, rows_of(storing.rows.v, part.entry, head, row), first, count, values);
    done += count;
  }
}

void store_task(void* context, std::int64_t index, int /*worker*/) {
  const DefaultFloatEnvironment environment;  // numbers are rounded
  const auto& storing = *static_cast<const Storing*>(context);
  const std::int64_t heads = storing.layout.kv_heads;
  store_head(storing, storing.parts[static_cast<std::size_t>(index / heads)], index % heads);
}

void store_parts(Storing* storing, Executor& executor) {
  std::int64_t tokens = 0;
  for (const Part& part : storing->parts) tokens += part.tokens;
  const std::int64_t heads = storing->layout.kv_heads;
  const std::int64_t tasks = static_cast<std::int64_t>(storing->parts.size()) * heads;
  const UnitLayout& unit = storing->layout.unit;
  // A number takes about as long as 20 multiply-adds.
  const double work =
      20.0 * static_cast<double>(tokens) * static_cast<double>(heads * (unit.key_dim + unit.value_dim));
  if (work >= executor.least_work()) return executor.run(tasks, store_task, storing);
  for (std::int64_t task = 0; task < tasks; ++task) store_task(storing, task, 0);
}

}  // namespace

Status KvCache::append(std::span<const SequenceId> sequences, const TensorView& k, const TensorView& v,
                       std::span<const std::int64_t> starts) {
  Contents& contents = *contents_;
  AppendRows rows;
  ATTN_RETURN_IF_ERROR(
      check_append(contents.options, k, v, static_cast<std::int64_t>(sequences.size()), starts, &rows));
  std::vector<Part> parts;
  Executor* executor = contents.options.executor;
  try {
    if (!executor) executor = &default_executor();
    ATTN_RETURN_IF_ERROR(find_parts(&contents, sequences, rows, &parts));
    ATTN_RETURN_IF_ERROR(contents.pool.reserve(count_pages(parts, contents.layout)));
    for (const Part& part : parts) {
      auto& pages = part.sequence->pages;
      const std::int64_t needed = divide_up(part.sequence->tokens + part.tokens, contents.layout.page_tokens);
      // Twice as many at a time, as push_back would: reserve() alone may take just what is asked, again and again.
      if (static_cast<std::size_t>(needed) > pages.capacity())
        pages.reserve(std::max(static_cast<std::size_t>(needed), 2 * pages.capacity()));
    }
  } catch (const std::bad_alloc&) {
    return error("cache: memory for the page tables of ", sequences.size(),
                 " sequences could not be had; append to fewer at a time");
  }
  for (const Part& part : parts) take_pages(&contents, part);
  Storing storing{contents.layout, rows, parts};
  store_parts(&storing, *executor);
  for (const Part& part : parts) part.sequence->tokens += part.tokens;
  return {};
}

Status KvCache::append(SequenceId sequence, const TensorView& k, const TensorView& v) {
  return append(std::span(&sequence, 1), k, v);
}

}  // namespace attn
