"""`gpu.printf` and `cf.assert`: what work items print, and check."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.common.builders import binary, create
from xegpu_py.passes.common.combining import CombiningKind
from xegpu_py.passes.common.values import attributes_of
from xegpu_py.passes.xegpu_simt_to_vc.widen import Widener, pattern

from xegpu_py.ir.calls import PRINT, TEXT, called
from xegpu_py.ir.printf import check_format


@pattern("gpu.printf")
def printf(w: Widener, op: ir.Operation) -> None:
    """Each lane that has come here prints."""
    text = op.attributes["format"]
    try:
        check_format(ir.StringAttr(text).value, [str(v.type) for v in op.operands])
    except ValueError as e:
        w.fail(str(e))
    called(PRINT, None, w.active(), *(w.wide(v) for v in op.operands), attributes={TEXT: text})
    w.erase(op)


@pattern("cf.assert")
def assert_(w: Widener, op: ir.Operation) -> None:
    """The condition holds in each lane that has come here."""
    if w.kept(op):
        return
    holds = w.wide(op.operands[0])
    if w.mask is not None:
        holds = binary("ori", holds, binary("xori", w.mask, True))
    create("cf.assert", [], [CombiningKind.AND.reduce(holds)], attributes_of(op))
    w.erase(op)
