"""The report of `mnn compare --html`: one file without scripts or anything from elsewhere, with a picture of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..ir import Graph, Op
from ..testing.differences import Difference

#: Ops that the picture shows around the difference, in each direction.
_STEPS = 3
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 190, 46, 24, 40
_MOST_IN_ROW = 5

_STYLE = """body { font: 14px system-ui, sans-serif; margin: 2em; color: #222 } table { border-collapse: collapse }
td, th { padding: 3px 12px; border-bottom: 1px solid #ddd; text-align: left } td.number { text-align: right }
tr.bad td { background: #fde3e0 } h1 { font-size: 20px } h2 { font-size: 16px; margin-top: 2em }
svg text { font: 11px system-ui, sans-serif } .good { color: #17692f } .wrong { color: #b3261e }"""


def report(model: str, reference: str, graph: Graph, compared: Sequence[Difference], first: Difference | None,
           tolerance: float) -> str:
    """The page as HTML text."""
    title = f"{model} against {reference}"
    worst = max((d.error for d in compared), default=0.0)
    parts = [f"<h1>{escape(title)}</h1>"]
    if first is None:
        parts.append(f'<p class="good">{len(compared)} tensors agree within {tolerance:g}; the largest error is '
                     f"{worst:.3g}.</p>")
    else:
        parts.append(f'<p class="wrong">The first difference is tensor <b>{escape(first.tensor)}</b>: error {first.error:.3g} '
                     f"(allowed {tolerance:g}).</p><ul>")
        parts += [f"<li>{escape(line)}</li>" for line in first.lines("ours", reference)]
        parts.append("</ul>")
    focus = first.tensor if first is not None else (max(compared, key=lambda d: d.error).tensor if compared else "")
    parts += [f"<h2>The graph around {escape(focus)}</h2>", picture(graph, focus, {d.tensor: d for d in compared}, tolerance),
              "<p>Green ops agree, red ones do not, grey ones were not compared. Errors are relative to the largest value.</p>",
              "<h2>All compared tensors, in the order of computation</h2>",
              "<table><tr><th>tensor</th><th>error</th><th>absolute</th><th>worst at</th><th>shape</th><th>range here</th>"
              "<th>range there</th></tr>"]
    for d in compared:
        cells = [escape(d.tensor), f"{d.error:.3g}", f"{d.absolute:.3g}", str(list(d.worst) if d.worst is not None else ""),
                 str(list(d.shape)), "{:.4g} to {:.4g}".format(*d.range), "{:.4g} to {:.4g}".format(*d.reference_range)]
        parts.append(f'<tr{"" if d.within(tolerance) else " class=bad"}>' + "".join(f"<td>{c}</td>" for c in cells) + "</tr>")
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f"<style>{_STYLE}</style></head>\n<body>" + "\n".join([*parts, "</table>"]) + "</body></html>\n")


def _around(graph: Graph, tensor: str) -> dict[int, list[Op]]:
    """The ops near the one that makes a tensor: distance (negative: before it) -> ops."""
    producers, consumers = graph.producers(), graph.consumers()
    start = producers.get(tensor)
    found = {0: [start] if start is not None else consumers.get(tensor, [])[:1]}
    seen = {id(op) for op in found[0]}
    for step in (1, -1):
        row = found[0]
        for distance in range(step, step * (_STEPS + 1), step):
            near = [o for op in row for o in ([c for n in op.outputs for c in consumers.get(n, [])] if step > 0 else
                                              [producers[n] for n in op.inputs if n in producers])]
            row = []
            for op in near:
                if id(op) not in seen and len(row) < _MOST_IN_ROW:
                    seen.add(id(op))
                    row.append(op)
            if not row:
                break
            found[distance] = row
    return found


def picture(graph: Graph, tensor: str, known: dict[str, Difference], tolerance: float) -> str:
    """The ops around a tensor as SVG: one row for each distance, lines for tensors."""
    rows = [row for _, row in sorted(_around(graph, tensor).items()) if row]
    if not rows:
        return "<p>No op makes or reads it.</p>"
    widest = max(map(len, rows))
    width = widest * (_WIDTH + _GAP_X) + _GAP_X
    place: dict[int, tuple[float, float]] = {}
    for i, row in enumerate(rows):
        left = (width - len(row) * (_WIDTH + _GAP_X) + _GAP_X) / 2
        for j, op in enumerate(row):
            place[id(op)] = left + j * (_WIDTH + _GAP_X), 10.0 + i * (_HEIGHT + _GAP_Y)
    ops = {id(op): op for row in rows for op in row}
    makers = {name: op for op in ops.values() for name in op.outputs if name}
    lines, boxes = [], []
    for op in ops.values():
        x, y = place[id(op)]
        for name in op.inputs:
            if name in makers and id(makers[name]) != id(op):
                a, b = place[id(makers[name])]
                x1, y1, x2, y2 = a + _WIDTH / 2, b + _HEIGHT, x + _WIDTH / 2, y
                lines.append(f'<path d="M{x1:.0f},{y1:.0f} C{x1:.0f},{y1 + 20:.0f} {x2:.0f},{y2 - 20:.0f} {x2:.0f},{y2:.0f}" '
                             'fill="none" stroke="#888"/>')
        own = [known[n] for n in op.outputs if n in known]
        bad = any(not d.within(tolerance) for d in own)
        color = "#eee" if not own else "#f6c7c2" if bad else "#cfe8d5"
        edge = 3 if tensor in op.outputs else 1
        shown = f"error {max(d.error for d in own):.2g} {list(own[0].shape)}" if own else "not compared"
        texts = [f"{op.type} {op.name or op.outputs[0] if op.outputs else op.name}", shown]
        boxes.append(f'<g><title>{escape(str(op))}: {escape(", ".join(op.inputs))} to {escape(", ".join(op.outputs))}</title>'
                     f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="{color}" stroke="#444" '
                     f'stroke-width="{edge}"/>' + "".join(
                         f'<text x="{x + 8:.0f}" y="{y + 18 + 17 * k:.0f}">{escape(_cut(t))}</text>'
                         for k, t in enumerate(texts)) + "</g>")
    height = len(rows) * (_HEIGHT + _GAP_Y)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
            + "".join(lines + boxes) + "</svg>")


def _cut(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:29]}…"
