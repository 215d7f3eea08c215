"""Is somebody's answer right, and if not, which mistake is it?"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Sequence, Union

from attn import _core
from attn._types import Align, Array, Causal, Layout, Window, heads_last


class Diagnosis:
    """What ``check`` found. True where the answer is right; as a str, sentences.

    Attributes:
        verdict: "right", "wrong" (and known mistakes give these very numbers) or "unexplained".
        right: whether the verdict is "right".
        max_error, bound: the largest difference from attention in float64, and what is allowed there.
        mistakes: ids of the best explanation; empty where there is none.
        details: all of it, with the keys of ``attn check --json``.
    """

    def __init__(self, text: str, details: Dict[str, Any]) -> None:
        self._text = text
        self.details = details
        self.verdict: str = details["verdict"]
        self.max_error: float = float(details["max_error"])
        self.bound: float = float(details["bound"])
        explanations = details["explanations"]
        self.mistakes: List[str] = explanations[0]["ids"] if explanations else []

    @property
    def right(self) -> bool:
        return self.verdict == "right"

    def __bool__(self) -> bool:
        return self.right

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def __repr__(self) -> str:
        known = f", mistakes={self.mistakes}" if self.mistakes else ""
        return f"<attn.Diagnosis {self.verdict}, max_error={self.max_error:.3g}, bound={self.bound:.3g}{known}>"


def check(
    q: Array,
    k: Array,
    v: Array,
    theirs: Array,
    *,
    weights: Optional[Array] = None,
    lse: Optional[Array] = None,
    tolerance: Optional[float] = None,
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
) -> Diagnosis:
    """Holds an answer against attention in float64, and says which known mistake explains it where it is wrong.

    Args:
        theirs: [B, Hq, N, Dv], the answer; in the dtype that it was stored in, which the bound depends on.
        weights, lse: theirs, [B, Hq, N, M] and [B, Hq, N], where known: they say on which side a mistake lies.
        tolerance: this difference is allowed everywhere, instead of the bound.

    All else says what was asked for, as for ``attention``.

    Example:
        >>> import numpy, attn
        >>> q, k, v = numpy.random.default_rng(0).standard_normal((3, 2, 8, 16), numpy.float32)
        >>> scores = q @ k.transpose(0, 2, 1)  # no 1/sqrt(16)
        >>> weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        >>> theirs = weights / weights.sum(-1, keepdims=True) @ v
        >>> attn.check(q, k, v, theirs).mistakes
        ['scale-missing']
        >>> assert attn.check(q, k, v, attn.attention(q, k, v))
    """
    text, details = _core.check(
        q, k, v, theirs, weights, lse, tolerance, heads_last(layout),
        (causal, align, window, sink_tokens, mask, bias, alibi, sinks, scale, softcap, key_lengths, query_lengths, None, None,
         0, False, None),
    )
    return Diagnosis(text, json.loads(details))


def mistakes() -> List[str]:
    """The ids of all known mistakes; ``explain(mistake=...)`` shows one."""
    return _core.mistakes().split()
