#!/usr/bin/env bash
# What is installed works, also after it was moved: through pkg-config and through find_package, shared and static, for C++
# and for C.
# house_install_test.sh BUILD CMAKE GENERATOR C++-COMPILER C-COMPILER PROGRAM.cc SANITIZERS
set -euo pipefail
build=$1 cmake=$2 generator=$3 cxx=$4 cc=$5 program=$6 sanitize=${7:+-fsanitize=$7}
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "FAILED: $*"; exit 1; }

# expect_public_headers PREFIX: include/attn/ as it is in the source, and nothing beside it.
expect_public_headers() {
  diff <(cd "$root/include" && find . | sort) <(cd "$1/include" && find . | sort) >"$scratch/said" ||
    fail "include/ is not what it should be: $(cat "$scratch/said")"
}

# expect_here PREFIX PACKAGE: what pkg-config says of it leads to this prefix.
expect_here() {
  local said
  said=$(pkg-config --variable=prefix "$2")
  [[ $(realpath "$said") == $(realpath "$1") ]] || fail "$2.pc says that the prefix is $said and not $1"
}

# expect_program PACKAGE shared|static SAYS COMPILER ARGUMENT…: a program built with what pkg-config says of the package takes
# this form of the library, and prints what it should.
expect_program() {
  local package=$1 form=$2 says=$3 flags said taken=static
  if [[ $form == shared ]]; then
    flags="$(pkg-config --cflags --libs "$package") -Wl,-rpath,$(pkg-config --variable=libdir "$package")"
  else
    # Where both lie, -lattn is the shared library; an archive is taken by its file's name.
    flags=$(pkg-config --cflags --libs --static "$package" | sed -E 's/(^| )-l(attn[a-z_]*)/\1-l:lib\2.a/g')
  fi
  # shellcheck disable=SC2086  # flags are words
  "${@:4}" $sanitize $flags -o "$scratch/program" >"$scratch/said" 2>&1 || fail "$package, $form: $(cat "$scratch/said")"
  said=$("$scratch/program" 2>&1) || fail "$package, $form: the program says $said"
  [[ $said == "$says" ]] || fail "$package, $form: the program says $said"
  readelf --dynamic "$scratch/program" >"$scratch/said"
  if grep -q 'NEEDED.*libattn' "$scratch/said"; then taken=shared; fi
  [[ $taken == "$form" ]] || fail "$package: the program took the $taken library, and $form was asked for"
}

command -v pkg-config >/dev/null || { echo "skipped: pkg-config is not there"; exit 0; }
prefix=$scratch/there
"$cmake" --install "$build" --prefix "$scratch/here" >"$scratch/said" 2>&1 || fail "$(cat "$scratch/said")"
mv "$scratch/here" "$prefix"
[[ $("$prefix/bin/attn" --version) == "attn "* ]] || fail "no program under $prefix"
expect_public_headers "$prefix"

attn_pc=$(find "$prefix" -name attn.pc)
PKG_CONFIG_PATH=$(dirname "$attn_pc")
export PKG_CONFIG_PATH
for package in attn attn_c; do expect_here "$prefix" "$package"; done
for form in shared static; do
  expect_program attn "$form" 0.5 "$cxx" -std=c++20 "$program"
  expect_program attn_c "$form" $'3.00 0.00\n1.50 2.00\n2.18 0.82' "$cc" -std=c99 "$root/examples/attention.c"
  expect_program attn_c "$form" wrong "$cc" -std=c99 "$root/tests/installed/judge.c"
done

"$root/tests/installed/build_and_run" "$cmake" "$scratch/build" -G "$generator" "-DCMAKE_PREFIX_PATH=$prefix" \
  "-DCMAKE_CXX_COMPILER=$cxx" "-DCMAKE_C_COMPILER=$cc" "-DCMAKE_CXX_FLAGS=$sanitize" "-DCMAKE_C_FLAGS=$sanitize" ||
  fail "what finds attn by CMake"
echo "works where it was moved"
