# Models: their tokenizers.
attn_test(model_tokenizer_test attn_model)
target_compile_definitions(model_tokenizer_test PRIVATE ATTN_SHARED="${PROJECT_SOURCE_DIR}/../shared")
