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

command -v pkg-config >/dev/null || { echo "skipped: pkg-config is not there"; exit 0; }
"$cmake" --install "$build" --prefix "$scratch/here" >"$scratch/said" || fail "$(cat "$scratch/said")"
expect_works "$scratch/here"
mv "$scratch/here" "$scratch/there"
expect_works "$scratch/there"
echo "works under any prefix"
