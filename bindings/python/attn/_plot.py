"""Pictures of weights, where matplotlib is installed."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy

from attn._types import Array

CAVEAT = "Weights show where a head takes its values from, not why a model said what it said."


def plot_weights(
    weights: Array,
    *,
    tokens: Optional[Sequence[str]] = None,
    queries: Optional[Sequence[str]] = None,
    keys: Optional[Sequence[str]] = None,
    columns: int = 4,
    title: Optional[str] = None,
) -> Any:
    """Draws weights [N, M], or [H, N, M] with a panel a head, darker where larger; returns matplotlib's Figure.

    ``tokens`` names rows and columns alike, ``queries`` and ``keys`` each. A picture for debugging: it shows where values come
    from, and is no account of why a model said something.

    Example:
        >>> import numpy, attn
        >>> figure = attn.plot_weights(numpy.eye(3), tokens=["a", "b", "c"])  # doctest: +SKIP
        >>> figure.savefig("weights.png")  # doctest: +SKIP
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot_weights: matplotlib is not installed; pip install matplotlib") from error
    table = numpy.asarray(weights, dtype=numpy.float64)
    if table.ndim not in (2, 3) or table.size == 0:
        raise ValueError(f"weights: shape {table.shape}; give [N, M] or [H, N, M], for one sequence")
    table = table.reshape(-1, *table.shape[-2:])
    heads, rows, cols = table.shape
    queries, keys = queries or tokens, keys or tokens
    for name, labels, count in (("queries", queries, rows), ("keys", keys, cols)):
        if labels is not None and len(labels) != count:
            raise ValueError(f"{name}: {len(labels)} names for {count}; give one for each")

    columns = min(columns, heads)
    lines = -(-heads // columns)
    side = max(2.2, min(8.0, 0.28 * max(rows, cols))) if heads == 1 else 2.4
    figure = Figure(figsize=(side * columns + 1, side * lines + 1), layout="constrained")
    for head in range(heads):
        axes = figure.add_subplot(lines, columns, head + 1)
        picture = axes.imshow(table[head], cmap="Blues", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
        if heads > 1:
            axes.set_title(f"head {head}", fontsize=9)
        _name(axes, queries, keys, few=max(rows, cols) <= 40 and heads <= 16)
    figure.colorbar(picture, ax=figure.axes, label="weight", shrink=0.8)
    figure.suptitle(title or "Attention weights")
    figure.supxlabel(CAVEAT, fontsize=7)
    return figure


def _name(axes, queries, keys, few: bool) -> None:
    axes.set_xlabel("key", fontsize=8)
    axes.set_ylabel("query", fontsize=8)
    if few and queries is not None:
        axes.set_yticks(range(len(queries)), queries, fontsize=7)
    if few and keys is not None:
        axes.set_xticks(range(len(keys)), keys, fontsize=7, rotation=90)
