#!/usr/bin/env bash
# The checks of the house bite: each rule is broken in a small tree of its own and must be reported with file and line.
# house_checks_test.sh ROOT C++-COMPILER
set -euo pipefail
root=$1 compiler=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $*"; exit 1; }

# expect_refused FILE INCLUDE: a tree that holds just this include is refused, with the place named.
expect_refused() {
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree/$(dirname "$1")" "$scratch/tree/include/attn" "$scratch/tree/src/plan" "$scratch/tree/cli"
  touch "$scratch/tree/include/attn/tensor.h" "$scratch/tree/src/plan/tiles.h" "$scratch/tree/cli/verbs.h"
  printf '// A file.\n#include %s\n' "$2" >"$scratch/tree/$1"
  if "$root/.ci/check_includes" "$scratch/tree" >"$scratch/said"; then fail "$1 may include $2"; fi
  grep -q "^$1:2: " "$scratch/said" || fail "no file and line for $1: $(cat "$scratch/said")"
}

expect_accepted() {
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree/$(dirname "$1")" "$scratch/tree/include/attn" "$scratch/tree/src/plan"
  touch "$scratch/tree/include/attn/tensor.h" "$scratch/tree/src/plan/tiles.h"
  printf '// A file.\n#include %s\n' "$2" >"$scratch/tree/$1"
  "$root/.ci/check_includes" "$scratch/tree" >"$scratch/said" || fail "$1 may not include $2: $(cat "$scratch/said")"
}

expect_refused include/attn/x.h '<thread>'
expect_refused include/attn/x.h '<immintrin.h>'
expect_refused include/attn/x.h '<hwy/highway.h>'
expect_refused include/attn/x.h '"src/plan/tiles.h"'
expect_refused src/kernels/x.cc '"src/plan/tiles.h"'
expect_refused src/plan/x.cc '"cli/verbs.h"'
expect_refused src/x.cc '"cli/verbs.h"'
expect_refused reference/x.cc '"src/plan/tiles.h"'
expect_refused explain/x.cc '"src/plan/tiles.h"'
expect_refused formats/x.cc '"cli/verbs.h"'
expect_refused cli/x.cc '"src/plan/tiles.h"'
expect_refused cli/x.cc '"verbs.h"'
expect_accepted cli/x.cc '"attn/tensor.h"'
expect_accepted include/attn/x.h '<vector>'
expect_accepted src/x.cc '"src/plan/tiles.h"'
expect_accepted tests/x.cc '"src/plan/tiles.h"'

# expect_symbols_refused BODY: a library with this function is refused.
check_symbols() {
  printf '#include <cstdio>\n#include <cstdlib>\n#include <iostream>\nvoid f(int a) { %s; }\n' "$1" >"$scratch/f.cc"
  "$compiler" -std=c++20 -O2 -c "$scratch/f.cc" -o "$scratch/f.o"
  "$root/.ci/check_symbols" "$scratch/f.o" >"$scratch/said"
}
for body in 'std::printf("%d", a)' 'std::puts("a")' 'if (a) std::abort()' 'std::exit(a)' 'std::cout << a'; do
  if check_symbols "$body"; then fail "a library may do $body"; fi
done
check_symbols 'std::free(std::malloc(a))' || fail "a library may not do what is harmless: $(cat "$scratch/said")"
echo "each rule bites"
