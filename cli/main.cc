// The command line: finds the verb, runs it, and turns whatever goes wrong into one line on stderr.
// Exit codes: 0 done, 1 the answer is no, 2 wrong use or bad input.
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "attn/isa.h"
#include "attn/version.h"
#include "cli/attention_flags.h"
#include "cli/numbers.h"
#include "cli/usage.h"
#include "cli/verbs.h"

namespace attn::cli {
namespace {

constexpr const char* kFooter = R"(
Tensors are files: .npy, .npz:NAME or .safetensors:NAME. Exit codes: 0 done, 1 the answer is no, 2 wrong use.
Environment: ATTN_ISA=avx2 forces a SIMD target (attn info lists them), ATTN_THREADS=4 sets the threads.

Example:
  attn explain)";

void add_verbs(CLI::App& program) {
  program.footer(kFooter);
  program.set_version_flag("--version", std::string("attn ") + kVersion);
  program.require_subcommand(0, 1);
  add_explain(program);
  add_run(program);
  add_check(program);
  add_probe(program);
  add_cost(program);
  add_map(program);
  add_generate(program);
  add_bench(program);
  add_explore(program);
  add_info(program);
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The library passes over what it doesn't know in the environment; here it must not pass unnoticed.
void check_environment() {
  const std::string threads = environment("ATTN_THREADS");
  if (!threads.empty()) parse_whole("ATTN_THREADS", threads, 1, kMostThreads);

  const std::string isa = environment("ATTN_ISA");
  if (isa.empty() || isa == name_of(current_isa())) return;
  std::string names;
  for (const Isa available : available_isas())
    names += (names.empty() ? "" : ", ") + std::string(name_of(available));
  throw Failure{2, "ATTN_ISA: \"" + isa + "\" can't run here; this machine has " + names};
}

void check_verb(const CLI::App& program, const std::string& verb) {
  if (verb.starts_with('-')) return;
  std::string names;
  for (const CLI::App* known : program.get_subcommands({})) {
    if (known->get_name() == verb) return;
    names += (names.empty() ? "" : ", ") + known->get_name();
  }
  throw Failure{2, "\"" + verb + "\" is no verb; the verbs are " + names + " (attn --help)"};
}

// An empty text would pass for a flag that was not given. Only a prompt may be empty.
void check_arguments(int argc, char** argv) {
  const bool has_prompt = std::string_view(argv[1]) == "generate";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.empty() && has_prompt && i > 1 && argv[i - 1][0] != '-') continue;
    if (argument.empty()) {
      const bool behind_flag = i > 1 && argv[i - 1][0] == '-';
      throw Failure{2, (behind_flag ? std::string(argv[i - 1]) : "argument " + std::to_string(i)) +
                           " is empty; give it a value or leave it out"};
    }
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      throw Failure{2, std::string(argument) + " has no value; give it one or leave it out"};
    }
  }
}

int fail(const std::string& verb, int exit_code, const std::string& sentence) {
  std::cerr << "attn" << (verb.empty() ? "" : " ") << verb << ": " << one_line(sentence) << std::endl;
  return exit_code;
}

int run_program(int argc, char** argv) {
  CLI::App program{"Exact attention on the processor, with every number shown.", "attn"};
  std::string verb;
  try {
    add_verbs(program);
    if (argc < 2) {
      std::cout << program.help();
      return 0;
    }
    check_arguments(argc, argv);
    check_verb(program, argv[1]);
    if (argv[1][0] != '-') verb = argv[1];
    check_environment();
    program.parse(argc, argv);
    std::cout.flush();
    if (!std::cout) throw Failure{2, "stdout: can't be written to, so the output is incomplete"};
    return 0;
  } catch (const CLI::Success& success) {
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    return fail(verb, 2, usage_sentence(error, program, verb, {argv, static_cast<std::size_t>(argc)}));
  } catch (const Answer& answer) {
    std::cout.flush();
    return answer.exit_code;
  } catch (const Failure& failure) {
    return fail(verb, failure.exit_code, failure.sentence);
  } catch (const std::bad_alloc&) {
    return fail(verb, 2, "not enough memory for this input");
  } catch (const std::exception& error) {
    return fail(verb, 2, error.what());
  }
}

}  // namespace

void require(const Status& status) {
  if (!status.ok()) throw Failure{2, status.message()};
}

}  // namespace attn::cli

int main(int argc, char** argv) { return attn::cli::run_program(argc, argv); }
