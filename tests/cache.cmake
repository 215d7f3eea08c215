# The KV cache: against tensors that hold the same numbers, and against a simple model of itself.
add_library(attn_cache_support STATIC cache_model.cc cache_problem.cc)
target_link_libraries(attn_cache_support PUBLIC attn_engine_support)

foreach(test attend chunks errors file operations store threads)
  attn_test(cache_${test}_test attn_cache_support)
endforeach()
find_package(ZLIB REQUIRED)
target_link_libraries(cache_file_test PRIVATE ZLIB::ZLIB)

# What lies beside the repository, where it is there.
foreach(test conformance real)
  attn_test(engine_${test}_test attn_cache_support attn_formats nlohmann_json::nlohmann_json)
  target_sources(engine_${test}_test PRIVATE onnx_case.cc)
  target_compile_definitions(engine_${test}_test PRIVATE ATTN_SHARED="${PROJECT_SOURCE_DIR}/../shared")
endforeach()
