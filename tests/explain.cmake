# The worked example to its last digit, the lesson in every format, specifications and what-ifs; the verb.
foreach(name explain_example_test explain_lesson_test explain_formats_test explain_specification_test
    explain_changes_test explain_page_problem_test)
  attn_test(${name} attn_explain)
endforeach()
attn_test(explain_map_test attn_pictures)
target_compile_definitions(explain_example_test PRIVATE
  ATTN_BY_HAND="${PROJECT_SOURCE_DIR}/../shared/spec/by-hand.json")
if(TARGET attn_cli)
  attn_test(explain_verb_test attn_explain attn_formats)
  target_compile_definitions(explain_verb_test PRIVATE ATTN_PROGRAM="$<TARGET_FILE:attn_cli>")
  add_dependencies(explain_verb_test attn_cli)
endif()
