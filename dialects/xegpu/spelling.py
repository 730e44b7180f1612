"""The two spellings of XeGPU, the RFC's and upstream MLIR's, and which of them a text has."""

from __future__ import annotations

import re
from enum import Enum

from xegpu_py.deferred import pattern

UPSTREAM_NAME = "upstream_xegpu"
"""The name that upstream's XeGPU has in the IR, where a dialect `xegpu` exists already."""


class Spelling(str, Enum):
    """Whose syntax a text has: the RFC's, which IMEX's older programs have too, or that of upstream MLIR."""

    RFC = "rfc"
    UPSTREAM = "upstream"

    @property
    def owner(self) -> str:
        """Whose it is, in diagnostics."""
        return "the RFC" if self == Spelling.RFC else "upstream MLIR"


# Each repetition in a line is bounded, so that the search takes time in proportion to the text.
_UPSTREAM_MARKS = pattern(
    r"#xegpu\.(?:layout|slice|block_tdesc_attr|scatter_tdesc_attr|mem_layout|range)\b|!xegpu\.mem_desc\b"
    r"|\bxegpu\.(?:(?:load_nd|prefetch_nd|load|atomic_rmw\s+\w+)|(?:store_nd|store)\s+%[\w#]+\s*,)\s+%[\w#]+\s*\["
    r"|\bxegpu\.create_nd_tdesc\s+%[\w#]+\s*(?::|(?:\[[^\]\n]{0,400}\]\s*)?,\s*shape\b)"
    r"|\bxegpu\.(?:fence\s+memory_kind|convert_layout|create_mem_desc|load_matrix|store_matrix)\b"
    r"|\bxegpu\.\w+ [^\n:]{0,400}<\{|\bVectorComputeFunctionINTEL\b"
    r'|"xegpu\.\w+"\([^\n:]{0,400}<\{'
)

_RFC_MARKS = re.compile(r"\bxetile\.|\bmode\s*=\s*(?:vc|simt)\b|#xegpu\.(?:tdesc_attr|sg_map)\b|\bvnni_axis\b")

_RFC_WORDS = ("xetile.", "mode", "tdesc_attr", "sg_map", "vnni_axis")
"""Parts of the marks, which are searched for faster than they."""


def _first(marks: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The first mark that is not in a comment."""
    mark = marks.search(text)
    while mark and "//" in text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]:
        end = text.find("\n", mark.start())
        mark = marks.search(text, end) if end >= 0 else None
    return mark


def has_rfc_syntax(text: str) -> bool:
    """Whether a text has syntax that upstream does not have: the RFC's, and XeTile's."""
    return any(word in text for word in _RFC_WORDS) and _first(_RFC_MARKS, text) is not None


def has_upstream_syntax(text: str) -> bool:
    """Whether a text has syntax that upstream has and the RFC does not have."""
    return _first(_UPSTREAM_MARKS, text) is not None


def spelling_of(text: str) -> Spelling:
    """The spelling of a text: the RFC's, unless something in it is only upstream's.

    Programs of IMEX mark kernels in the RFC's spelling by upstream's `VectorComputeFunctionINTEL`: of a text with marks
    of both, the RFC's decide.
    """
    is_upstream = "xegpu." in text and not has_rfc_syntax(text) and has_upstream_syntax(text)
    return Spelling.UPSTREAM if is_upstream else Spelling.RFC


def mixture(text: str) -> tuple[int, str] | None:
    """The offset of syntax of the spelling in which a text is not read, and a note on it; None without such syntax."""
    rfc, upstream = _first(_RFC_MARKS, text), _first(_UPSTREAM_MARKS, text)
    if not rfc or not upstream or upstream[0] == "VectorComputeFunctionINTEL":
        return None
    other = " ".join(upstream[0].split())
    return upstream.start(), (
        f"'{other}' is the spelling of {Spelling.UPSTREAM.owner}, but '{rfc[0]}' is that of "
        f"{Spelling.RFC.owner}: a module has one of them"
    )


_XEVM_MARKS = pattern(r"\bxevm\.|\bspir_kernelcc\b|!llvm\.|(?<![@\w.\"])llvm\.\w")


def is_xevm_text(text: str) -> bool:
    """Return whether a text has kernels of XeVM or `llvm`, to which upstream lowers XeGPU."""
    may_have = any(mark in text for mark in ("xevm.", "spir_kernelcc", "llvm."))
    return may_have and "gpu.module" in text and _XEVM_MARKS.search(text) is not None


# Layouts of memrefs without offset, which LLVM's main branch spells: the offset is unknown there, and 0 in LLVM 22.
#
# Only texts that are invalid in LLVM 22 are changed: those with a view whose offset is not 0 and whose type has no
# offset.

_MEMREF = r"memref<(?:[^<>\n]|<[^<>\n]*>)*>"

_PLAIN = pattern(r"(strided<\[[^\]]*\])>")

_VIEW = pattern(
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
