# The house: includes run one way, the library never prints or ends the program, and what README.md says is so.
add_test(NAME house_includes COMMAND ${PROJECT_SOURCE_DIR}/.ci/check_includes)
add_test(NAME house_checks COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/house_checks_test.sh ${PROJECT_SOURCE_DIR}
  ${CMAKE_CXX_COMPILER})
if(TARGET attn)
  add_test(NAME house_symbols COMMAND ${PROJECT_SOURCE_DIR}/.ci/check_symbols $<TARGET_FILE:attn>)
endif()
