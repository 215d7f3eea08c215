# The command line, driven from outside: these tests run the program that was built.
if(TARGET attn_cli)
  find_package(nlohmann_json REQUIRED)
  foreach(name cli_bench_test cli_check_test cli_explore_requests_test cli_explore_test cli_models_test cli_page_test
      cli_probe_test cli_refusals_test cli_run_test cli_verbs_test)
    attn_test(${name} attn_explain attn_formats attn nlohmann_json::nlohmann_json)
    target_compile_definitions(${name} PRIVATE ATTN_PROGRAM="$<TARGET_FILE:attn_cli>"
      ATTN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ATTN_HAS_PAGE=$<BOOL:${ATTN_BUILD_PAGE}>)
    add_dependencies(${name} attn_cli)
  endforeach()
  foreach(name cli_explore_requests_test cli_explore_test cli_models_test)
    target_link_libraries(${name} PRIVATE model_problem)
  endforeach()
  target_link_libraries(cli_probe_test PRIVATE attn_diagnose)
  target_compile_definitions(cli_probe_test PRIVATE ATTN_CXX="${CMAKE_CXX_COMPILER}")
endif()
