"""Reduction of a kernel to the lines that an outcome needs, by delta debugging on its text.

`mlir-reduce` needs passes that are registered in it, and knows no arguments of kernels. Here a candidate is any text
that mlir-opt reads and whose outcome is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from xegpu_py.bisection.upstream_stages import Found, UpstreamLaunch, check
from xegpu_py.ir.diagnostics import DiagnosticError

_NAME = re.compile(r"%[\w$.-]+")

_RESULTS = re.compile(r"^\s*(%[\w$.-]+)(?::\d+)? = ")

_LAYOUT = re.compile(r"#xegpu\.(?:layout|slice)<(?:[^<>]|<[^<>]*>)*>")

_SIGNATURE = re.compile(r"^(.*\bgpu\.func @[\w$.-]+)\((.*)\)(.* kernel\b.*)$", re.MULTILINE)


def reduced(
    launch: UpstreamLaunch, passes: str, tool: str, original: Found, most: int = 400
) -> tuple[UpstreamLaunch, Found]:
    """The smallest kernel that was found with the same outcome in the same pass, and its outcome.

    Args:
        original: the outcome of the launch.
        most: the largest number of candidates to try.
    """
    tried = 0
    best, outcome = launch, original

    def keeps(candidate: UpstreamLaunch) -> bool:
        nonlocal tried, best, outcome
        if candidate.text == best.text or tried >= most:
            return False
        tried += 1
        try:
            result = check(candidate, passes, tool)
        except (DiagnosticError, ValueError):
            return False
        same = (result.outcome, result.step) == (original.outcome, original.step)
        # A pass that fails may do so for several reasons.
        if not same or (original.outcome in ("aborts", "refuses") and kind_of(result) != kind_of(original)):
            return False
        best, outcome = candidate, result
        return True

    before = ""
    while before != best.text and tried < most:
        before = best.text
        for simpler in (_without_ops, _with_operands, _without_layouts, _without_arguments):
            simpler(lambda: best, keeps)
    return best, outcome


def repeated(launch: UpstreamLaunch, passes: str, outcome: Found) -> str:
    """A kernel's text, below the command that shows its outcome."""
    options = {"kernel": launch.kernel, "level": launch.level}
    launch_options = "".join(f" --{name} {value}" for name, value in options.items() if value)
    sizes = "".join(
        f" --{name} {','.join(map(str, n))}" for name, n in (("grid", launch.grid), ("block", launch.block))
    )
    command = f"xegpu-bisect --upstream %s{''.join(f' {word}' for word in launch.words)}{sizes}{launch_options}"
    return f"// RUN: not {command} --pass-pipeline='{passes}'\n// {outcome.report()}\n\n{launch.text}"


def kind_of(outcome: Found) -> str:
    """The message without names, numbers and types, which change as the kernel becomes smaller."""
    return re.sub(r"[%#!]?[\w.]*\d[\w.]*|<[^']*>", "", outcome.message)


Current = Callable[[], UpstreamLaunch]

Keeps = Callable[[UpstreamLaunch], bool]


def _with_lines(launch: UpstreamLaunch, lines: Sequence[str]) -> UpstreamLaunch:
    return structs.replace(launch, text="\n".join(lines) + "\n")


def _ops(lines: Sequence[str]) -> Iterator[range]:
    """The lines of each op of a kernel, the last ops first: those within an op with regions follow it."""
    op_lines: list[range] = []
    opened: list[int] = []
    for number, line in enumerate(lines):
        plain = line.split("//")[0]
        if plain.strip().startswith("}") and opened:
            op_lines.append(range(opened.pop(), number + 1))
        if plain.rstrip().endswith("{"):
            opened.append(number)
        elif not plain.strip().startswith("}") and plain.strip():
            op_lines.append(range(number, number + 1))
    skipped = ("gpu.return", "scf.yield", "module", "gpu.module", "gpu.func", "#", "return")
    yield from (r for r in sorted(op_lines, key=lambda r: -r.start) if not lines[r.start].strip().startswith(skipped))


def _without_ops(current: Current, keeps: Keeps) -> None:
    """Leave out ops whose results are not used, first many of them at once."""
    size = max(len(current().text.splitlines()) // 2, 1)
    while size:
        start = 0
        while True:
            lines = current().text.splitlines()
            unused = [r for r in _ops(lines) if not _is_used(lines, r)]
            removed = unused[start : start + size]
            if not removed:
                break
            gone = {n for r in removed for n in r}
            if not keeps(_with_lines(current(), [x for n, x in enumerate(lines) if n not in gone])):
                start += size
        size //= 2


def _is_used(lines: Sequence[str], op: range) -> bool:
    results = _RESULTS.match(lines[op.start])
    if results is None:
        return False
    return any(results[1] in _NAME.findall(x) for n, x in enumerate(lines) if n not in op)


def _with_operands(current: Current, keeps: Keeps) -> None:
    """Use an operand in place of an op's result."""
    for op in list(_ops(current().text.splitlines())):
        lines = current().text.splitlines()
        # Later ops are left out first, which moves no earlier one.
        if (results := _RESULTS.match(lines[op.start])) is None:
            continue
        operands = [name for name in dict.fromkeys(_NAME.findall(lines[op.start])) if name != results[1]]
        for operand in operands:
            rest = [x for n, x in enumerate(lines) if n not in op]
            named = re.compile(re.escape(results[1]) + r"(?![\w$.-])(#\d+)?")
            if keeps(_with_lines(current(), [named.sub(operand, x) for x in rest])):
                break


def _without_layouts(current: Current, keeps: Keeps) -> None:
    for layout in dict.fromkeys(_LAYOUT.findall(current().text)):
        text = re.sub(rf"\w+ = {re.escape(layout)}(, )?", "", current().text).replace(f", {layout}", "")
        keeps(structs.replace(current(), text=re.sub(r" ?<?\{\s*\}>?", "", text)))


def _without_arguments(current: Current, keeps: Keeps) -> None:
    """Leave out arguments of the kernel that no op uses."""
    signature_match = _SIGNATURE.search(current().text)
    if signature_match is None:
        return
    names = _NAME.findall(signature_match[2])
    for name in names:
        launch = current()
        signature_match = _SIGNATURE.search(launch.text)
        assert signature_match is not None
        if len(re.findall(re.escape(name) + r"(?![\w$.-])", launch.text)) > 1:
            continue
        parts = re.split(r", (?=%)", signature_match[2])
        at = next(i for i, part in enumerate(parts) if part.startswith(f"{name}:"))
        signature = f"{signature_match[1]}({', '.join(parts[:at] + parts[at + 1 :])}){signature_match[3]}"
        text = launch.text[: signature_match.start()] + signature + launch.text[signature_match.end() :]
        arguments, words = ([*x[:at], *x[at + 1 :]] for x in (launch.arguments, launch.words))
        keeps(structs.replace(launch, text=text, arguments=arguments, words=words))
