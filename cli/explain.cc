// attn explain: attention worked by hand, every number of every step.
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attn/attention.h"
#include "attn/diagnose.h"
#include "cli/attention_flags.h"
#include "cli/numbers.h"
#include "cli/page_resource.h"
#include "cli/verbs.h"
#include "explain/changes.h"
#include "explain/explanation.h"
#include "explain/files.h"
#include "explain/mistake_lesson.h"
#include "explain/page_problem.h"
#include "explain/specification.h"

namespace attn::cli {
namespace {

constexpr std::int64_t kLargestTile = 1 << 20;

constexpr const char* kFooter = R"(
SPEC.json holds a small example (at most 64 tokens): tokens, x, wq, wk, wv, or q, k and v instead of x and its
matrices, and options by their flag's name, as in
  {"tokens": ["a", "b"], "q": [[1, 0], [0, 1]], "k": [[1, 1], [0, 2]], "v": [[1], [2]], "causal": true}
Flags win over options in the file. Without SPEC.json the example is "order 4471 shipped".

Example:
  attn explain --set 'k[4471]=2,0' --tiles 1)";

// As typed; an empty text means that the flag was not given.
struct ExplainFlags {
  std::string specification;
  std::vector<std::string> changes;
  std::string order, tiles, heads, format, output, mistake;
  bool no_mask = false, no_scale = false, as_json = false, cache = false, backward = false;
  AttentionFlags attention;
};

void refuse_what_is_not_built(const ExplainFlags& flags) {
  if (flags.backward) throw Failure{2, "--backward is not available in this version"};
}

// A file that is called lesson.html is expected to be a page.
std::string format_by_ending(const std::string& path) {
  for (const auto& [ending, format] : {std::pair(".html", "html"), std::pair(".md", "markdown"),
                                       std::pair(".tex", "latex"), std::pair(".json", "json")}) {
    if (path.ends_with(ending)) return format;
  }
  return "text";
}

// Nothing stands for the page, which is no document of explain/.
std::optional<explain::Format> format_of(const ExplainFlags& flags) {
  if (flags.as_json && !flags.format.empty() && flags.format != "json") {
    throw Failure{2, "--json: --format " + flags.format + " is given as well; leave one out"};
  }
  const std::string name = flags.as_json          ? "json"
                           : flags.format.empty() ? format_by_ending(flags.output)
                                                  : flags.format;
  if (name == "html" && !page()) throw Failure{2, std::string("--format html: ") + kNoPage};
  if (name == "html") return std::nullopt;
  if (const auto format = explain::format_named(name)) return *format;
  throw Failure{2, "--format: \"" + name + "\" is none; give text, markdown, latex, html or json"};
}

void check_mistake(const std::string& id, std::optional<explain::Format> format) {
  const bool has_all = format && *format != explain::Format::json;
  if (id.empty() || find_mistake(id) || (id == "all" && has_all)) return;
  if (id == "all")
    throw Failure{
        2, "--mistake: all is a catalogue to read; give --format text, markdown or latex, or one mistake's id"};
  std::string ids;
  for (const Mistake& mistake : mistakes()) ids += (ids.empty() ? "" : ", ") + std::string(mistake.id);
  throw Failure{2, "--mistake: \"" + id + "\" is none; give " + (has_all ? "all, or " : "") + "one of " + ids};
}

void check_output(const ExplainFlags& flags) {
  if (flags.as_json && flags.output == "-") {
    throw Failure{2, "--json: it prints to standard output as -o - does; leave one out"};
  }
  std::error_code ignored;
  if (!flags.output.empty() && std::filesystem::equivalent(flags.output, flags.specification, ignored)) {
    throw Failure{2, "-o: " + flags.output + " is the specification that is read; give another file"};
  }
}

// --no-mask and --no-scale against the flags that ask for the opposite.
void check_contradictions(const ExplainFlags& flags) {
  const AttentionFlags& attention = flags.attention;
  for (const auto& [name, value] :
       {std::pair("--causal", &attention.causal), std::pair("--window", &attention.window),
        std::pair("--mask", &attention.mask), std::pair("--lengths", &attention.lengths),
        std::pair("--sink-tokens", &attention.sink_tokens)}) {
    if (flags.no_mask && !value->empty()) {
      throw Failure{2, "--no-mask: " + std::string(name) + " is given as well; leave one out"};
    }
  }
  if (flags.no_scale && !attention.scale.empty()) {
    throw Failure{2, "--no-scale: --scale " + attention.scale + " is given as well; leave one out"};
  }
}

explain::Specification read_specification(const std::string& file) {
  if (file.empty()) return explain::worked_specification();
  std::string text;
  explain::Specification specification;
  const Status read = explain::read_file(file, explain::kMostSpecificationBytes, &text);
  if (!read.ok()) {
    // --set takes one change: a second one behind it lands here.
    const bool is_change = file.find("]=") != std::string::npos;
    throw Failure{2, read.message() + (is_change ? ", or write --set in front of each change" : "")};
  }
  const Status status = explain::read_specification(text, &specification);
  if (!status.ok()) throw Failure{2, file + ": " + status.message()};
  return specification;
}

// What the file says where the command line says nothing; returns the flags that it sets.
std::set<std::string> take_options(const explain::Specification& specification, ExplainFlags* flags) {
  std::set<std::string> taken;
  const auto option = [&](const char* name) {
    const auto found = specification.options.find(name);
    return found == specification.options.end() ? std::string() : found->second;
  };
  const auto take = [&](const char* name, std::string* flag) {
    if (!flag->empty() || option(name).empty()) return;
    *flag = option(name);
    taken.insert(name);
  };
  AttentionFlags& attention = flags->attention;
  take("scale", &attention.scale);
  take("sinks", &attention.sinks);
  take("softcap", &attention.softcap);
  take("heads", &flags->heads);
  take("tiles", &flags->tiles);
  if (!flags->cache && !option("cache").empty()) {
    flags->cache = true;
    taken.insert("cache");
  }
  if (!attention.alibi && !option("alibi").empty()) {
    attention.alibi = true;
    taken.insert("alibi");
  }
  if (flags->no_scale) attention.scale = "1";
  // Without a mask, where queries sit matters to ALiBi alone.
  if (!flags->no_mask || attention.alibi) take("align", &attention.align);
  if (flags->no_mask) return taken;
  take("causal", &attention.causal);
  take("mask", &attention.mask);
  take("window", &attention.window);
  take("lengths", &attention.lengths);
  take("sink-tokens", &attention.sink_tokens);
  return taken;
}

// Speaks of the file where the flag that a sentence begins with was not typed but read from it.
Failure in_file(const Failure& failure, const std::string& file, const std::set<std::string>& taken) {
  const std::string flag = failure.sentence.substr(0, failure.sentence.find(':'));
  const bool is_read = flag.starts_with("--") && taken.contains(flag.substr(2));
  return is_read ? Failure{failure.exit_code, file + ": " + failure.sentence.substr(2)} : failure;
}

// Applies --set and --shuffle, and says so in the lesson.
std::vector<std::string> change(const ExplainFlags& flags, reference::Problem* problem) {
  std::vector<std::string> remarks;
  require(explain::apply_changes(flags.changes, problem));
  for (const std::string& text : flags.changes) remarks.push_back("Changed by hand: " + text + ".");
  if (flags.order.empty()) return remarks;
  require(explain::shuffle(parse_whole_list("--shuffle", flags.order), problem));
  const bool sees_order = !flags.attention.causal.empty() || !flags.attention.window.empty() ||
                          !flags.attention.mask.empty() || !flags.attention.lengths.empty() ||
                          flags.attention.alibi;
  remarks.push_back("The rows come in the order " + flags.order + "." +
                    (sees_order ? " The place of a token decides what it sees, or how it scores: outputs change. "
                                  "With --no-mask they would only change places."
                                : " Nothing here depends on their places: every token gets the output that it had "
                                  "before, at its new place. Attention alone knows no order."));
  return remarks;
}

// The library says whether the options fit: by the shapes alone, numbers do not matter.
void check_options(const reference::Trace& shapes, const AttentionOptions& options) {
  const auto rows = static_cast<std::int64_t>(shapes.tokens.size());
  const auto heads = static_cast<std::int64_t>(shapes.heads.size());
  const auto key_dim = static_cast<std::int64_t>(shapes.heads.front().q.front().size());
  const auto value_dim = static_cast<std::int64_t>(shapes.heads.front().v.front().size());
  const std::vector<double> numbers(rows * heads * std::max(key_dim, value_dim));
  const TensorView query(numbers.data(), DType::f64, {1, heads, rows, key_dim});
  const TensorView value(numbers.data(), DType::f64, {1, heads, rows, value_dim});
  Plan unused;
  require(plan(query, query, value, options, &unused));
}

std::string render(explain::Format format, const reference::Problem& problem, const reference::Trace& trace,
                   const std::vector<std::string>& remarks, const std::string& mistake) {
  if (mistake == "all") return explain::rendered(explain::catalogue_lesson(problem, trace), format);
  return explain::explanation(format, problem, trace, find_mistake(mistake), remarks);
}

void check_page_shows(const AttentionFlags& flags) {
  for (const auto& [name, file] : {std::pair("--mask", &flags.mask), std::pair("--sinks", &flags.sinks)}) {
    if (file->empty()) continue;
    throw Failure{2, std::string(name) + ": " + *file + ", but the page of --format html shows no files yet; " +
                         "leave it out, or choose another format"};
  }
}

// How the problem is worked, and the setup that its options point into.
AttentionSetup apply_flags(const ExplainFlags& flags, reference::Problem* problem) {
  if (!flags.heads.empty()) problem->heads = parse_whole("--heads", flags.heads, 1, explain::kMostHeads);
  if (!flags.tiles.empty()) problem->tile = parse_whole("--tiles", flags.tiles, 1, kLargestTile);
  reference::Trace trace;
  const Status status = reference::trace(*problem, &trace);
  if (!status.ok()) throw Failure{2, "--" + status.message()};  // of heads: all else fitted before

  AttentionSetup setup = set_up(flags.attention, 1, problem->heads, DType::f64);
  const auto rows = static_cast<std::int64_t>(problem->tokens.size());
  check_sequences(setup.options, rows, rows);
  check_options(trace, setup.options);
  return setup;
}

void write(const ExplainFlags& flags, const std::string& text) {
  if (flags.output.empty() || flags.output == "-") {
    std::cout << text;
    return;
  }
  const Status status = explain::write_file(flags.output, text);
  if (!status.ok()) throw Failure{2, "-o: " + status.message()};
}

void run_explain(ExplainFlags flags) {
  refuse_what_is_not_built(flags);
  const std::optional<explain::Format> format = format_of(flags);
  check_mistake(flags.mistake, format);
  check_output(flags);
  check_contradictions(flags);

  explain::Specification specification = read_specification(flags.specification);
  const std::set<std::string> taken = take_options(specification, &flags);
  reference::Problem& problem = specification.problem;
  problem.options = {};
  reference::Trace trace;
  const Status fits = reference::trace(problem, &trace);
  if (!fits.ok()) throw Failure{2, flags.specification + ": " + fits.message()};

  const std::vector<std::string> remarks = change(flags, &problem);
  AttentionSetup setup;
  try {
    if (!format) check_page_shows(flags.attention);
    setup = apply_flags(flags, &problem);
    problem.options = setup.options;
    problem.cache = flags.cache;
    const Status worked = reference::trace(problem, &trace);
    if (!worked.ok()) throw Failure{2, "--" + worked.message()};  // of the cache: all else fitted before
  } catch (const Failure& failure) {
    throw in_file(failure, flags.specification, taken);
  }
  if (format) return write(flags, render(*format, problem, trace, remarks, flags.mistake));
  write(flags, page_with({{"specification", explain::page_problem_json(problem, flags.mistake)}}));
}

}  // namespace

