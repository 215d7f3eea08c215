"""KV caches."""

from __future__ import annotations

import os
from operator import index
from threading import RLock
from typing import Any, Dict, Optional, Sequence, Union

from attn import _core
from attn._types import Align, Array, Causal, Window

Sequences = Union[int, Sequence[int]]


def _list(sequences: Sequences) -> Sequence[int]:
    """Numbers, before any lock is held: what gives them may be code of the caller's."""
    if hasattr(sequences, "__iter__"):
        return list(sequences)
    try:
        return [index(sequences)]
    except TypeError:
        raise TypeError("sequences: neither a whole number nor a list of them; give what add_sequence() gave") from None


class KvCache:
    """Keys and values of many sequences, stored once and read by every later query.

    Args:
        kv_heads: Hkv.
        key_dim: Dk.
        value_dim: Dv; Dk by default.
        type: "f32", "bf16", "f16" or "q8" (8 bits and a scale for every 32 numbers).
        page_tokens: how many tokens of a sequence share a page.
        most_bytes: refuses to grow beyond; None: as many as the machine gives.

    With "f32" the bits of a result are those of attention over all the keys at once. Calls on one cache from several threads
    take turns.

    Example:
        >>> import numpy, attn
        >>> q = numpy.array([[[2, 1], [0, 1], [1, 1]]], numpy.float32)
        >>> k = numpy.array([[[2, 1], [0, 1], [1, 0]]], numpy.float32)
        >>> v = numpy.array([[[3, 0], [0, 4], [1, 1]]], numpy.float32)
        >>> cache = attn.KvCache(kv_heads=1, key_dim=2)
        >>> sequence = cache.add_sequence()
        >>> for token in range(3):
        ...     one = slice(token, token + 1)
        ...     cache.append(sequence, k[:, one], v[:, one])
        ...     out = cache.attend(sequence, q[:, one])
        >>> out.round(2)
        array([[[2.18, 0.82]]], dtype=float32)
    """

    def __init__(
        self,
        kv_heads: int,
        key_dim: int,
        value_dim: Optional[int] = None,
        *,
        type: str = "f32",
        page_tokens: int = 256,
        most_bytes: Optional[int] = None,
    ) -> None:
        self._lock = RLock()
        self._cache = _core.cache_create(kv_heads, key_dim, value_dim or 0, type, page_tokens, most_bytes)
        self._value_dim = self.options["value_dim"]

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"], *, most_bytes: Optional[int] = None) -> "KvCache":
        """What ``save`` wrote."""
        cache = cls.__new__(cls)
        cache._lock = RLock()
        cache._cache = _core.cache_load(path, most_bytes)
        cache._value_dim = cache.options["value_dim"]
        return cache

    @property
    def options(self) -> Dict[str, Any]:
        """What it was made with: kv_heads, key_dim, value_dim, type, page_tokens."""
        return _core.cache_options(self._cache)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes all of it to a file; what was there stays until it is complete."""
        with self._lock:
            _core.cache_save(self._cache, path)

    def add_sequence(self) -> int:
        """A new, empty sequence; its number."""
        with self._lock:
            return _core.cache_add_sequence(self._cache)

    def append(self, sequences: Sequences, k: Array, v: Array, *, starts: Optional[Sequence[int]] = None) -> None:
        """Appends keys [B, Hkv, tokens, Dk] and values [B, Hkv, tokens, Dv], one batch entry a sequence; B is left out for one.

        starts: with packed sequences, [sequences + 1] ascending starts of their tokens.
        """
        numbers, starts = _list(sequences), None if starts is None else list(starts)
        with self._lock:
            _core.cache_append(self._cache, numbers, k, v, starts)

    def attend(
        self,
        sequences: Sequences,
        q: Array,
        *,
        causal: Causal = True,
        align: Align = None,
        window: Window = None,
        sink_tokens: int = 0,
        mask: Optional[Array] = None,
        bias: Optional[Array] = None,
        alibi: Union[bool, Array] = False,
        sinks: Optional[Array] = None,
        scale: Optional[float] = None,
        softcap: Optional[float] = None,
        query_lengths: Optional[Sequence[int]] = None,
        query_starts: Optional[Sequence[int]] = None,
        bf16_products: bool = False,
        out: Optional[Array] = None,
        return_lse: bool = False,
        threads: Optional[int] = None,
    ) -> Any:
        """Attention of queries [B, Hq, N, Dk] over what their sequences hold; the last query sits at the last token.

        Options and results are as for ``attn.attention``; causal by default.
        """
        numbers = _list(sequences)
        with self._lock:
            return _core.cache_attend(
                self._cache, numbers, q, out, return_lse, self._value_dim,
                (causal, align, window, sink_tokens, mask, bias, alibi, sinks, scale, softcap, None, query_lengths,
                 query_starts, None, 0, bf16_products, threads),
            )

    def fork(self, sequence: int) -> int:
        """A sequence that continues the same tokens; they are shared until one of both changes them."""
        with self._lock:
            return _core.cache_fork(self._cache, sequence)

    def truncate(self, sequence: int, tokens: int) -> None:
        """Takes back all but the first ``tokens``."""
        with self._lock:
            _core.cache_truncate(self._cache, sequence, tokens)

    def drop_before(self, sequence: int, position: int, *, sink_tokens: int = 0) -> None:
        """Gives up tokens before ``position`` but the first ``sink_tokens``; no later query may look at them."""
        with self._lock:
            _core.cache_drop_before(self._cache, sequence, position, sink_tokens)

    def release(self, sequence: int) -> None:
        """Forgets a sequence."""
        with self._lock:
            _core.cache_release(self._cache, sequence)

    def length(self, sequence: int) -> int:
        """How many tokens a sequence has had. ValueError where there is none of that number."""
        with self._lock:
            tokens = _core.cache_length(self._cache, sequence)
        if tokens < 0:
            raise ValueError(f"sequence: {sequence} is not in this cache")
        return tokens

    def reserve(self, tokens: int) -> None:
        """Gets memory for so many more tokens, so that appending them can't fail."""
        with self._lock:
            _core.cache_reserve(self._cache, tokens)

    def usage(self) -> Dict[str, int]:
        """page_bytes, pages, pages_in_use, sequences, tokens and bytes."""
        with self._lock:
            return _core.cache_usage(self._cache)
