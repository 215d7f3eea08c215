"""One call of attention, from NumPy: the worked example."""

import numpy

import attn

q = numpy.array([[2, 1], [0, 1], [1, 1]], numpy.float32)
k = numpy.array([[2, 1], [0, 1], [1, 0]], numpy.float32)
v = numpy.array([[3, 0], [0, 4], [1, 1]], numpy.float32)
out, weights = attn.attention(q, k, v, causal=True, return_weights=True)
print(out.round(2))
print(weights.round(3))
