"""PyTorch's own attention function, computed by attn: on CPU tensors, without gradients.

    >>> import torch, attn.torch
    >>> q = torch.ones(1, 8, 16, 64)
    >>> attn.torch.scaled_dot_product_attention(q, q, q, is_causal=True).shape
    torch.Size([1, 8, 16, 64])
    >>> with torch.no_grad(), attn.torch.enable() as routing:
    ...     out = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    >>> routing.calls
    1

``register_with_transformers()`` makes it an attention implementation of Hugging Face's transformers.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import math
import threading
from typing import Any, Counter, Iterator, Optional

import numpy
import torch
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode

import attn

__all__ = ["Routing", "enable", "register_with_transformers", "scaled_dot_product_attention"]

_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: Optional[torch.Tensor] = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """As ``torch.nn.functional.scaled_dot_product_attention``, argument by argument.

    Args:
        query: [..., Hq, L, E], on the CPU: float32, bfloat16, float16 or float64.
        key: [..., H, S, E]; with ``enable_gqa`` Hq may be a multiple of H.
        value: [..., H, S, Ev].
        attn_mask: bool, True = may attend, or float, added to scores; it broadcasts to [..., Hq, L, S].
        is_causal: row i sees keys up to i, counted from the first, as torch does.

    Raises:
        NotImplementedError: for dropout, and for tensors that need a gradient while gradients are recorded.
        ValueError, TypeError: shapes, dtypes and devices that do not fit.

    Where the meaning differs from torch's: a row that sees no key is 0 (torch: NaN in some versions); a key that is hidden changes
    nothing, not even with NaN or infinity in it.
    """
    for name, tensor in (("query", query), ("key", key), ("value", value), ("attn_mask", attn_mask)):
        if not isinstance(tensor, torch.Tensor) and not (tensor is None and name == "attn_mask"):
            raise TypeError(f"{name}: a {type(tensor).__name__}, but this function takes torch tensors; attn.attention takes all arrays")
    reason = _what_is_missing(query, key, value, attn_mask, dropout_p)
    if reason:
        raise NotImplementedError(reason)
    if is_causal and attn_mask is not None:
        raise ValueError("attn_mask: given together with is_causal, which torch refuses as well; put both into the mask")
    return _attend(query, key, value, attn_mask, is_causal, scale, enable_gqa)


def _what_is_missing(query, key, value, attn_mask, dropout_p: float) -> str:
    """What attn can't do yet in such a call; "" where it can all."""
    if dropout_p != 0.0:
        return f"dropout_p: {dropout_p}; dropout is not available in this version; give 0"
    if torch._C._len_torch_dispatch_stack() > 0:
        return "query: inside a dispatch mode, which would not see what attn computes; leave the mode"
    if forward_ad._current_level >= 0:
        return "query: inside forward-mode differentiation, which is not available in this version; leave dual_level()"
    if torch.is_grad_enabled():
        for name, tensor in (("query", query), ("key", key), ("value", value), ("attn_mask", attn_mask)):
            if tensor is not None and tensor.requires_grad:
                return (f"{name}: needs a gradient, and backward is not available in this version; call it under torch.no_grad() "
                        "or torch.inference_mode()")
    return ""


def _attend(query, key, value, attn_mask, is_causal, scale, enable_gqa, out=None, **options) -> torch.Tensor:
    for name, tensor in (("query", query), ("key", key), ("value", value), ("attn_mask", attn_mask)):
        if tensor is not None and tensor.device.type != "cpu":
            raise ValueError(f"{name}: on device {tensor.device}; attn computes on the CPU, so bring it there first")
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(f"key, value: dtypes {key.dtype} and {value.dtype}, but query has {query.dtype}; all three share one")
    query, key, value, batch = _same_batch(query, key, value, enable_gqa)
    rows = query.shape[-2]
    mask = bias = None
    if attn_mask is not None:
        attn_mask = _folded_mask(_plain(attn_mask), batch)
        mask, bias = (attn_mask, None) if attn_mask.dtype == torch.bool else (None, attn_mask)
    result = attn.attention(
        query, key, value, causal="top-left" if is_causal else False, mask=mask, bias=bias, scale=scale, out=out, **options
    )
    return result if result.shape[:-2] == batch else result.reshape(*batch, rows, value.shape[-1])


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Without what torch records of it, or does to it later: DLPack hands out the memory as it is."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    return tensor.resolve_neg() if tensor.is_neg() else tensor


