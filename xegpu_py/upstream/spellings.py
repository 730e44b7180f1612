"""Layouts of memrefs without offset, which LLVM's main branch spells: the offset is unknown there, and 0 in LLVM 22.

Only texts that are invalid in LLVM 22 are changed: those with a view whose offset is not 0 and whose type has no
offset.
"""

from __future__ import annotations

import re

_MEMREF = r"memref<(?:[^<>\n]|<[^<>\n]*>)*>"
_PLAIN = re.compile(r"(strided<\[[^\]]*\])>")
_VIEW = re.compile(
    rf"(?P<name>%[\w$.-]+)(?P<head>\s*=\s*memref\.(?:subview\s+%[\w$.#-]+\s*\[(?P<offsets>[^\]]*)\][^:\n]*\s*"
    rf"|reinterpret_cast\s+%[\w$.#-]+\s+to\s+offset:\s*\[(?P<start>[^\]]*)\][^\n]*?\s*)"
    rf":\s*(?P<source>{_MEMREF})\s+to\s+)(?P<result>{_MEMREF})"
)


def with_offsets(text: str) -> str:
    """A program in the spelling of LLVM 22: each layout has its offset. Line numbers do not change."""
    views = (view for view in _VIEW.finditer(text) if _PLAIN.search(view["result"]))
    if "strided<" not in text or not any(_offset(view) != 0 for view in views):
        return text
    return _PLAIN.sub(r"\1, offset: ?>", _VIEW.sub(_as_cast, text))


def _as_cast(view: re.Match[str]) -> str:
    """A view with the offset that LLVM 22 infers, cast to the type of an unknown offset."""
    is_unknown = view["start"] is None and "strided<" in view["source"]
    offset = None if is_unknown else _offset(view)
    if offset is None or not _PLAIN.search(view["result"]):
        return view[0]
    exact = _PLAIN.sub(rf"\1, offset: {offset}>", view["result"])
    made = "%$exact." + view["name"].removeprefix("%")
    return f"{made}{view['head']}{exact} {view['name']} = memref.cast {made} : {exact} to {view['result']}"


def _offset(view: re.Match[str]) -> int | None:
    """The offset of a view of a memref that has none itself; None if it is known at run time only."""
    if view["start"] is not None:
        return _number(view["start"])
    shape, *layout = re.split(r", *(?:strided<\[|affine_map|#)", view["source"].removeprefix("memref<"), maxsplit=1)
    sizes = [_number(n) for n in shape.split("x")[:-1]]
    strides: list[int | None] = [1]
    for size in reversed(sizes[1:]):
        before = strides[0]
        strides.insert(0, None if size is None or before is None else size * before)
    if layout:
        strides = [_number(n) for n in layout[0].partition("]")[0].split(",")]
    total = 0
    for offset, stride in zip((_number(n) for n in view["offsets"].split(",")), strides):
        if offset != 0:
            if offset is None or stride is None:
                return None
            total += offset * stride
    return total


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isdigit() else None
