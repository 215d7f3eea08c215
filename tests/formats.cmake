# formats/: reading and writing tensor files.
foreach(test gguf npy npz safetensors write mutation numpy elsewhere)
  attn_test(formats_${test}_test attn_formats)
endforeach()
target_sources(formats_mutation_test PRIVATE allocations.cc)
foreach(test elsewhere gguf)
  target_compile_definitions(formats_${test}_test PRIVATE ATTN_SHARED="${PROJECT_SOURCE_DIR}/../shared")
endforeach()
