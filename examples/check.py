"""Is your own attention right? A plain one with a mistake in it, and what the judge says."""

import numpy

import attn


def my_attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / numpy.sqrt(q.shape[-1])
    hidden = ~numpy.tri(*scores.shape[-2:], dtype=bool)
    scores = numpy.where(hidden, 0, scores)  # the mistake: hidden scores are 0 and not -inf
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


q, k, v = numpy.random.default_rng(0).standard_normal((3, 1, 4, 32, 16), numpy.float32)
print(attn.check(q, k, v, my_attention(q, k, v), causal=True))
