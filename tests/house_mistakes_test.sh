#!/usr/bin/env bash
# docs/mistakes.md is what the program writes.
# house_mistakes_test.sh ROOT PROGRAM
set -euo pipefail
root=$1 program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$program" explain --mistake all --format markdown >"$scratch/mistakes.md"
cmp "$scratch/mistakes.md" "$root/docs/mistakes.md" || {
  echo "docs/mistakes.md is not what the program writes: attn explain --mistake all --format markdown -o docs/mistakes.md"
  exit 1
}
