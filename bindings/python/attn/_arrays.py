"""Arrays that are not NumPy's own."""

from __future__ import annotations

import sys

import numpy

from attn import _core


def _allocate(like, shape, dtype: str):
    """A new array of the kind of ``like``: results are of the kind of their query."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")
    if dtype == "bfloat16":
        import ml_dtypes

        return numpy.empty(shape, ml_dtypes.bfloat16)
    return numpy.empty(shape, dtype)


def table_of(rows):
    """Lists of numbers as an array; arrays as they are."""
    return numpy.array(rows, numpy.float64) if isinstance(rows, (list, tuple)) else rows


_core.use_allocator(_allocate)