def _same_batch(query, key, value, enable_gqa: bool):
    """Tensors of up to four dimensions with equal batches, broadcast where torch does and folded where there are more dimensions;
    and what the result's dimensions before its rows are."""
    query, key, value = _plain(query), _plain(key), _plain(value)
    batch = query.shape[:-2]
    if query.dim() == key.dim() == value.dim() <= 4 and batch == key.shape[:-2] == value.shape[:-2]:
        return query, key, value, batch
    first = -3 if enable_gqa else -2
    try:
        outer = torch.broadcast_shapes(query.shape[:first], key.shape[:first], value.shape[:first])
    except RuntimeError:
        shapes = ", ".join(str(list(one.shape)) for one in (query, key, value))
        rule = "three dimensions must broadcast" if enable_gqa else ("two dimensions must broadcast; where key has fewer heads than "
                                                                     "query, give enable_gqa=True")
        raise ValueError(f"query, key, value: shapes {shapes}; all but the last {rule}") from None
    query, key, value = (one.expand(*outer, *one.shape[first:]) for one in (query, key, value))
    batch = query.shape[:-2]
    if query.dim() > 4:
        query, key, value = (one.reshape(-1, *one.shape[-3:]) for one in (query, key, value))
    return query, key, value, batch


def _folded_mask(mask: torch.Tensor, batch) -> torch.Tensor:
    """A mask of more than four dimensions, folded as the query is."""
    if mask.dim() <= 4 and len(batch) <= 2:
        return mask
    return mask.expand(*batch, *mask.shape[-2:]).reshape(-1, batch[-1], *mask.shape[-2:])


class Routing:
    """What ``enable`` did: how many calls there were, how many attn computed, and why it left the others to torch."""

    def __init__(self) -> None:
        self.routed = 0
        self.left: Counter[str] = collections.Counter()
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        return self.routed + sum(self.left.values())

    def _record(self, reason: str) -> None:
        with self._lock:
            if reason:
                self.left[reason] += 1
            else:
                self.routed += 1

    def __str__(self) -> str:
        left = "".join(f"\n  {count} left to torch: {reason}" for reason, count in self.left.most_common())
        return f"{self.calls} calls of scaled_dot_product_attention, {self.routed} computed by attn" + left


def _why_left(query, key, value, attn_mask, dropout_p, is_causal, everything: bool) -> str:
    """Why torch keeps a call; "" where attn takes it."""
    for tensor in (query, key, value, attn_mask):
        if tensor is not None and (type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided):
            return "not plain tensors"
    if query.device.type != "cpu":
        return "not on the CPU"
    if query.dtype not in _DTYPES or not query.dtype == key.dtype == value.dtype:
        return "another dtype"
    if dropout_p != 0.0:
        return "dropout"
    if torch.jit.is_tracing() or torch._C._len_torch_dispatch_stack() > 0:
        return "being traced"
    if _what_is_missing(query, key, value, attn_mask, dropout_p):
        return "needs a gradient"
    if is_causal and attn_mask is not None:
        return "is_causal beside a mask"
    if query.dim() < 2:
        return "attn refuses it"
    if not everything and _is_slower(query, key):
        return "torch is as fast"
    return ""


# Where attn was faster than PyTorch 2.6 with two threads and AMX (docs/python.md has the table and the command): calls of fewer
# multiply-adds cost more on the way from torch to attn and back than they save.
_LEAST_WORK_32_BITS = 2e7
_LEAST_WORK_16_BITS = 3e4
_FEWEST_ROWS_32_BITS = 8  # below, torch reads keys that lie row by row faster
_MOST_ROWS_BFLOAT16 = 63  # above, torch multiplies in bfloat16 with AMX ...
_FEWEST_ROWS_PRODUCTS = 512  # ... and from here on so does attn, faster


def _is_slower(query, key) -> bool:
    if query.shape[-3:-2] != key.shape[-3:-2]:  # grouped queries, for which torch copies keys and values
        return False
    rows, work = query.shape[-2], math.prod(query.shape) * key.shape[-2]
    if query.dtype in (torch.float32, torch.float64):
        return work < _LEAST_WORK_32_BITS or rows < _FEWEST_ROWS_32_BITS
    if query.dtype == torch.bfloat16 and rows > _MOST_ROWS_BFLOAT16:
        return not _multiplies_in_bfloat16(query)
    return work < _LEAST_WORK_16_BITS


