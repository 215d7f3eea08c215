// What the page is given of a lesson: a specification that it begins with.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "reference/trace.h"

namespace attn::cli {

struct PageLesson {
  reference::Problem problem;                  ///< tokens and matrices, nothing changed by hand
  std::map<std::string, std::string> options;  ///< by their flag's name, worded as on the command line
  std::vector<std::string> changes;            ///< as behind --set
  std::string mistake;                         ///< an id, or empty
};

/// Puts rows into another order. Changes that name a row by its number name the same row afterwards.
void shuffle_lesson(const std::vector<std::int64_t>& order, PageLesson* lesson);

/// The lesson as explain::read_specification() has it, with "set", a list of changes, and "mistake" beside.
nlohmann::json specification_of(const PageLesson& lesson);

}  // namespace attn::cli
