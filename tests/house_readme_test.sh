#!/usr/bin/env bash
# The commands in README.md run as they are printed: every line "./run …" of its sh blocks, with ./run standing for
# the program that was built. Those that need a model of scripts/get-model run where it is in the cache folder.
# house_readme_test.sh ROOT PROGRAM
set -euo pipefail
root=$1 program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ln -s "$program" "$scratch/run"
ln -s "$root/examples" "$scratch/examples"
cd "$scratch"

cache=$HOME/.cache
[[ ${XDG_CACHE_HOME-} != /* ]] || cache=$XDG_CACHE_HOME
commands=0
while read -r command; do
  echo "$command"
  if [[ $command =~ --model\ (smollm2|minilm) && ! -e $cache/attn/models/${BASH_REMATCH[1]} ]]; then
    echo "skipped: ${BASH_REMATCH[1]} is not there"
    continue
  fi
  bash -c "$command" </dev/null >said 2>&1 || { cat said; echo "FAILED: $command"; exit 1; }
  [[ -s said ]] || { echo "FAILED: $command says nothing"; exit 1; }
  commands=$((commands + 1))
done < <(sed -n '/^```sh$/,/^```$/p' "$root/README.md" | grep '^\./run')
((commands >= 5)) || { echo "FAILED: README.md shows only $commands commands"; exit 1; }
