#!/usr/bin/env bash
# The shared library exports what its header declares, all of it and nothing else.
# c_symbols_test.sh LIBRARY HEADER
set -euo pipefail
declared=$(grep -oE '\battn_[a-z_]+\(' "$2" | tr -d '(' | grep -vE '_init$' | sort -u; grep -oE '\battn_[a-z_]+_init\(attn' "$2" | cut -d'(' -f1 | sort -u)
exported=$(nm -D --defined-only "$1" | awk '$2 ~ /[TBDRVW]/ {print $3}' | grep -vE '^(_init|_fini|__asan|__ubsan|__tsan|__odr_asan)' | sort -u)
missing=$(comm -13 <(echo "$exported") <(echo "$declared" | sort -u))
extra=$(comm -23 <(echo "$exported") <(echo "$declared" | sort -u))
[[ -z $missing ]] || { echo "declared, but not exported: $missing"; exit 1; }
[[ -z $extra ]] || { echo "exported, but not declared: $extra"; exit 1; }
echo "$(echo "$exported" | wc -l) functions"
