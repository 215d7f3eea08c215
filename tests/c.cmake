# The C interface, from C99; and that its library exports nothing else.
add_executable(c_interface_test c_interface_test.c)
set_target_properties(c_interface_test PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
target_compile_options(c_interface_test PRIVATE -Wall -Wextra -Wpedantic)
target_link_libraries(c_interface_test PRIVATE attn_c m)
if(ATTN_SANITIZE)
  target_link_options(c_interface_test PRIVATE -fsanitize=${ATTN_SANITIZE})
endif()
add_test(NAME c_interface_test COMMAND c_interface_test)
add_test(NAME c_symbols_test COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/c_symbols_test.sh $<TARGET_FILE:attn_c>
  ${PROJECT_SOURCE_DIR}/include/attn/attn_c.h)

# c_example(NAME SAYS): examples/NAME.c, and what it prints.
function(c_example name says)
  add_executable(c_example_${name} ${PROJECT_SOURCE_DIR}/examples/${name}.c)
  target_link_libraries(c_example_${name} PRIVATE attn_c)
  if(ATTN_SANITIZE)
    target_link_options(c_example_${name} PRIVATE -fsanitize=${ATTN_SANITIZE})
  endif()
  add_test(NAME c_example_${name} COMMAND c_example_${name})
  set_tests_properties(c_example_${name} PROPERTIES PASS_REGULAR_EXPRESSION "${says}")
endfunction()
c_example(attention "^3.00 0.00\n1.50 2.00\n2.18 0.82\n$")
c_example(check "^wrong: .*scale-missing: no 1/sqrt")