void add_explain(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("explain", "Work attention by hand: every number of every step");
  const auto flags = std::make_shared<ExplainFlags>();
  verb->add_option("SPEC.json", flags->specification, "A small example; without it, the one that comes along");
  verb->add_option("--set", flags->changes,
                   "Change a row: 'k[4471]=2,0'; of q, k, v, x, wq, wk or wv; a --set for each")
      ->option_text("TEXT")
      ->allow_extra_args(false);
  verb->add_flag("--no-mask", flags->no_mask, "Hide nothing: no causality, window, mask or lengths");
  verb->add_flag("--no-scale", flags->no_scale, "Leave scores as they are");
  verb->add_option("--shuffle", flags->order, "Rows in another order: 2,0,1");
  verb->add_option("--tiles", flags->tiles, "Also tile by tile, with so many keys a tile");
  verb->add_flag("--cache", flags->cache, "Also token by token, through a KV cache");
  verb->add_option("--heads", flags->heads, "Split the columns into so many heads");
  verb->add_option("--mistake", flags->mistake,
                   "Make a known mistake beside the right numbers, as in scale-missing; all: the whole catalogue");
  verb->add_option(
      "--format", flags->format,
      "text, markdown, latex, html (a page to change things in) or json; without it as FILE of -o ends, or text");
  verb->add_flag("--json", flags->as_json, "The same as --format json: every number in full");
  verb->add_option("-o,--output", flags->output, "Write to a file instead; - is standard output");
  // Named in the manual, not built yet: known here so that it is refused by name.
  verb->add_flag("--backward", flags->backward)->group("");
  flags->attention.add_to(*verb);
  verb->footer(kFooter);
  verb->callback([flags] { run_explain(*flags); });
}

}  // namespace attn::cli
