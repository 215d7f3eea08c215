"""Exact attention, fast on CPUs, with every number shown.

    >>> import numpy, attn
    >>> q = k = v = numpy.ones((1, 8, 16, 64), numpy.float32)
    >>> attn.attention(q, k, v, causal=True).shape
    (1, 8, 16, 64)

Arrays are NumPy's (float32, float64, float16, and bfloat16 by ml_dtypes) or anything else with DLPack, such as torch tensors;
their memory is used as it lies, with any strides. ``attn.torch`` speaks PyTorch's own function.
"""

from attn._attention import attention, merge, plan, rotate, weights
from attn._cache import KvCache
from attn._check import Diagnosis, check, mistakes
from attn._explain import explain
from attn._plot import plot_weights
from attn._targets import force_isa, isa, isas
from attn._core import version as _version

__version__ = _version()

__all__ = [
    "Diagnosis",
    "KvCache",
    "attention",
    "check",
    "explain",
    "force_isa",
    "isa",
    "isas",
    "merge",
    "mistakes",
    "plan",
    "plot_weights",
    "rotate",
    "weights",
]
