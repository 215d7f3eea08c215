# The engine: against the float64 reference, against itself, against wrong input, and against cases made elsewhere.
find_package(rapidcheck REQUIRED)

# Tensors that own their memory, problems, random problems, and the judge.
add_library(attn_engine_support STATIC
  engine_judge.cc
  engine_parts.cc
  engine_problem.cc
  engine_random.cc
  engine_tensor.cc
)
target_link_libraries(attn_engine_support PUBLIC attn attn_reference GTest::gtest rapidcheck)

foreach(test accuracy bits chunks states same_keys environment edges poison numbers properties options errors hostile plan threads)
  attn_test(engine_${test}_test attn_engine_support)
endforeach()