def _multiplies_in_bfloat16(query) -> bool:
    return query.dtype == torch.bfloat16 and query.shape[-2] >= _FEWEST_ROWS_PRODUCTS and _has_bfloat16_products()


@functools.lru_cache(maxsize=None)
def _has_bfloat16_products() -> bool:
    one = numpy.ones((1, 1), numpy.float32)
    try:
        attn.plan(one, one, one, bf16_products=True)
    except ValueError:
        return False
    return True


class _Through(TorchFunctionMode):
    """Sees every function of torch's that is called in this thread, and computes one of them."""

    def __init__(self, routing: Routing, everything: bool) -> None:
        super().__init__()
        self._routing, self._everything = routing, everything

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is not torch.nn.functional.scaled_dot_product_attention or torch.compiler.is_compiling():
            return func(*args, **kwargs)
        out, reason = self._computed(*args, **kwargs)
        self._routing._record(reason)
        return func(*args, **kwargs) if reason else out

    def _computed(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, **unknown):
        """The result and "", or nothing and why."""
        reason = "unknown arguments" if unknown else _why_left(query, key, value, attn_mask, dropout_p, is_causal, self._everything)
        if reason:
            return None, reason
        options = {} if self._everything else {"bf16_products": _multiplies_in_bfloat16(query)}
        try:
            return _attend(query, key, value, attn_mask, is_causal, scale, enable_gqa, **options), ""
        except (TypeError, ValueError, RuntimeError):
            return None, "attn refuses it"  # torch will say why in its own words, or know better


@contextlib.contextmanager
def enable(*, everything: bool = False) -> Iterator[Routing]:
    """While it lasts, torch's own function goes through attn where attn is faster, and to torch elsewhere, in this thread.

    It may be nested. What is compiled or traced meanwhile stays torch's, and so does what torch.nn.MultiheadAttention calls within. Long bfloat16 prompts are multiplied in bfloat16, as torch
    does it, where the processor can. Every other function of torch's takes about a microsecond longer.

    Args:
        everything: also where torch is as fast, and never with products in bfloat16: for the same bits however a prompt is batched
            or cached.

    Example:
        >>> import torch, attn.torch
        >>> q = torch.ones(1, 2, 3, 4)
        >>> with torch.inference_mode(), attn.torch.enable(everything=True) as routing:
        ...     out = torch.nn.functional.scaled_dot_product_attention(q, q, q)
        >>> print(routing)
        1 calls of scaled_dot_product_attention, 1 computed by attn
    """
    routing = Routing()
    with _Through(routing, everything):
        yield routing


def register_with_transformers(name: str = "attn") -> None:
    """Makes attn an attention implementation of Hugging Face's transformers (4.53 and later).

    Then ``AutoModelForCausalLM.from_pretrained(..., attn_implementation="attn")`` computes attention with it: grouped queries,
    masks, softcap (Gemma 2) and sinks (gpt-oss) included.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(name, _transformers_attention)
    AttentionMaskInterface.register(name, sdpa_mask)


def _transformers_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Optional[torch.Tensor],
    dropout: float = 0.0,
    scaling: Optional[float] = None,
    is_causal: Optional[bool] = None,
    softcap: Optional[float] = None,
    s_aux: Optional[torch.Tensor] = None,
    sliding_window: Optional[int] = None,
    **others: Any,
):
    """Attention as models of transformers call it: [B, H, L, D] in, [B, L, H, D] out, and no weights."""
    reason = _what_is_missing(query, key, value, attention_mask, dropout)
    if reason:
        raise NotImplementedError(reason)
    for name in ("head_mask", "position_bias"):
        if others.get(name) is not None:
            raise NotImplementedError(f"{name}: not available in this version; leave it out, or use another attention implementation")
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    is_causal = is_causal and attention_mask is None and query.shape[2] > 1
    # A mask has the window in it; without one a window may still be meant.
    window = sliding_window - 1 if sliding_window and is_causal else None
    if attention_mask is not None:
        attention_mask = attention_mask[..., : key.shape[-2]]
    batch, heads, rows, _ = query.shape
    out = torch.empty(batch, rows, heads, value.shape[-1], dtype=query.dtype, device="cpu")
    sinks = None if s_aux is None else _plain(s_aux).float()
    _attend(
        query, key, value, attention_mask, is_causal, scaling, True, out=out.transpose(1, 2), softcap=softcap, sinks=sinks,
        window=window,
    )
    return out, None
