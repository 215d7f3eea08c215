// What goes into a probe's folder beside its tensors.
#pragma once

#include <map>
#include <string>

namespace attn::diagnose {

/// README.md, cases.json and the harnesses, by name.
std::map<std::string, std::string> probe_files();

}  // namespace attn::diagnose
