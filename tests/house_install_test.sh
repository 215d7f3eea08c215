#!/usr/bin/env bash
# What is installed works under any prefix, and after it was moved: README.md's program is built against it.
# house_install_test.sh BUILD CMAKE C++-COMPILER PROGRAM.cc SANITIZERS
set -euo pipefail
build=$1 cmake=$2 compiler=$3 program=$4 sanitizers=$5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $*"; exit 1; }

# expect_works PREFIX: what attn.pc says leads to the headers and the library under this prefix.
expect_works() {
  local folder flags=(-std=c++20)
  folder=$(dirname "$(find "$1" -name attn.pc)")
  export PKG_CONFIG_PATH=$folder
  [[ $(realpath "$(pkg-config --variable=prefix attn)") == $(realpath "$1") ]] ||
    fail "the prefix is $(pkg-config --variable=prefix attn) and not $1"
  [[ -z $sanitizers ]] || flags+=("-fsanitize=$sanitizers")
  # shellcheck disable=SC2046  # flags are words
  "$compiler" "${flags[@]}" "$program" $(pkg-config --cflags --libs attn) -o "$scratch/program"
  [[ $("$scratch/program") == 0.5 ]] || fail "the program says $("$scratch/program")"
  [[ $("$1/bin/attn" --version) == "attn "* ]] || fail "no program under $1"
}

# expect_judge PREFIX: find_package gives attn::diagnose, and a program that links it runs.
expect_judge() {
  mkdir -p "$scratch/judge"
  cat >"$scratch/judge/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(judge LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(attn REQUIRED)
add_executable(judge judge.cc)
target_link_libraries(judge PRIVATE attn::diagnose)
END
  cat >"$scratch/judge/judge.cc" <<'END'
#include <cstdio>
#include "attn/diagnose.h"
int main() {
  const float q[] = {1, 2}, out[] = {2, 4};  // one key: its value, but twice
  const attn::TensorView row(q, attn::DType::f32, {1, 2});
  attn::Diagnosis diagnosis;
  const attn::Status status = attn::check(row, row, row, {out, attn::DType::f32, {1, 2}}, {}, {}, &diagnosis);
  std::puts(status.ok() && diagnosis.verdict != attn::Verdict::right ? "wrong" : "right");
}
END
  local sanitize=""
  [[ -z $sanitizers ]] || sanitize="-fsanitize=$sanitizers"
  "$cmake" -S "$scratch/judge" -B "$scratch/judge/build" -DCMAKE_PREFIX_PATH="$1" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_CXX_FLAGS="$sanitize" >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
  "$cmake" --build "$scratch/judge/build" >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
  [[ $("$scratch/judge/build/judge") == wrong ]] || fail "the judge says $("$scratch/judge/build/judge")"
}

command -v pkg-config >/dev/null || { echo "skipped: pkg-config is not there"; exit 0; }
"$cmake" --install "$build" --prefix "$scratch/here" >"$scratch/said" || fail "$(cat "$scratch/said")"
expect_works "$scratch/here"
mv "$scratch/here" "$scratch/there"
expect_works "$scratch/there"
expect_judge "$scratch/there"
echo "works under any prefix"
