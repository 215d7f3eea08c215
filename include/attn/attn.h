// Everything the library offers.
#pragma once

#include "attn/attention.h"
#include "attn/dtype.h"
#include "attn/executor.h"
#include "attn/isa.h"
#include "attn/kv_cache.h"
#include "attn/machine.h"
#include "attn/numerics.h"
#include "attn/options.h"
#include "attn/rope.h"
#include "attn/status.h"
#include "attn/tensor.h"
#include "attn/version.h"
