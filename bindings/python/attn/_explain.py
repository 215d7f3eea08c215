"""Attention worked by hand."""

from __future__ import annotations

import json
from typing import Any, Optional, Sequence, Union

from attn import _core
from attn._arrays import table_of
from attn._types import Align, Array, Causal, Window


def explain(
    q: Optional[Array] = None,
    k: Optional[Array] = None,
    v: Optional[Array] = None,
    *,
    x: Optional[Array] = None,
    wq: Optional[Array] = None,
    wk: Optional[Array] = None,
    wv: Optional[Array] = None,
    tokens: Optional[Sequence[str]] = None,
    heads: int = 1,
    tile: int = 0,
    cache: bool = False,
    mistake: Optional[str] = None,
    format: str = "text",
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
) -> Any:
    """Every number of every step, in float64, of at most 64 tokens.

    Args:
        q, k, v: [N, D] or [H, N, D], as lists or arrays, as many heads and rows of each;
        x, wq, wk, wv: or embeddings [N, C] and the matrices that make q, k and v of them, whose columns ``heads`` splits.
        tokens: what to call the rows.
        tile: also tile by tile, as FlashAttention does it, with so many keys a tile.
        cache: also token by token, through a KV cache.
        mistake: a known mistake, made beside the right numbers; ``attn.mistakes()`` lists them.
        format: "text", "markdown", "latex", or "json".

    All else is as for ``attention``.

    Returns:
        A str; with format "json" a dict: q, k, v, scores, scaled, masked, weights, out …, rows are queries. What is not finite is
        "inf", "-inf" or "nan" in it.

    Example:
        >>> import attn
        >>> q, k, v = [[2, 1], [0, 1]], [[2, 1], [0, 1]], [[3, 0], [0, 4]]
        >>> print(attn.explain(q, k, v, tokens=["order", "4471"], causal=True)[:25])
        Attention, worked by hand
        >>> attn.explain(q, k, v, causal=True, format="json")["weights"]
        [[1, 0], [0.5, 0.5]]
    """
    text = _core.explain(
        *(table_of(one) for one in (q, k, v, x, wq, wk, wv)), tokens, heads, tile, cache, mistake, format,
        (causal, align, window, sink_tokens, mask, bias, alibi, sinks, scale, softcap, key_lengths, None, None, None, 0, False,
         None),
    )
    return json.loads(text) if format == "json" else text
