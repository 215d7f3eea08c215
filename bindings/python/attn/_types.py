"""What the functions take, for type checkers and readers."""

from __future__ import annotations

from typing import Any, Sequence, Tuple, Union

Array = Any
"""A NumPy array, or anything with DLPack on the CPU: float32, float64, float16 or bfloat16; bool for masks."""

Causal = Union[bool, str]
"""False, True (as many queries as keys, unless ``align`` says where they sit), "top-left" or "bottom-right"."""

Align = Union[None, str, int, Sequence[int]]
"""Where queries sit: "top-left", "bottom-right", the position of the first query, or one for each sequence."""

Window = Union[None, int, Tuple[Union[int, None], Union[int, None]]]
"""How many keys to the left, or (left, right); None: no bound."""

Layout = str
"""Of arrays with three or four dimensions: "bhsd" has heads before rows, "bshd" rows before heads."""


def heads_last(layout: Layout) -> bool:
    """Whether rows come before heads."""
    if layout == "bhsd":
        return False
    if layout == "bshd":
        return True
    raise ValueError(f'layout: {layout!r} is none; give "bhsd" (heads before rows) or "bshd" (rows before heads)')
