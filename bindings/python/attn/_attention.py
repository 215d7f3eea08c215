"""Attention itself, and what belongs to it."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple, Union

from attn import _arrays, _core  # noqa: F401  (_arrays: how results come to be of q's kind)
from attn._types import Align, Array, Causal, Layout, Window, heads_last


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: Causal = False,
    align: Align = None,
    window: Window = None,
    sink_tokens: int = 0,
    mask: Optional[Array] = None,
    bias: Optional[Array] = None,
    alibi: Union[bool, Array] = False,
    sinks: Optional[Array] = None,
    scale: Optional[float] = None,
    softcap: Optional[float] = None,
    key_lengths: Optional[Sequence[int]] = None,
    query_lengths: Optional[Sequence[int]] = None,
    query_starts: Optional[Sequence[int]] = None,
    key_starts: Optional[Sequence[int]] = None,
    bf16_products: bool = False,
    layout: Layout = "bhsd",
    out: Optional[Array] = None,
    return_lse: bool = False,
    return_weights: bool = False,
    threads: Optional[int] = None,
) -> Any:
    """softmax(q·kᵀ·scale + masks)·v, exactly, without ever storing the table of scores.

    Args:
        q: [B, Hq, N, Dk], [Hq, N, Dk] or [N, Dk].
        k: [B, Hkv, M, Dk]; Hq is a multiple of Hkv (grouped queries).
        v: [B, Hkv, M, Dv], of k's dtype.
        causal: query i sees the keys up to its own position. True needs N = M; where they differ, say where queries
            sit: "bottom-right" (the last query at the last key, as with a KV cache) or "top-left".
        align: where queries sit, for ``causal=True``, ``window`` and ``alibi``: the same words, a whole number (the position of the
            first query), or one for each sequence.
        window: only keys so far from the query: ``left``, or ``(left, right)``, where None is no bound. "W keys, itself
            included" is ``causal=True, window=W - 1``.
        sink_tokens: the first keys, which stay visible whatever the window says.
        mask: bool, True = may attend; [B, Hq, N, M] or what broadcasts to it.
        bias: added to scores; shape as for ``mask``. float32, float16 or bfloat16 (float64 where q is).
        alibi: True for the standard slopes, or [Hq] of them.
        sinks: [Hq]: a logit a head that joins the softmax and has no value.
        scale: multiplies q·k; 1/sqrt(Dk) by default.
        softcap: c > 0: a score becomes c·tanh(score/c).
        key_lengths, query_lengths: valid keys (queries) of each sequence: [B]. What lies behind is never used.
        query_starts, key_starts: packed sequences: [B + 1] ascending starts (cu_seqlens), both together.
        bf16_products: multiplies in bfloat16, where the processor can: faster and less accurate.
        layout: "bhsd", or "bshd" for [B, S, H, D]; of q, k, v and out.
        out: where to write; q's dtype, or float32.
        return_lse: also return log Σ e^score of each row, [B, Hq, N].
        return_weights: also return the table of weights, [B, Hq, N, M], made on the side.
        threads: how many; by default one a processor, or ``ATTN_THREADS``. The bits are the same with any number.

    Returns:
        out, [B, Hq, N, Dv] in q's dtype; or a tuple (out, lse), (out, weights) or (out, lse, weights). A row that sees no key is
        0, its lse −∞.

    Raises:
        ValueError, TypeError: one sentence that names the argument and what would be right.

    Example:
        >>> import numpy, attn
        >>> q = numpy.array([[2, 1], [0, 1], [1, 1]], numpy.float32)
        >>> k = numpy.array([[2, 1], [0, 1], [1, 0]], numpy.float32)
        >>> v = numpy.array([[3, 0], [0, 4], [1, 1]], numpy.float32)
        >>> attn.attention(q, k, v, causal=True).round(2)
        array([[3.  , 0.  ],
               [1.5 , 2.  ],
               [2.18, 0.82]], dtype=float32)
    """
    result = _core.attention(
        q, k, v, out, return_lse, return_weights, layout != "bhsd" and heads_last(layout),
        (causal, align, window, sink_tokens, mask, bias, alibi, sinks, scale, softcap, key_lengths, query_lengths,
         query_starts, key_starts, 0, bf16_products, threads),
    )
    if not return_lse and not return_weights:
        return result
    out, lse, table = result
    return (out, lse, table) if return_lse and return_weights else (out, lse) if return_lse else (out, table)


def weights(
    q: Array,
    k: Array,
    *,
    rows: Optional[Sequence[int]] = None,
    heads: Optional[Sequence[int]] = None,
    causal: Causal = False,
    align: Align = None,
    window: Window = None,
    sink_tokens: int = 0,
    mask: Optional[Array] = None,
    bias: Optional[Array] = None,
    alibi: Union[bool, Array] = False,
    sinks: Optional[Array] = None,
    scale: Optional[float] = None,
    softcap: Optional[float] = None,
    key_lengths: Optional[Sequence[int]] = None,
    query_lengths: Optional[Sequence[int]] = None,
    layout: Layout = "bhsd",
    threads: Optional[int] = None,
) -> Any:
    """The weights of chosen rows and heads, [B, heads, rows, M]: what each query makes of each key.

    ``rows`` and ``heads`` are numbers of queries and query heads; None: all. Everything else is as for ``attention``.

    Example:
        >>> import numpy, attn
        >>> q = numpy.array([[2, 1], [0, 1], [1, 1]], numpy.float32)
        >>> k = numpy.array([[2, 1], [0, 1], [1, 0]], numpy.float32)
        >>> attn.weights(q, k, causal=True, rows=[2]).round(3)
        array([[0.673, 0.164, 0.164]], dtype=float32)
    """
    return _core.weights(
        q, k, rows, heads, heads_last(layout),
        (causal, align, window, sink_tokens, mask, bias, alibi, sinks, scale, softcap, key_lengths, query_lengths, None, None,
         0, False, threads),
    )


def plan(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: Causal = False,
    align: Align = None,
    window: Window = None,
    sink_tokens: int = 0,
    mask: Optional[Array] = None,
    bias: Optional[Array] = None,
    alibi: Union[bool, Array] = False,
    sinks: Optional[Array] = None,
    scale: Optional[float] = None,
    softcap: Optional[float] = None,
    key_lengths: Optional[Sequence[int]] = None,
    query_lengths: Optional[Sequence[int]] = None,
    query_starts: Optional[Sequence[int]] = None,
    key_starts: Optional[Sequence[int]] = None,
    bf16_products: bool = False,
    layout: Layout = "bhsd",
    threads: Optional[int] = None,
) -> Dict[str, Any]:
    """What ``attention`` would do with these arguments, without doing it: path, tiles, operations, bytes.

    Example:
        >>> import numpy, attn
        >>> q = numpy.ones((8, 1000, 64), numpy.float32)
        >>> attn.plan(q, q, q, causal=True)["table_bytes"]
        32000000.0
    """
    return _core.plan(
        q, k, v, heads_last(layout),
        (causal, align, window, sink_tokens, mask, bias, alibi, sinks, scale, softcap, key_lengths, query_lengths,
         query_starts, key_starts, 0, bf16_products, threads),
    )


def merge(outs: Sequence[Array], lses: Sequence[Array]) -> Tuple[Any, Any]:
    """Joins results over disjoint sets of keys: (out, lse) as if all keys had been there at once, within the bound.

    ``outs[i]``, ``lses[i]``: what ``attention(..., return_lse=True)`` gave for the i-th set, [B, Hq, N, Dv] and [B, Hq, N].

    Example:
        >>> import numpy, attn
        >>> q, k = numpy.ones((1, 2, 4), numpy.float32), numpy.ones((1, 6, 4), numpy.float32)
        >>> left, right = attn.attention(q, k[:, :4], k[:, :4], return_lse=True), attn.attention(q, k[:, 4:], k[:, 4:], return_lse=True)
        >>> out, lse = attn.merge([left[0], right[0]], [left[1], right[1]])
        >>> bool(numpy.allclose(out, attn.attention(q, k, k)))
        True
    """
    return _core.merge(outs, lses)


def rotate(
    x: Array,
    positions: Optional[Sequence[int]] = None,
    *,
    interleaved: bool = False,
    rotary_dim: int = 0,
    base: float = 10000.0,
    scaling: str = "none",
    factor: float = 1.0,
    original_length: int = 0,
    out: Optional[Array] = None,
) -> Any:
    """Rotary positions: turns each row of x [B, H, N, D] by its position.

    Args:
        positions: [N], or [B·N]; by default 0, 1, 2, …
        interleaved: pairs are neighbours (0, 1), (2, 3), … instead of halves (0, D/2), …
        rotary_dim: how many of the D numbers turn; 0: all.
        scaling: "none", "linear", "ntk" or "yarn", by ``factor`` (and ``original_length``).
        out: where to write; may be x.

    Example:
        >>> import numpy, attn
        >>> x = numpy.array([[1, 0], [1, 0]], numpy.float32)
        >>> attn.rotate(x).round(3)
        array([[1.   , 0.   ],
               [0.54 , 0.841]], dtype=float32)
    """
    return _core.rotate(x, out, positions, interleaved, rotary_dim, base, scaling, factor, original_length)
