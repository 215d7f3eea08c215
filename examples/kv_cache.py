"""Decoding with a KV cache: a prompt, then token by token; two continuations share it, and one takes tokens back."""

import numpy

import attn

QUERY_HEADS, HEADS, DIM = 8, 2, 64
generator = numpy.random.default_rng(0)


def step(cache, sequence, tokens):
    """Appends tokens, and attends with their queries. A model would make q, k and v of its hidden states."""
    q, k, v = (generator.standard_normal((heads, tokens, DIM), numpy.float32) for heads in (QUERY_HEADS, HEADS, HEADS))
    cache.append(sequence, k, v)
    return cache.attend(sequence, q)


cache = attn.KvCache(HEADS, DIM, type="bf16")
first = cache.add_sequence()
step(cache, first, 300)  # the prompt
second = cache.fork(first)  # both continue it
for _ in range(20):
    out = step(cache, first, 1)
    step(cache, second, 1)
cache.truncate(second, 310)  # takes 10 tokens back
usage = cache.usage()
print(f"{cache.length(first)} and {cache.length(second)} tokens in {usage['pages_in_use']} pages; out {out.shape}")
