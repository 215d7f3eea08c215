// attn bench: the engine as a share of what this machine can do.
#include <unistd.h>

#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attn/executor.h"
#include "attn/isa.h"
#include "attn/machine.h"
#include "cli/attention_flags.h"
#include "cli/bench_shapes.h"
#include "cli/bench_timing.h"
#include "cli/numbers.h"
#include "cli/verbs.h"
#include "explain/json_number.h"

namespace attn::cli {
namespace {

using explain::json_number;

constexpr const char* kFooter = R"(
Shares are of the fused multiply-add peak, and for decode (up to 16 queries over 1,024 keys and more) of the
read bandwidth over the bytes of k and v. Both are measured right beside each call, since shared machines drift
and heavy code lowers a core's clock. Times are medians. Without --threads everything runs with one thread and
with all.

--shapes FILE is a JSON list:
  [{"name": "mine", "dtype": "f32", "shape": [1, 8, 8, 1024, 1024, 64], "causal": true}]
shape is B, H, Hkv, N, M, D; dtype is f32, bf16, f16 or f64. "compute": "bf16" multiplies in 16 bits where the
processor can (see attn run --help); its share is still of the f32 peak. "cache": "f32", "bf16", "f16" or "q8"
holds keys and values in a KV cache of that type instead of plain tensors (where they fit the processor's caches, shares
exceed 100 %). "option": "mask", "bias", "softcap",
"alibi" or "window" (1,024 keys) adds that one.

Example:
  attn bench --shapes examples/bench-shapes.json)";

struct BenchFlags {
  std::string shapes, threads, seconds;
  bool as_json = false;
};

struct Measured {
  BenchShape shape;
  int threads;
  BenchResult result;
};

std::vector<int> thread_counts(const std::string& flag) {
  if (!flag.empty()) return {static_cast<int>(parse_whole("--threads", flag, 1, kMostThreads))};
  const int all = default_executor().threads();
  return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
}

std::string shape_text(const BenchShape& s) {
  std::ostringstream text;
  text << s.batch << ',' << s.heads << ',' << s.kv_heads << ',' << s.queries << ',' << s.keys << ',' << s.head_dim;
  return text.str();
}

void print_heading(const Machine& machine) {
  std::cout << name_of(current_isa()) << ", " << machine.threads << (machine.threads == 1 ? " thread" : " threads")
            << ": " << std::fixed << std::setprecision(1) << machine.fma_gflops << " GF/s multiply-add peak, "
            << machine.read_gbps << " GB/s read\n\n"
            << std::left << std::setw(20) << "name" << std::setw(6) << "dtype" << std::setw(6) << "cache"
            << std::setw(9) << "compute" << std::setw(26) << "B,H,Hkv,N,M,D" << std::setw(8) << "causal"
            << std::setw(9) << "option" << std::right << std::setw(7) << "threads" << std::setw(12) << "ms"
            << std::setw(9) << "GF/s" << std::setw(8) << "GB/s"
            << "  share\n";
}

void print_row(const Measured& m) {
  const BenchResult& r = m.result;
  std::cout << std::left << std::setw(20) << m.shape.name << std::setw(6) << name_of(m.shape.dtype) << std::setw(6)
            << (m.shape.cache ? name_of(*m.shape.cache) : "-") << std::setw(9) << name_of(m.shape.compute())
            << std::setw(26) << shape_text(m.shape) << std::setw(8) << (m.shape.causal ? "yes" : "no")
            << std::setw(9) << (m.shape.option.empty() ? "-" : m.shape.option) << std::right << std::setw(7)
            << m.threads << std::fixed << std::setprecision(r.milliseconds < 0.1 ? 6 : 3) << std::setw(12)
            << r.milliseconds << std::setprecision(1) << std::setw(9) << r.gflops << std::setw(8);
  if (m.shape.is_decode()) {
    std::cout << r.gbps << std::setw(5) << std::setprecision(0) << 100 * r.share << " % of reading\n";
  } else {
    std::cout << "" << std::setw(5) << std::setprecision(0) << 100 * r.share << " % of peak\n";
  }
  std::cout.flush();
}

nlohmann::ordered_json json_of(const Measured& m) {
  const BenchShape& s = m.shape;
  nlohmann::ordered_json row = {{"name", s.name},
                                {"dtype", name_of(s.dtype)},
                                {"compute", name_of(s.compute())},
                                {"shape", {s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.head_dim}},
                                {"causal", s.causal},
                                {"threads", m.threads},
                                {"ms", json_number(m.result.milliseconds)},
                                {"gflops", json_number(m.result.gflops)},
                                {"share", json_number(m.result.share)},
                                {"share_of", s.is_decode() ? "read_gbps" : "peak_gflops"},
                                {"peak_gflops", json_number(m.result.peak_gflops)}};
  if (!s.option.empty()) row["option"] = s.option;
  if (s.cache) row["cache"] = name_of(*s.cache);
  if (s.is_decode()) {
    row["gbps"] = json_number(m.result.gbps);
    row["read_gbps"] = json_number(m.result.read_gbps);
  }
  return row;
}

// One line on stderr that is overwritten; only on a terminal, where the results do not go there as they come.
void show_progress(bool wanted, std::size_t done, std::size_t all) {
  if (wanted && isatty(STDERR_FILENO) != 0)
    std::cerr << "\rmeasured " << done << " of " << all << (done == all ? "\n" : "");
}

void run_bench(const BenchFlags& flags) {
  const std::vector<BenchShape> shapes = flags.shapes.empty() ? standard_shapes() : read_shapes(flags.shapes);
  const std::vector<int> threads = thread_counts(flags.threads);
  const double seconds = flags.seconds.empty() ? 0.5 : parse_real("--seconds", flags.seconds);
  if (seconds < 0 || seconds > 3600)
    throw Failure{2, "--seconds: " + flags.seconds + "; give 0 to 3600 for each shape"};
  Machine machine;
  require(measure_machine(threads.back(), DType::f32, &machine));
  MemoryReader memory;
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  if (!flags.as_json) print_heading(machine);
  for (const BenchShape& shape : shapes) {
    for (const int count : threads) {
      const auto pool = make_thread_pool(count);
      const Measured measured{shape, count, measure(shape, *pool, &memory, seconds)};
      if (!flags.as_json) print_row(measured);
      results.push_back(json_of(measured));
      show_progress(flags.as_json, results.size(), shapes.size() * threads.size());
    }
  }
  if (!flags.as_json) return;
  const nlohmann::ordered_json object = {{"isa", name_of(current_isa())},
                                         {"threads", machine.threads},
                                         {"peak_gflops", json_number(machine.fma_gflops)},
                                         {"read_gbps", json_number(machine.read_gbps)},
                                         {"results", results}};
  std::cout << object.dump() << '\n';
}

}  // namespace

void add_bench(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("bench", "The engine's speed as a share of this machine's limits");
  const auto flags = std::make_shared<BenchFlags>();
  verb->add_option("--shapes", flags->shapes, "Measure the shapes in FILE instead of the standard ones")
      ->type_name("FILE");
  verb->add_option("--threads", flags->threads, "Threads; without it, 1 and one a processor")->type_name("N");
  verb->add_option("--seconds", flags->seconds, "How long each shape is repeated (0.5)")->type_name("S");
  verb->add_flag("--json", flags->as_json, "Print one JSON object instead of text");
  verb->footer(kFooter);
  verb->callback([flags] { run_bench(*flags); });
}

}  // namespace attn::cli
