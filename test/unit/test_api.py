"""The Python API: parse, verify, print, run pipelines, and the errors for bad arguments."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from mlir import ir

import xegpu_py
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.ir.module import walk

GEMM = Path(__file__).parents[2] / "examples/gemm.mlir"
KERNEL = """
func.func @f(%t: !xegpu.tensor_desc<8x16xf16>) {
  %0 = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
  return
}
"""


def test_parse_takes_text_or_path() -> None:
    text = GEMM.read_text()
    printed = str(xegpu_py.parse(text))
    assert str(xegpu_py.parse(GEMM)) == printed
    assert str(xegpu_py.parse(str(GEMM))) == printed
    assert "xegpu.dpas" in printed


def test_missing_file() -> None:
    with pytest.raises(FileNotFoundError, match="no-such-file.mlir"):
        xegpu_py.parse("no-such-file.mlir")


def test_diagnostics_carry_positions() -> None:
    with pytest.raises(xegpu_py.DiagnosticError) as caught:
        xegpu_py.parse(KERNEL.replace("vector<8x16xf16>", "vector<16x8xf16>"), name="kernel")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.severity, str(diagnostic.position)) == ("error", "kernel:3:8")
    assert [n.severity for n in diagnostic.notes] == ["note"]
    assert str(caught.value).splitlines()[1:3] == [
        KERNEL.splitlines()[2].replace("-> vector<8x16", "-> vector<16x8"),
        " " * 7 + "^",
    ]


def test_verify_finds_what_a_change_broke() -> None:
    module = xegpu_py.parse(KERNEL)
    module.verify()
    load = module.body.operations[0].regions[0].blocks[0].operations[0]
    with module.context:
        load.operation.attributes["vnni_axis"] = ir.Attribute.parse("5 : i64")
    with pytest.raises(xegpu_py.DiagnosticError, match="vnni_axis must be 0 or 1, but got 5"):
        module.verify()


STORE = """
gpu.module @m {
  gpu.func @store(%out: memref<?xi32>) kernel {
    %value = arith.constant 1 : i32
    %at = arith.constant 0 : index
    memref.store %value, %out[%at] : memref<?xi32>
    gpu.return
  }
}
"""


def _make_it_two(root: ir.Operation) -> None:
    """Let `STORE` store 2."""
    (constant,) = (op for op in walk(root) if op.name == "arith.constant" and op.results[0].type == I32(root.context))
    constant.attributes["value"] = ir.IntegerAttr.get(I32(root.context), 2)


def I32(context: ir.Context) -> ir.Type:
    return ir.IntegerType.get_signless(32, context)


def test_edit_verifies_at_the_end() -> None:
    module = xegpu_py.parse(KERNEL)
    with module.edit() as root:
        (load,) = (op for op in walk(root) if op.name == "xegpu.load_nd")
        load.attributes["test.note"] = ir.UnitAttr.get()
    assert "test.note" in str(module)
    with pytest.raises(xegpu_py.DiagnosticError, match="vnni_axis must be 0 or 1, but got 5"), module.edit():
        load.attributes["vnni_axis"] = ir.Attribute.parse("5 : i64")


def test_a_kernel_stays_as_it_was_compiled_when_the_module_is_edited() -> None:
    module = xegpu_py.parse(STORE)
    before = xegpu_py.compile(module, cache="off")
    with module.edit() as root:
        _make_it_two(root)
    after = xegpu_py.compile(module, cache="off")
    for kernel, wanted in ((before, 1), (after, 2)):
        for grid in (1, 1 << 21):
            # The version for so many workgroups is lowered now.
            kernel.version_for((out := np.zeros(4, np.int32),), grid)(out)
            assert out[0] == wanted, grid
    assert "constant 1 : i32" in before.ir("xegpu") and "constant 2 : i32" in after.ir("xegpu")


def test_passes_on_visa_see_each_edit() -> None:
    """Ops of vISA are decoded when a pass needs their program, and no program of before an edit is used."""
    module = xegpu_py.parse(STORE)
    xegpu_py.run_pipeline(module, "builtin.module(xegpu-to-visa-pipeline)")
    assert "visa.pressure = 2" in str(module)
    instructions = [op for op in walk(module.operation) if op.name in ("visa.mov", "visa.lsc_store")]
    # They are found before the module is verified, and erased after it.
    module.verify()
    for op in instructions:
        op.erase()
    xegpu_py.run_pipeline(module, "builtin.module(visa-allocate)")
    assert "visa.pressure = 1" in str(module)


def test_run_pipeline() -> None:
    module = xegpu_py.parse(KERNEL)
    xegpu_py.run_pipeline(module, "builtin.module(canonicalize)")
    assert "load_nd" in str(module)
    xegpu_py.run_pipeline(module, "builtin.module(func.func(xegpu-dce))")
    assert "load_nd" not in str(module)
    with pytest.raises(xegpu_py.DiagnosticError, match="unknown pass 'no-such'"):
        xegpu_py.run_pipeline(module, "builtin.module(no-such)")


@pytest.fixture
def breaking_pass():
    @xegpu_py.register_pass("test-break")
    @dataclass
    class Break(xegpu_py.Pass):
        """Make every load invalid."""

        refuse: bool = False

        def run(self, op: ir.Operation) -> None:
            for inner in walk(op):
                if inner.name == "xegpu.load_nd":
                    if self.refuse:
                        self.fail(inner, "cannot be broken", "it is too strong")
                    inner.attributes["vnni_axis"] = ir.Attribute.parse("5 : i64")

    return Break


def test_options_of_any_type_are_read() -> None:
    seen: list[float] = []

    @xegpu_py.register_pass("test-scale")
    @dataclass
    class Scale(xegpu_py.Pass):
        """Record its option."""

        by: "float" = 1.0

        def run(self, op: ir.Operation) -> None:
            seen.append(self.by)

    module = xegpu_py.parse(KERNEL)
    xegpu_py.run_pipeline(module, "builtin.module(test-scale{by=2.5},test-scale)")
    assert seen == [2.5, 1.0]
    with pytest.raises(xegpu_py.DiagnosticError, match="invalid value 'much' for option 'by' of pass 'test-scale'"):
        xegpu_py.run_pipeline(module, "builtin.module(test-scale{by=much})")


def test_invalid_ir_after_a_pass_is_blamed_on_it(breaking_pass) -> None:
    module = xegpu_py.parse(KERNEL, name="kernel")
    with pytest.raises(
        xegpu_py.DiagnosticError, match="(?s)kernel:3:8: error: .*vnni_axis.*invalid after pass 'test-break'"
    ):
        xegpu_py.run_pipeline(module, "builtin.module(test-break)")
    module = xegpu_py.parse(KERNEL)
    xegpu_py.run_pipeline(module, "builtin.module(test-break)", verify_each=False)


def test_a_pass_that_fails_gives_its_diagnostic(breaking_pass) -> None:
    module = xegpu_py.parse(KERNEL, name="kernel")
    with pytest.raises(
        xegpu_py.DiagnosticError, match="(?s)kernel:3:8: error: 'xegpu.load_nd' op cannot be broken.*note: it is"
    ):
        xegpu_py.run_pipeline(module, "builtin.module(test-break{refuse=true})")


def test_an_upstream_pass_that_cannot_run_here() -> None:
    module = xegpu_py.parse(KERNEL, name="kernel")
    with pytest.raises(xegpu_py.DiagnosticError, match="kernel:1:1: error: pass 'gpu-async-region': Can't add pass"):
        xegpu_py.run_pipeline(module, "builtin.module(gpu-async-region)")


def test_types_built_in_python_are_checked() -> None:
    module = xegpu_py.parse("func.func @f(%s: ui64) { return }")
    block = module.body.operations[0].regions[0].blocks[0]
    with module.context, ir.Location.unknown(), ir.InsertionPoint(block.operations[0]):
        xegpu.create_nd_tdesc(block.arguments[0], [0, 0], [64, 64], [64, 1], tdesc=TensorDesc((8, 16), "index"))
    with pytest.raises(xegpu_py.DiagnosticError, match="must have integer or floating-point elements, but got 'index'"):
        module.verify()
