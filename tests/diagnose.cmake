# The judge of other people's answers.
add_library(diagnose_problem STATIC diagnose_problem.cc)
target_link_libraries(diagnose_problem PUBLIC attn_diagnose)
attn_test(diagnose_check_test diagnose_problem)
attn_test(diagnose_probe_test diagnose_problem)
