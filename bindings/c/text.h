// Texts that the library hands out.
#pragma once

#include <string>

#include "attn/attn_c.h"

struct attn_text {
  std::string text;
};
