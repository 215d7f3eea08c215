# The house: includes run one way, the library never prints or ends the program, and what README.md says is so.
add_test(NAME house_includes COMMAND ${PROJECT_SOURCE_DIR}/.ci/check_includes)
add_test(NAME house_checks COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/house_checks_test.sh ${PROJECT_SOURCE_DIR}
  ${CMAKE_CXX_COMPILER})

add_test(NAME house_skips COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/house_skips_test.sh ${CMAKE_CTEST_COMMAND}
  "${ATTN_ALL_SKIPPED}")

if(TARGET attn)
  add_test(NAME house_symbols COMMAND ${PROJECT_SOURCE_DIR}/.ci/check_symbols $<TARGET_FILE:attn>)

  # cc_example(NAME LIBRARY SAYS): examples/NAME.cc, and what it prints.
  function(cc_example name library says)
    add_executable(house_example_${name} ${PROJECT_SOURCE_DIR}/examples/${name}.cc)
    target_link_libraries(house_example_${name} PRIVATE ${library})
    add_test(NAME house_example_${name} COMMAND house_example_${name})
    set_tests_properties(house_example_${name} PROPERTIES PASS_REGULAR_EXPRESSION "${says}")
  endfunction()
  cc_example(kv_cache attn "^320 and 310 tokens in 3 pages of 131072 bytes\n$")
  cc_example(check attn_diagnose "^no causal mask\n")

  # The example in README.md, as it stands there.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/README.md)
  file(READ ${PROJECT_SOURCE_DIR}/README.md readme)
  string(REGEX MATCH "```cpp\n([^`]+)```" found "${readme}")
  file(CONFIGURE OUTPUT house_readme_example.cc CONTENT "${CMAKE_MATCH_1}" @ONLY)
  add_executable(house_readme_example ${CMAKE_CURRENT_BINARY_DIR}/house_readme_example.cc)
  target_link_libraries(house_readme_example PRIVATE attn)
  add_test(NAME house_readme_example COMMAND house_readme_example)
  set_tests_properties(house_readme_example PROPERTIES PASS_REGULAR_EXPRESSION "^0\\.5\n$")
endif()

if(TARGET attn_cli)
  add_test(NAME house_install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/house_install_test.sh ${CMAKE_BINARY_DIR}
    ${CMAKE_COMMAND} ${CMAKE_GENERATOR} ${CMAKE_CXX_COMPILER} ${CMAKE_C_COMPILER}
    ${CMAKE_CURRENT_BINARY_DIR}/house_readme_example.cc "${ATTN_SANITIZE}")
  set_tests_properties(house_install PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
  add_test(NAME house_readme_commands COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/house_readme_test.sh
    ${PROJECT_SOURCE_DIR} $<TARGET_FILE:attn_cli>)
  add_test(NAME house_mistakes COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/house_mistakes_test.sh ${PROJECT_SOURCE_DIR}
    $<TARGET_FILE:attn_cli>)
endif()
