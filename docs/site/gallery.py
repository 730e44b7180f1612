"""The gallery: the programs of examples/gallery, each with what it prints, a picture of its memory, and its inner loop."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import textwrap
from pathlib import Path

import numpy as np

from xegpu_py.drawing import COLOURS, FAINT, PLAIN, Canvas, document
from xegpu_py.extensions.profile.launches import ProfiledLaunch
from xegpu_py.visa.instructions import INSTRUCTIONS

FOLDER = Path(__file__).parents[2] / "examples" / "gallery"

_ORDER = (
    "gemm",
    "attention",
    "softmax",
    "layer_norm",
    "moe",
    "int4_gemm",
    "fp8_quantize",
    "scan",
    "sort",
    "histogram",
    "stencil",
    "fft",
)

_LINE, _ACROSS, _MOST_ROWS, _CELL = 64, 16, 16, 18

_MOST_LINES = 24
"""Instructions of an inner loop that are shown."""


def page() -> str:
    """The page's text, as Markdown."""
    parts = [
        "# Gallery",
        "Kernels of the [tile language](../tile-language.md), from `examples/gallery`. Each program compares the kernel's result with numpy. A "
        "picture shows the 64-byte lines of each array in the order of their addresses: the colour is that of the last workgroup that wrote the line, or of the "
        "first that read it, and the number says how often it was accessed. `examples/gallery/triton` has nine of them in [Triton](../triton.md).",
    ]
    for name in _ORDER:
        path = FOLDER / f"{name}.py"
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            ran = runpy.run_path(str(path))
        title, code = re.match(r'"""(.*?)"""\n+(.*)', path.read_text(), re.DOTALL).groups()
        profile = ran["launch"].profile(*ran["arguments"])
        done: ProfiledLaunch = profile.launched
        parts += [
            f"## {name.replace('_', ' ')}",
            f"{' '.join(title.split())}",
            f"```python {path.name}\n{code}```",
            f"```text\n{printed.getvalue()}```",
            f'<div class="output">{memory_picture(name, done)}</div>',
            inner_loop(done.kernel.asm),
        ]
    return "\n\n".join(parts)


def inner_loop(asm: str) -> str:
    """The shortest loop of assembly, as Markdown; where there is none, the last instructions."""
    lines = [line.partition(" //")[0] for line in asm.splitlines()]
    labels = {m[1]: n for n, line in enumerate(lines) if (m := re.match(r"\s*(\w+):", line))}
    jumps = [(m[1], n) for n, line in enumerate(lines) if (m := re.search(r"(?:jmp|jmpi|goto)\b.* (\w+)$", line))]
    loops = [(n - labels[to], labels[to], n) for to, n in jumps if labels[to] < n]
    _, first, last = min(loops, default=(0, len(lines) - _MOST_LINES, len(lines)))
    shown = lines[first : last + 1]
    text = textwrap.dedent("\n".join(shown[:_MOST_LINES] + ["..."] * (len(shown) > _MOST_LINES)))
    return f"{'Its inner loop' if loops else 'Its last instructions'}:\n\n```visaasm\n{text}\n```"


def memory_picture(title: str, done: ProfiledLaunch) -> str:
    """The 64-byte lines of each buffer: which workgroup touched them, and how often."""
    trace, program = done.counts.trace, done.counts.program
    writes = np.array([INSTRUCTIONS[inst.name].category in ("store", "atomic") for inst in program.instructions])
    groups, stores = trace.threads // done.group_size, writes[trace.instructions]
    canvas, y = Canvas(), 34.0
    for buffer in done.counts.buffers:
        first, count = buffer.address // _LINE, -(-buffer.bytes // _LINE)
        own = (trace.lines >= first) & (trace.lines < first + count)
        lines, group, store = trace.lines[own] - first, groups[own], stores[own]
        hits = np.bincount(lines, minlength=count)
        owner = np.full(count, -1)
        owner[lines[::-1]] = group[::-1]
        owner[lines[store]] = group[store]
        canvas.text(12, y, f"{buffer.name}: {buffer.bytes} bytes, {'written' if store.any() else 'read'}", fill=FAINT)
        for n in range(min(count, _MOST_ROWS * _ACROSS)):
            at = 12 + n % _ACROSS * _CELL, y + 6 + n // _ACROSS * _CELL
            fill = COLOURS[owner[n] % len(COLOURS)] if owner[n] >= 0 else PLAIN
            hover = (
                f"line {n}: {hits[n]} accesses, workgroup {owner[n]}" if owner[n] >= 0 else f"line {n}: not accessed"
            )
            canvas.rect(*at, _CELL - 1, _CELL - 1, fill, title=hover)
            if hits[n]:
                canvas.text(at[0] + _CELL / 2, at[1] + 12, str(hits[n]), text_anchor="middle", font_size=8)
        y += 6 + -(-min(count, _MOST_ROWS * _ACROSS) // _ACROSS) * _CELL + 16
    canvas.text(12, 16, title, font_weight="bold", font_size=12)
    return document(canvas, 24 + _ACROSS * _CELL, y, f"Memory of: {title}", "The lines of each array by workgroup")
