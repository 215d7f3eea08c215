# The judge and what it is judged by: hand-computed cases, an independent formula, the worked example.
attn_test(reference_attention_test attn_reference)
attn_test(reference_options_test attn_reference)
attn_test(reference_bound_test attn_reference)
attn_test(reference_trace_test attn_reference)
