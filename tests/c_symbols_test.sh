#!/usr/bin/env bash
# The shared library exports what its header declares, all of it and nothing else.
# c_symbols_test.sh LIBRARY HEADER
set -euo pipefail
declared=$(grep -E '^ATTN_API' "$2" | grep -oE '\battn_[a-z_]+\(' | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$1" | awk '$2 ~ /[TBDRVW]/ {print $3}' | grep -vE '^(_init|_fini|__asan|__ubsan|__tsan|__odr_asan)' | sort -u)
missing=$(comm -13 <(echo "$exported") <(echo "$declared"))
extra=$(comm -23 <(echo "$exported") <(echo "$declared"))
[[ -z $missing ]] || { echo "declared, but not exported: $missing"; exit 1; }
[[ -z $extra ]] || { echo "exported, but not declared: $extra"; exit 1; }
echo "$(echo "$exported" | wc -l) functions"
