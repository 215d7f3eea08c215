// attn map: what every head of a real model looks at.
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "attn/executor.h"
#include "cli/attention_flags.h"
#include "cli/map_files.h"
#include "cli/map_report.h"
#include "cli/models.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "model/encoder.h"
#include "model/head_roles.h"
#include "model/map_text.h"
#include "model/text_model.h"

namespace attn::cli {
namespace {

constexpr const char* kFooter = R"(
-o writes a page to look around in (.html), draws (.svg, .png) or writes numbers (.csv, .npz): all heads as a grid, or
with --layer and --head one of them; with --from, arcs from that token. A map is a debugging picture, not an account of why a model said what it said.

Example:
  attn map --model smollm2 --from it -o map.svg \
    "I ordered a kettle and a toaster last week. The kettle arrived but it was broken.")";

// What roles are measured on beside random tokens, where no text is given.
constexpr const char* kRolesText =
    "When the rain had stopped, the children went down to the river. Their mother had told them to be careful, "
    "because the "
    "water was high, and the bridge was old. The youngest of them saw a boat, and in the boat a dog, and the dog "
    "was asleep.";

// As typed; an empty text means that the flag was not given.
struct MapFlags {
  std::string model, text, from, layer, head, top, out, threads;
  bool roles = false;
  bool as_json = false;
};

// Which part of the map, once the model is known.
struct Choice {
  std::optional<std::int64_t> layer, head;
  std::size_t top = 10;
};

void check_combination(const MapFlags& flags) {
  if (!flags.out.empty()) check_map_file(flags.out);
  if (flags.roles) {
    for (const auto& [flag, given] : {std::pair{"--from", &flags.from},
                                      {"--layer", &flags.layer},
                                      {"--head", &flags.head},
                                      {"-o", &flags.out}}) {
      if (!given->empty())
        throw Failure{2, std::string(flag) + ": --roles measures all heads; leave one of them out"};
    }
  } else if (flags.text.empty()) {
    throw Failure{2,
                  "text: not given; write it in quotes, as in attn map --model smollm2 \"The kettle was broken.\""};
  }
  if (!flags.head.empty() && flags.layer.empty()) throw Failure{2, "--head: of which layer? Give --layer, too"};
}

Choice choose(const MapFlags& flags, const model::TextModel& model) {
  const auto index = [](const char* flag, const std::string& text, std::int64_t count,
                        const char* things) -> std::optional<std::int64_t> {
    if (text.empty()) return std::nullopt;
    const std::int64_t number = parse_whole(flag, text, 0, std::numeric_limits<std::int64_t>::max());
    if (number >= count)
      throw Failure{2, std::string(flag) + ": " + text + ", but the model has " + std::to_string(count) + " " +
                           things + ", counted from 0"};
    return number;
  };
  Choice choice;
  choice.layer = index("--layer", flags.layer, model.layers(), "layers");
  choice.head = index("--head", flags.head, model.heads(), "heads");
  if (flags.top == "all") {
    choice.top = std::numeric_limits<std::size_t>::max();
  } else if (!flags.top.empty()) {
    choice.top =
        static_cast<std::size_t>(parse_whole("--top", flags.top, 1, std::numeric_limits<std::int32_t>::max()));
  }
  return choice;
}

void measure_roles(const MapFlags& flags, const model::TextModel& model, const std::string& name,
                   const Choice& choice) {
  model::RoleOptions options;
  ProgressLine progress(model.layers() * (options.sequences + 1), "layers");
  options.layer_done = [&] { progress.count(); };
  std::vector<model::HeadRoles> roles;
  const auto text = model.tokenizer().encode(flags.text.empty() ? kRolesText : flags.text);
  if (2 * options.length + 2 > model.context())
    throw Failure{2, "--roles: " + std::to_string(options.length) +
                         " random tokens, repeated, are more than the model's " + std::to_string(model.context()) +
                         " positions; give a model with more"};
  require(model::measure_roles(model, text, options, &roles));
  flags.as_json ? print_roles_json(roles, std::cout) : print_roles(name, roles, choice.top, std::cout);
}

std::optional<std::int64_t> from_of(const MapFlags& flags, const explain::AttentionMap& map) {
  if (flags.from.empty()) return std::nullopt;
  std::int64_t position = 0, places = 0;
  const Status status = explain::find_token(map, flags.from, &position, &places);
  if (!status.ok()) throw Failure{2, "--from: " + status.message()};
  if (places > 1) {
    std::cerr << "--from: \"" << flags.from << "\" is there " << places << " times; this is the last, at position "
              << position << " (a position chooses another)\n";
  }
  return position;
}

void map_text(const MapFlags& flags, const model::TextModel& model, const std::string& name, const Choice& choice) {
  model::MapOptions options{.layer = choice.layer};
  ProgressLine progress(model.layers(), "layers");
  options.layer_done = [&] { progress.count(); };
  explain::AttentionMap map;
  std::vector<float> rows, embedding;
  require(model::map_tokens(model, model.tokenizer().encode(flags.text), options, &map, &rows));
  map.model = name;
  if (!model.causal()) embedding = model::mean_pooled(rows, model.width());
  const std::optional<std::int64_t> from = from_of(flags, map);
  if (!flags.out.empty()) write_map(map, {.from = from, .head = choice.head, .marked = choice.top}, flags.out);

  const MapReport report{.map = map,
                         .from = from,
                         .head = choice.head,
                         .top = choice.top,
                         .embedding = embedding.empty() ? nullptr : &embedding};
  if (flags.as_json) return print_map_json(report, std::cout);
  print_map(report, std::cout);
  if (!flags.out.empty()) std::cout << "\nWritten: " << flags.out << '\n';
}

void run_map(const MapFlags& flags) {
  check_combination(flags);
  const std::unique_ptr<Executor> pool = pool_of(flags.threads);
  const std::string path = model_path(flags.model);
  std::unique_ptr<model::TextModel> model;
  require(model::load_model(path, pool ? *pool : default_executor(), &model));
  const std::string name = model_name(path, *model);
  const Choice choice = choose(flags, *model);
  flags.roles ? measure_roles(flags, *model, name, choice) : map_text(flags, *model, name, choice);
}

}  // namespace

void add_map(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("map", "What the heads of a model look at");
  const auto flags = std::make_shared<MapFlags>();
  verb->add_option("text", flags->text, "The text")->type_name("TEXT");
  verb->add_option("--model", flags->model, "A .gguf file, a folder with model.safetensors, smollm2 or minilm")
      ->type_name("MODEL");
  verb->add_option("--from", flags->from, "Rank heads, and what they look at, from this token (or position)")
      ->type_name("TOKEN");
  verb->add_option("--layer", flags->layer, "This layer alone, counted from 0")->type_name("L");
  verb->add_option("--head", flags->head, "This head of the layer alone, counted from 0")->type_name("H");
  verb->add_option("--top", flags->top, "Heads to show, or all [10]")->type_name("N");
  verb->add_flag("--roles", flags->roles,
                 "Measure what heads do: previous-token, duplicate, induction, first-token");
  verb->add_option("-o,--out", flags->out,
                   "Write a page (.html), draw (.svg, .png) or write the numbers (.csv, .npz)")
      ->type_name("FILE");
  verb->add_option("--threads", flags->threads, "Threads that may take part")->type_name("N");
  verb->add_flag("--json", flags->as_json, "Print one JSON object instead of text");
  verb->footer(kFooter);
  verb->callback([flags] { run_map(*flags); });
}

}  // namespace attn::cli
