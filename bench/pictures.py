#!/usr/bin/env python3
"""Pictures of measurements, as SVG with nothing but the standard library.

    build/release/attn bench --json > bench.json
    python3 bench/pictures.py bench.json docs/pictures     # share_of_peak.svg and decode_bandwidth.svg

bench/peers/compare.py --svg FILE draws the peers as bars.
"""

import json
import pathlib
import sys

COLOURS = ["#0b6e99", "#e07a1f", "#5a8f29", "#8a4f9e", "#777777", "#b8860b", "#c0392b", "#2c3e50"]
STYLE = 'font-family="sans-serif" font-size="13" fill="#222"'


def text(x, y, words, anchor="start", more=""):
    words = str(words).replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{words}</text>'


def svg(width, height, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" {STYLE}>'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def lines(title, unit, series, x_name):
    """series: {label: {x: share}}; x on a logarithmic scale by rank, y from 0 to 100 %."""
    width, height, left, bottom, top = 720, 400, 60, 340, 50
    xs = sorted({x for points in series.values() for x in points})
    place = lambda x: left + (width - left - 190) * (xs.index(x) + 0.5) / len(xs)
    level = lambda share: bottom - (bottom - top) * min(share, 1.0)
    parts = [text(left, 28, title, more='font-size="16" font-weight="bold"')]
    for percent in range(0, 101, 20):
        y = level(percent / 100)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 180}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(text(left - 8, y + 4, f"{percent} %", "end"))
    parts += [text(place(x), bottom + 20, f"{x:,}", "middle") for x in xs]
    parts.append(text((left + width - 180) / 2, bottom + 44, f"{x_name}; {unit}", "middle"))
    for i, (label, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        dash = ' stroke-dasharray="5 4"' if "causal" in label else ""
        where = [(place(x), level(points[x])) for x in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in where)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in where]
        parts.append(text(width - 170, top + 10 + 20 * i, label, more=f'fill="{colour}"'))
    return svg(width, height, parts)


def peers_as_bars(rows, names, file):
    """Share of the peak of every peer, a group of bars a shape; small calls, which are no matter of shares, left out."""
    rows = [row for row in rows if row["name"] != "small call"]
    width, row_height, left = 940, 16, 300
    parts = [text(20, 28, "Share of the multiply-add peak", more='font-size="16" font-weight="bold"')]
    parts += [text(left + 150 * i, 50, name, more=f'fill="{COLOURS[i % len(COLOURS)]}"') for i, name in enumerate(names)]
    y = 66
    for row in rows:
        title = f"{row['name']} {','.join(map(str, row['shape']))}" + (" causal" if row["causal"] else "")
        parts.append(text(left - 10, y + row_height * len(names) / 2 + 4, title, "end"))
        for i, name in enumerate(names):
            share = row["results"].get(name, {}).get("share")
            length = (width - left - 80) * min(share or 0, 1.0)
            colour = COLOURS[i % len(COLOURS)]
            parts.append(f'<rect x="{left}" y="{y + 2}" width="{length:.1f}" height="{row_height - 4}" fill="{colour}"/>')
            label = "–" if share is None else f"{100 * share:.0f} %"
            parts.append(text(left + length + 5, y + row_height - 4, label, more='font-size="11"'))
            y += row_height
        y += 10
    pathlib.Path(file).write_text(svg(width, y + 10, parts))


def of_most_threads(results):
    most = max(result["threads"] for result in results)
    return most, [result for result in results if result["threads"] == most]


def draw(bench, folder):
    threads, results = of_most_threads(bench["results"])
    machine = f"{bench['isa']}, {threads} threads"
    prefill, decode = {}, {}
    for result in results:
        b, heads, kv_heads, n, m, d = result["shape"]
        if result["name"] == "prefill" and result["dtype"] == "f32":
            label = f"D {d}" + (", causal" if result["causal"] else "")
            prefill.setdefault(label, {})[n] = result["share"]
        if result["name"] == "decode" and b == 1:
            decode.setdefault(f"{result['dtype']}, tensors", {})[m] = result["share"]
        if result["name"] == "decode, cache" and b == 1:
            decode.setdefault(f"{result['cache']}, cache", {})[m] = result["share"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "share_of_peak.svg").write_text(
        lines(f"Prefill, f32: share of the multiply-add peak ({machine})", "share of the peak", prefill, "queries and keys"))
    (folder / "decode_bandwidth.svg").write_text(
        lines(f"Decode, one query: share of the read bandwidth ({machine})", "bytes of k and v", decode, "keys"))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    draw(json.loads(pathlib.Path(sys.argv[1]).read_text()), pathlib.Path(sys.argv[2]))
