"""`xegpu-lift-cf`: branches between blocks become scf ops."""

from mlir import ir

from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.module import functions, walk
from xegpu_py.ir.passes import Contents, Pass, Step, register_pass, run_upstream

_FUNCTION = "func.func"

_RETURNS = {"gpu.func": "gpu.return", _FUNCTION: "func.return"}


@register_pass("xegpu-lift-cf")
class XeGPULiftCf(Pass):
    """Raise branches between blocks to `scf` ops.

    Kernels, and functions in modules of kernels, are changed. The loops and conditions are found by upstream's
    `lift-cf-to-scf`, which knows `func.func` alone, and are simplified by `canonicalize`. Functions of one block stay
    as they are. With `kernel` no other kernel is changed.

        cf.br ^loop(%v : vector<8x16xf32>)
      ^loop(%x: vector<8x16xf32>):
        %more = ...
        cf.cond_br %more, ^body, ^end
      ^body:
        %y = arith.addf %x, %x : vector<8x16xf32>
        cf.br ^loop(%y : vector<8x16xf32>)
      ^end:

    becomes

        %r = scf.while (%x = %v) : (vector<8x16xf32>) -> vector<8x16xf32> {
          %more = ...
          scf.condition(%more) %x : vector<8x16xf32>
        } do {
        ^bb0(%x: vector<8x16xf32>):
          %y = arith.addf %x, %x : vector<8x16xf32>
          scf.yield %y : vector<8x16xf32>
        }
    """

    kernel: str = ""

    def concerns(self, contents: Contents) -> bool:
        return any(len(r.blocks) > 1 for o in contents.ops if len(o.regions) for r in o.regions)

    def run(self, op: ir.Operation) -> None:
        for func in functions(op):
            name = ir.StringAttr(func.attributes["sym_name"]).value
            inside = walk(func)
            lowered = func.name == "gpu.func" or func.parent.name == "gpu.module"
            lowered |= any(o.name.startswith("xetile.") for o in inside)
            is_selected = self.kernel in ("", name) or func.name == _FUNCTION
            if lowered and is_selected and any(len(r.blocks) > 1 for o in inside if len(o.regions) for r in o.regions):
                lift(func)


def lift(func: ir.Operation) -> None:
    """Make the branches of a function `scf` ops.

    Raises:
        DiagnosticError: where they cannot be.
    """
    region = func.regions[0]
    arguments = [a.type for a in region.blocks[0].arguments]
    returns = [o for o in walk(func) if o.name == _RETURNS[func.name]]
    if not returns:
        emit_error(func, f"never ends: no block ends with '{_RETURNS[func.name].removeprefix('func.')}'")
    results = [v.type for v in returns[0].operands]
    with ir.InsertionPoint(func), func.location:
        kind = ir.TypeAttr.get(ir.FunctionType.get(arguments, results))
        attributes = {"sym_name": func.attributes["sym_name"], "function_type": kind}
        carrier = ir.Operation.create(_FUNCTION, [], [], attributes, regions=1)
    _move(region, carrier.regions[0], _RETURNS[_FUNCTION])
    for name in ("lift-cf-to-scf", "canonicalize", "cse"):
        run_upstream(Step(name), carrier)
    _move(carrier.regions[0], region, _RETURNS[func.name])
    carrier.erase()


def _move(source: ir.Region, target: ir.Region, end: str) -> None:
    """Move the blocks of a function to another one, whose blocks return by an op of the name `end`."""
    for block in list(source.blocks):
        last = list(block.operations)[-1].operation
        if last.name in _RETURNS.values() and last.name != end:
            with ir.InsertionPoint(last), last.location:
                ir.Operation.create(end, operands=list(last.operands))
            last.erase()
        block.append_to(target)
