"""Attention in float64 with NumPy, written plainly: what the tests hold results against."""

import numpy


def attention(q, k, v, *, scale=None, visible=None, bias=None):
    """q [B, Hq, N, D], k and v [B, Hkv, M, D]; visible broadcasts to [B, Hq, N, M]. Rows that see nothing are 0."""
    q, k, v = (numpy.asarray(one, numpy.float64) for one in (q, k, v))
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat(groups, axis=1), v.repeat(groups, axis=1)
    scores = q @ k.swapaxes(-1, -2) * (1 / numpy.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = scores + numpy.asarray(bias, numpy.float64)
    if visible is not None:
        scores = numpy.where(numpy.broadcast_to(visible, scores.shape), scores, -numpy.inf)
    largest = scores.max(-1, keepdims=True, initial=-numpy.inf)
    weights = numpy.exp(scores - numpy.where(numpy.isfinite(largest), largest, 0))
    total = weights.sum(-1, keepdims=True)
    return numpy.divide(weights, total, out=numpy.zeros_like(weights), where=total > 0) @ v


def normal(generator, *shape, dtype=numpy.float32):
    return generator.standard_normal(shape, numpy.float32).astype(dtype)
