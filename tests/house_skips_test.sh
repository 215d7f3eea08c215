#!/usr/bin/env bash
# A test whose cases were all skipped shows as Skipped in ctest; one of whose cases some ran does not.
# house_skips_test.sh CTEST REGULAR-EXPRESSION
set -euo pipefail
ctest=$1 expression=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# says STATUS LINE…: a program that ends with this status and with these lines, as GoogleTest would.
says() {
  { echo '#!/usr/bin/env bash'; printf 'echo "%s"\n' "${@:2}"; echo "exit $1"; } >program
  chmod +x program
}

# expect WORD: that is how ctest shows the program.
expect() {
  printf 'add_test(t "%s/program")\nset_tests_properties(t PROPERTIES SKIP_REGULAR_EXPRESSION [==[%s]==])\n' \
    "$scratch" "$expression" >CTestTestfile.cmake
  "$ctest" >said 2>&1 || true
  grep -q "Test *#1: t [ .*]*$1" said || { echo "FAILED: not shown as $1:"; cat program said; exit 1; }
}

passed='[  PASSED  ]' skipped='[  SKIPPED ]' failed='[  FAILED  ]'
says 0 "$passed 0 tests." "$skipped 1 test, listed below:" "$skipped Real.One"
expect Skipped
says 0 "$passed 0 tests." "$skipped 2 tests, listed below:" "$skipped Real.One" "$skipped Real.Two"
expect Skipped
says 0 "$passed 52 tests." "$skipped 2 tests, listed below:" "$skipped Onnx.One" "$skipped Onnx.Two"
expect Passed
says 0 "$passed 10 tests."
expect Passed
says 1 "$passed 0 tests." "$skipped 1 test, listed below:" "$skipped Real.One" "$failed 1 test, listed below:" \
  "$failed Real.Two"
expect Failed
echo "all skipped is skipped"
