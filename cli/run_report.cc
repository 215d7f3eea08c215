// What attn run tells about its work: the plan before, the summary after.
#include "cli/run_report.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/numbers.h"
#include "explain/json_number.h"

namespace attn::cli {
namespace {

using explain::json_number;

nlohmann::ordered_json plan_as_json(const Plan& plan) {
  return {{"path", plan.path},
          {"reason", plan.reason},
          {"isa", name_of(plan.isa)},
          {"compute", name_of(plan.compute)},
          {"threads", plan.threads},
          {"tasks", plan.tasks},
          {"tiles",
           {{"query_rows", plan.query_tile_rows},
            {"keys", plan.key_block},
            {"full", plan.tiles_full},
            {"partial", plan.tiles_partial},
            {"skipped", plan.tiles_skipped}}},
          {"scratch_bytes", plan.scratch_bytes},
          {"flops", json_number(plan.flops)},
          {"bytes", json_number(plan.bytes)},
          {"table_bytes", json_number(plan.table_bytes)}};
}

std::string count_of(std::int64_t count) { return count_text(static_cast<double>(count)); }

std::string shape_of(const Written& written) {
  std::string text = "[";
  for (const std::int64_t size : written.shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "] " + name_of(written.dtype);
}

}  // namespace

void print_plan(const Plan& plan, std::optional<double> weights_bytes, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json object = plan_as_json(plan);
    if (weights_bytes) object["weights_bytes"] = json_number(*weights_bytes);
    std::cout << object.dump() << '\n';
    return;
  }
  std::cout << "path        " << plan.path << ": " << plan.reason << '\n'
            << "arithmetic  " << name_of(plan.compute) << " on " << name_of(plan.isa) << '\n'
            << "tasks       " << count_of(plan.tasks) << ", on up to " << counted(plan.threads, "thread") << '\n'
            << "tiles       " << plan.query_tile_rows << " queries × " << plan.key_block
            << " keys: " << count_of(plan.tiles_full) << " full, " << count_of(plan.tiles_partial)
            << " partly masked, " << count_of(plan.tiles_skipped) << " skipped\n"
            << "operations  " << count_text(plan.flops) << '\n'
            << "traffic     " << bytes_text(plan.bytes) << ", each tensor once\n"
            << "scratch     " << bytes_text(static_cast<double>(plan.scratch_bytes)) << " at most\n"
            << "table       " << bytes_text(plan.table_bytes) << ", never stored"
            << (weights_bytes ? " to compute the output\n" : "\n");
  if (weights_bytes) {
    std::cout << "weights     " << bytes_text(*weights_bytes) << ", written, since --weights asks for them\n";
  }
}

void print_summary(const Plan& plan, std::span<const Written> written, double seconds, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json summary = plan_as_json(plan);
    summary["seconds"] = json_number(seconds);
    summary["written"] = nlohmann::ordered_json::array();
    for (const Written& file : written) {
      summary["written"].push_back({{"path", file.path}, {"dtype", name_of(file.dtype)}, {"shape", file.shape}});
    }
    // A path need not be UTF-8, but JSON is.
    std::cout << summary.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return;
  }
  for (const Written& file : written) std::cout << file.path << ": " << shape_of(file) << '\n';
  std::cout << duration_text(seconds) << ", " << plan.path << " on " << name_of(plan.isa) << ", "
            << counted(plan.threads, "thread") << '\n';
}

}  // namespace attn::cli
