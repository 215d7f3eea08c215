// The verbs of the command line: one file each, cli/<verb>.cc.
#pragma once

#include <string>

#include "attn/status.h"

namespace CLI {
class App;
}

namespace attn::cli {

/// What a verb throws when it can't go on: main prints the sentence as one line on stderr and exits with the code
/// (1: the answer is no; 2: wrong use or bad input).
struct Failure {
  int exit_code;
  std::string sentence;
};

/// What a verb throws that has said its answer, which is no: main ends with this code and says nothing more.
struct Answer {
  int exit_code;
};

/// Throws Failure{2, …} where the status is an error.
void require(const Status& status);

/// Each adds its subcommand, with flags, help and callback, to the program.
void add_explain(CLI::App& program);
void add_explore(CLI::App& program);
void add_run(CLI::App& program);
void add_check(CLI::App& program);
void add_probe(CLI::App& program);
void add_bench(CLI::App& program);
void add_cost(CLI::App& program);
void add_generate(CLI::App& program);
void add_map(CLI::App& program);
void add_info(CLI::App& program);

}  // namespace attn::cli
