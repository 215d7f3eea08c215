# Models: their tokenizers, products and layers.
add_library(model_problem STATIC decoder_judge.cc small_encoder.cc small_model.cc)
target_link_libraries(model_problem PUBLIC attn_model attn_reference)

foreach(name model_decoder_test model_encoder_test model_linear_test model_map_test
    model_mutation_test model_named_test model_tokenizer_test)
  attn_test(${name} model_problem)
  target_compile_definitions(${name} PRIVATE ATTN_SHARED="${PROJECT_SOURCE_DIR}/../shared")
endforeach()
