#include "cli/map_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/numbers.h"
#include "explain/head_json.h"
#include "explain/json_number.h"

namespace attn::cli {
namespace {

using explain::AttentionMap;
using explain::HeadHabits;
using explain::HeadRow;
using explain::json_number;
using nlohmann::ordered_json;

// From this weight on, on average, a head is said to have a habit.
constexpr double kHabit = 0.5;

template <class... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), format, arguments...);
  return text.data();
}

std::string json_text(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string label(const AttentionMap& map, std::int64_t position) {
  return explain::plain_label(map.tokens[static_cast<std::size_t>(position)]);
}

std::vector<HeadRow> ranking_of(const MapReport& report) {
  std::vector<HeadRow> ranking = explain::rank_heads(report.map, *report.from);
  if (report.head) std::erase_if(ranking, [&](const HeadRow& row) { return row.head != *report.head; });
  return ranking;
}

std::vector<HeadHabits> habits_of(const MapReport& report) {
  std::vector<HeadHabits> habits = explain::habits_of(report.map);
  if (report.head) std::erase_if(habits, [&](const HeadHabits& row) { return row.head != *report.head; });
  return habits;
}

// The tokens that a row weighs most, "kettle (10) 0.52", as far as they get 0.01.
std::string seen(const MapReport& report, const HeadRow& row) {
  constexpr std::size_t kTokens = 4;
  const std::span<const float> weights = report.map.row(row.layer_here, row.head, *report.from);
  std::string text;
  const std::size_t most = report.head ? report.top : kTokens;
  for (std::size_t i = 0; i < std::min(most, row.order.size()); ++i) {
    const double weight = weights[static_cast<std::size_t>(row.order[i])];
    if (weight < 0.01 && i > 0) break;
    text += (text.empty() ? "" : ", ") + label(report.map, row.order[i]) + " (" + std::to_string(row.order[i]) +
            ") " + formatted("%.2f", weight);
  }
  return text;
}

void print_text(const AttentionMap& map, std::ostream& out) {
  for (std::size_t i = 0; i < map.tokens.size(); ++i) out << (i ? " " : "") << explain::plain_label(map.tokens[i]);
  out << '\n';
}

void print_footer(const AttentionMap& map, std::ostream& out) {
  out << "\nLargest difference of a weight from float64: " << formatted("%.1e", map.fidelity);
  if (map.rows_judged < map.size()) out << " (in " << map.rows_judged << " rows of each head)";
  out << ".\n" << explain::kMapCaveat << '\n';
}

// How many heads of the ranking do little but follow one habit, which is what most of them do in most texts.
void print_habits(const std::vector<HeadRow>& ranking, std::ostream& out) {
  std::int64_t first = 0, previous = 0, itself = 0;
  for (const HeadRow& row : ranking) {
    first += row.first >= kHabit;
    previous += row.previous >= kHabit;
    itself += row.itself >= kHabit;
  }
  out << "Of " << counted(static_cast<std::int64_t>(ranking.size()), "head") << " here, " << first
      << " give at least half of their weight to the first token, " << previous << " to the previous one, "
      << itself << " to the token itself.\n";
}

void print_ranking(const MapReport& report, std::ostream& out) {
  const AttentionMap& map = report.map;
  const std::int64_t keys = map.causal ? *report.from + 1 : map.size();
  const std::vector<HeadRow> ranking = ranking_of(report);
  out << "\nFrom \"" << label(map, *report.from) << "\" (position " << *report.from << "), which may see "
      << counted(keys, "token") << "; a uniform head would give each "
      << formatted("%.3f", 1.0 / static_cast<double>(keys)) << ".\n\n";
  out << " layer  head  beyond   first  previous  itself   looks at\n";
  for (std::size_t i = 0; i < std::min(report.top, ranking.size()); ++i) {
    const HeadRow& row = ranking[i];
    out << formatted("%6lld %5lld  %6.2f  %6.2f    %6.2f  %6.2f   ", static_cast<long long>(row.layer),
                     static_cast<long long>(row.head), row.beyond, row.first, row.previous, row.itself)
        << seen(report, row) << '\n';
  }
  if (ranking.size() > report.top) out << "   … " << ranking.size() - report.top << " more (--top all)\n";
  out << "\nbeyond: what tokens other than the first, itself and its neighbours get above their uniform share.\n";
  print_habits(ranking, out);
}

// Without a token to look from: which heads do anything but follow habits, over the whole text.
void print_overview(const MapReport& report, std::ostream& out) {
  if (report.map.size() < 3) {
    out << "\nToo short to tell habits apart: give a text of at least three tokens, or --from a token.\n";
    return;
  }
  std::vector<HeadHabits> habits = habits_of(report);
  std::stable_sort(habits.begin(), habits.end(),
                   [](const HeadHabits& a, const HeadHabits& b) { return a.beyond > b.beyond; });
  out << "\nOn average over the tokens from the third on:\n\n layer  head  beyond   first  previous  itself\n";
  for (std::size_t i = 0; i < std::min(report.top, habits.size()); ++i) {
    const HeadHabits& row = habits[i];
    out << formatted("%6lld %5lld  %6.2f  %6.2f    %6.2f  %6.2f\n", static_cast<long long>(row.layer),
                     static_cast<long long>(row.head), row.beyond, row.first, row.previous, row.itself);
  }
  if (habits.size() > report.top) out << "   … " << habits.size() - report.top << " more (--top all)\n";
  out << "\nbeyond: what tokens other than the first, itself and its neighbours get above their uniform share.\n"
         "--from TOKEN ranks heads for one token.\n";
}

ordered_json ranking_json(const MapReport& report) {
  ordered_json all = ordered_json::array();
  for (const HeadRow& row : ranking_of(report)) {
    const std::span<const float> weights = report.map.row(row.layer_here, row.head, *report.from);
    ordered_json links = ordered_json::array();
    for (const std::int64_t position : row.order) {
      links.push_back({{"token", report.map.tokens[static_cast<std::size_t>(position)]},
                       {"position", position},
                       {"weight", json_number(weights[static_cast<std::size_t>(position)])}});
    }
    all.push_back(explain::head_json(row));
    all.back()["weights"] = std::move(links);
  }
  return all;
}

ordered_json habits_json(const MapReport& report) {
  ordered_json all = ordered_json::array();
  for (const HeadHabits& row : habits_of(report)) all.push_back(explain::head_json(row));
  return all;
}

// A role: its name, where its number stands, and what it means.
struct Role {
  const char* name;
  double model::HeadRoles::*score;
  const char* meaning;
};
constexpr std::array<Role, 6> kRoles = {
    {{"previous", &model::HeadRoles::previous, "the token before (Elhage et al., 2021)"},
     {"duplicate", &model::HeadRoles::duplicate, "the same token, earlier (Wang et al., 2022)"},
     {"induction", &model::HeadRoles::induction, "what followed the same token, earlier (Olsson et al., 2022)"},
     {"first", &model::HeadRoles::first, "the first token: a sink (Xiao et al., 2023)"},
     {"text_previous", &model::HeadRoles::text_previous, "previous, on the text"},
     {"text_first", &model::HeadRoles::text_first, "first, on the text"}}};

}  // namespace

