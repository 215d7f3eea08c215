// A map written to a file: pictures and numbers.
#pragma once

#include <string>

#include "explain/attention_map.h"
#include "explain/map_picture.h"

namespace attn::cli {

/// Throws Failure{2} where the extension of `path` is none that a map is written as. "-" is refused, too: a picture is no text.
void check_map_file(const std::string& path);

/// .html: the explorer with this map in it; .svg or .png: a picture; .csv: a line a weight that a query may give; .npz: `weights`, [layers, heads, queries, keys].
/// The numbers are those of the options' head and token alone, where they name one.
/// Whole, or not at all. Throws Failure{2}.
void write_map(const explain::AttentionMap& map, const explain::MapPictureOptions& options,
               const std::string& path);

}  // namespace attn::cli
