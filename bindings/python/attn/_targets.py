"""Which SIMD target runs."""

from __future__ import annotations

from typing import List

from attn import _core


def isa() -> str:
    """The target that runs now, such as "avx512".

    Example:
        >>> import attn
        >>> attn.isa() in attn.isas()
        True
    """
    return _core.isa()


def isas() -> List[str]:
    """Those that this machine can run, slowest first."""
    return _core.isas().split()


def force_isa(name: str) -> None:
    """Runs that target from now on. ValueError where this machine can't."""
    _core.force_isa(name)
