// Runs a checked problem: tasks through the executor, results to their destination.
#pragma once

#include "attn/attention.h"
#include "src/problem.h"
#include "src/run/store_rows.h"

namespace attn {

Status run(const Problem& problem, const Destination& destination);

/// The scratch memory that run() takes, at most.
std::int64_t scratch_bytes_of(const Problem& problem);

}  // namespace attn