void print_map(const MapReport& report, std::ostream& out) {
  out << report.map.model << '\n';
  print_text(report.map, out);
  report.from ? print_ranking(report, out) : print_overview(report, out);
  print_footer(report.map, out);
}

void print_map_json(const MapReport& report, std::ostream& out) {
  const AttentionMap& map = report.map;
  ordered_json json = {{"model", map.model},
                       {"tokens", map.tokens},
                       {"layers", map.layers},
                       {"heads", map.heads},
                       {"from", nullptr},
                       {"ranking", ordered_json::array()},
                       {"fidelity", json_number(map.fidelity)},
                       {"rows_judged", map.rows_judged},
                       {"habits", habits_json(report)},
                       {"caveat", explain::kMapCaveat}};
  if (report.from) {
    json["from"] = {{"token", map.tokens[static_cast<std::size_t>(*report.from)]}, {"position", *report.from}};
    json["ranking"] = ranking_json(report);
  }
  if (report.embedding) {
    ordered_json numbers = ordered_json::array();
    for (const float number : *report.embedding) numbers.emplace_back(json_number(number));
    json["embedding"] = std::move(numbers);
  }
  out << json_text(json);
}

void print_roles(const std::string& model, const std::vector<model::HeadRoles>& roles, std::size_t top,
                 std::ostream& out) {
  out << model
      << "\n\nThe weight that each head gives, on average. On random tokens, repeated once, and on the text:\n";
  for (const Role& role : kRoles) out << "  " << formatted("%-14s", role.name) << role.meaning << '\n';
  std::vector<model::HeadRoles> sorted = roles;
  const auto strongest = [](const model::HeadRoles& head) {
    return std::max({head.previous, head.duplicate, head.induction});
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const auto& a, const auto& b) { return strongest(a) > strongest(b); });
  out << "\n layer  head";
  for (const Role& role : kRoles) out << formatted("  %13s", role.name);
  out << '\n';
  for (std::size_t i = 0; i < std::min(top, sorted.size()); ++i) {
    out << formatted("%6lld %5lld", static_cast<long long>(sorted[i].layer),
                     static_cast<long long>(sorted[i].head));
    for (const Role& role : kRoles) out << formatted("  %13.2f", sorted[i].*role.score);
    out << '\n';
  }
  if (sorted.size() > top) out << "   … " << sorted.size() - top << " more (--top all)\n";
  std::int64_t sinks = 0;
  for (const auto& head : roles) sinks += head.first >= kHabit;
  out << "\nHeads are in the order of their strongest of the first three roles. " << sinks << " of " << roles.size()
      << " give at least half of their weight to the first token.\nA role is what a head does on such texts, not "
         "all "
         "that it does.\n";
}

void print_roles_json(const std::vector<model::HeadRoles>& roles, std::ostream& out) {
  ordered_json all = ordered_json::array();
  for (const auto& head : roles) {
    ordered_json one = {{"layer", head.layer}, {"head", head.head}};
    for (const Role& role : kRoles) one[role.name] = json_number(head.*role.score);
    all.push_back(std::move(one));
  }
  out << json_text({{"roles", std::move(all)}});
}

}  // namespace attn::cli
