# Python's own tests, on the module as it was built here; scripts/test-python-wheel tests the wheel on every Python there is, and
# scripts/test-pytorch beside PyTorch. Debian's Python comes first: its packages are those that ./test installs.
if(TARGET attn_python)
  find_program(ATTN_TEST_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_program(ATTN_TEST_PYTHON NAMES python3 REQUIRED)
  set(environment "PYTHONPATH=${CMAKE_BINARY_DIR}/python" PYTHONNOUSERSITE=1)
  if(ATTN_SANITIZE MATCHES address)
    # The interpreter is not built with it, so the sanitizer has to be there before the module is. Python itself leaks.
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE asan
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so OUTPUT_VARIABLE runtime
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND environment "LD_PRELOAD=${asan}:${runtime}" ASAN_OPTIONS=detect_leaks=0)
  endif()
  function(python_test name)
    add_test(NAME ${name} COMMAND ${ATTN_TEST_PYTHON} -B ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}")
  endfunction()
  python_test(python_tests -m pytest -q -p no:cacheprovider -rs bindings/python/tests)
  python_test(python_readme bindings/python/tests/run_blocks.py README.md docs/python.md)
  foreach(example attention check kv_cache)
    python_test(python_example_${example} examples/${example}.py)
  endforeach()
  set_tests_properties(python_example_attention PROPERTIES PASS_REGULAR_EXPRESSION "0\\.673 0\\.164 0\\.164")
  set_tests_properties(python_example_check PROPERTIES PASS_REGULAR_EXPRESSION "mask-zero: ")
  set_tests_properties(python_example_kv_cache PROPERTIES
    PASS_REGULAR_EXPRESSION "^320 and 310 tokens in 3 pages; out \\(8, 1, 64\\)\n$")
endif()
