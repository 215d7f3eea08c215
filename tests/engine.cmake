# The engine: against the float64 reference, against itself, against wrong input, and against cases made elsewhere.
find_package(rapidcheck REQUIRED)
find_package(nlohmann_json REQUIRED)

# Tensors that own their memory, problems, random problems, and the judge.
add_library(attn_engine_support STATIC
  engine_judge.cc
  engine_parts.cc
  engine_problem.cc
  engine_random.cc
  engine_tensor.cc
)
target_link_libraries(attn_engine_support PUBLIC attn attn_reference GTest::gtest rapidcheck)

foreach(test accuracy allocations bf16 bits chunks edges environment errors grid hostile numbers options plan poison properties rope same_keys
        states threads)
  attn_test(engine_${test}_test attn_engine_support)
endforeach()

target_sources(engine_allocations_test PRIVATE allocations.cc)

# 16-bit products by vectors, also where the processor has matrix registers.
add_test(NAME engine_bf16_test_dot COMMAND engine_bf16_test)
set_tests_properties(engine_bf16_test_dot PROPERTIES ENVIRONMENT ATTN_BF16=dot)
