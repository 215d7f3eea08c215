// Watches what a test program takes from the heap.
#pragma once

#include <cstddef>

/// The most bytes asked for at once since the program set this to 0. Requests beyond 4 GiB get nothing.
extern std::size_t largest_allocation;
