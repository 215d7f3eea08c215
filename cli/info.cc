// attn info: what this binary is and what it runs on here.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attn/executor.h"
#include "attn/isa.h"
#include "attn/version.h"
#include "cli/verbs.h"

namespace attn::cli {
namespace {

void print_info(bool as_json) {
  std::vector<std::string> isas;
  for (const Isa isa : available_isas()) isas.emplace_back(name_of(isa));
  const std::string chosen = name_of(current_isa());
  const int threads = default_executor().threads();

  if (as_json) {
    const nlohmann::ordered_json info = {
        {"version", kVersion}, {"isa", chosen}, {"isas", isas}, {"threads", threads}};
    std::cout << info.dump() << '\n';
    return;
  }
  std::cout << "version       " << kVersion << '\n';
  std::cout << "SIMD targets ";
  for (const std::string& isa : isas) std::cout << ' ' << isa << (isa == chosen ? " (runs)" : "");
  std::cout << "\nthreads       " << threads << '\n';
}

}  // namespace

void add_info(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("info", "Version, SIMD targets and threads");
  const auto as_json = std::make_shared<bool>(false);
  verb->add_flag("--json", *as_json, "Print one JSON object: version, isa, isas, threads");
  verb->footer(
      "\nATTN_ISA=scalar attn info shows a target that is forced.\n\n"
      "Example:\n  attn info");
  verb->callback([as_json] { print_info(*as_json); });
}

}  // namespace attn::cli
