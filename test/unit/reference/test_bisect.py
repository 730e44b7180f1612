"""`bisect` names the pass that was given a mistake, and shows what it changed."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from mlir import ir

import xegpu_py
from xegpu_py.bisection import _Observer, _slice_of, bisect, difference
from xegpu_py.ir.module import walk
from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.runtime.device_memory import BASE
from xegpu_py.runtime.host_arrays import parse_argument
from xegpu_py.tools import xegpu_bisect

HALVE = """
gpu.module @kernels {
  gpu.func @halve(%m: memref<64x64xf32>, %times: i32) kernel {
    %c8 = arith.constant 8 : index
    %x = gpu.block_id x
    %row = arith.muli %x, %c8 : index
    %block = xegpu.create_nd_tdesc %m[%row, 16] {mode = vc} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %half = arith.constant dense<0.5> : vector<8x16xf32>
    %v = xegpu.load_nd %block {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %y = arith.mulf %v, %half : vector<8x16xf32>
    xegpu.store_nd %y, %block {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""


@register_pass("test-subtract")
@dataclass
class Subtract(Pass):
    """Make the first product of floats a difference.

    arith.mulf

    becomes

    arith.subf
    """

    def run(self, op: ir.Operation) -> None:
        first = next(o for o in walk(op) if o.name == "arith.mulf")
        with first.location, ir.InsertionPoint(first):
            made = ir.Operation.create("arith.subf", [first.results[0].type], list(first.operands))
        first.results[0].replace_all_uses_with(made.results[0])
        first.erase()


@register_pass("test-triple")
@dataclass
class Triple(Pass):
    """Make the factor 0.5 of an instruction 3.

    visa.mul ... 0x3f000000:f

    becomes

    visa.mul ... 0x40400000:f
    """

    def run(self, op: ir.Operation) -> None:
        for inner in walk(op):
            if inner.name == "visa.mul" and "0x3f000000:f" in str(inner.attributes["src1_access"]):
                inner.attributes["src1_access"] = ir.StringAttr.get("0x40400000:f")
                return


@register_pass("test-far")
@dataclass
class Far(Pass):
    """Access memory that is not there.

    arith.constant 8

    becomes

    arith.constant 8000000
    """

    def run(self, op: ir.Operation) -> None:
        for inner in walk(op):
            if inner.name == "xegpu.create_nd_tdesc":
                with inner.location, ir.InsertionPoint(inner):
                    index = ir.IndexType.get()
                    far = ir.Operation.create(
                        "arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, 1 << 40)}
                    )
                    memref = inner.operands[0]
                    ir.Operation.create("memref.load", [memref.type.element_type], [memref, *[far.results[0]] * 2])


def matrix():
    return np.arange(4096, dtype=np.float32).reshape(64, 64)


def found(pipeline, **options):
    given = matrix()
    result = bisect(HALVE, "halve", [given, 1], grid=8, pipeline=f"builtin.module({pipeline})", **options)
    assert np.array_equal(given, matrix())
    return result


def test_a_right_pipeline():
    result = bisect(HALVE, None, [matrix(), 1], grid=8)
    assert result.step is None and len(result.steps) > 3 and not result.skipped
    assert result.report() == f"no difference: {len(result.steps)} passes that changed the kernel"


RUN = Path(__file__).parents[2] / "run"


@pytest.mark.parametrize(
    ("file", "kernel", "arguments", "launch"),
    [
        ("xetile_softmax.mlir", None, ["randn:f32:32x64", "zeros:f32:32x64"], {"block": 8, "ulps": 4}),
        ("simt/gather.mlir", None, ["randn:f16:50x12", "arange:i32:40", "zeros:f16:40x12"], {"grid": 2, "block": 20}),
        ("gemm_i8.mlir", "signed", ["rand:i8:32x96", "rand:i8:96x64", "zeros:i32:32x64"], {"grid": (2, 2)}),
        ("gemm_nbarriers.mlir", None, ["randn:bf16:16x96", "randn:bf16:96x32", "zeros:f32:16x32"],
         {"grid": (1, 2), "block": 3}),
    ],
)  # fmt: skip
def test_every_level_of_a_kernel_is_evaluated(file, kernel, arguments, launch):
    result = bisect(RUN / file, kernel, [parse_argument(a) for a in arguments], **launch)
    assert result.step is None and not result.skipped, result.report()


def test_a_pass_above_visa():
    result = found("canonicalize,cse,test-subtract,xegpu-to-visa-pipeline{target=pvc}")
    assert (result.step, result.argument, result.index) == ("test-subtract", 0, (0, 16))
    part = matrix()[:, 16:32]
    assert result.message == (
        f"%m differs first at [0, 16]: 8.0 before, 15.5 after ({(part * 0.5 != part - 0.5).sum()} of 4096 "
        "elements differ, by up to 8386560 units in the last place)"
    )
    assert result.before.where.startswith("written by 'xegpu.store_nd' at <string>:11:5 (workgroup (0, 0, 0)")
    assert "arith.mulf" in result.before.text and "arith.subf" in result.after.text
    assert result.after.text.splitlines()[-1].startswith(">   xegpu.store_nd")
    assert "bisect.mark" not in result.report()


def test_a_slice_has_dots_where_lines_are_left_out():
    module = xegpu_py.parse("""gpu.module @k { gpu.func @f(%m: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %unused = arith.constant 5 : index
      %x = memref.load %m[%c0] {nontemporal = true} : memref<8xf32>
      %y = arith.addf %x, %x : f32
      %z = arith.mulf %x, %x {fastmath = #arith.fastmath<fast>} : f32
      memref.store %y, %m[%c1] : memref<8xf32>
      gpu.return } }""")
    store = next(op for op in walk(module.operation) if op.name == "memref.store")
    lines = _slice_of(module, store).splitlines()
    assert [line[0] + line[1:].strip().partition(" = ")[2].partition(" ")[0] for line in lines[:-1]] == [
        " arith.constant", " arith.constant", " ", " memref.load", " arith.addf", " "
    ]  # fmt: skip
    assert [n for n, line in enumerate(lines) if line == "    ..."] == [2, 5]
    assert lines[-1].startswith(">   memref.store") and "mulf" not in "".join(lines)
    assert [line.partition("{")[2] for line in lines if "{" in line] == ["nontemporal = true} : memref<8xf32>"]
    assert "bisect" not in module.text()


def test_the_last_instruction_that_changes_bytes():
    """The bytes that are there at the first instruction are not its own."""
    data = np.zeros(64, np.uint8)
    buffers = [SimpleNamespace(name="x", address=BASE), SimpleNamespace(name="y, z", address=BASE + 32)]
    batch = SimpleNamespace(memory=SimpleNamespace(buffers=buffers, data=data))
    observer = _Observer("z", range(4, 8))
    for index, (at, last) in enumerate(((36, None), (35, None), (40, None), (4, None), (39, 4), (39, 5), (0, 5))):
        data[at] += 1
        observer.ran(index, batch, np.zeros(0))
        assert observer.last == last


def test_a_slice_is_short():
    """At most 24 ops, the nearest first; ops with regions are passed through."""
    body = "".join(f"%v{n + 1} = arith.addi %v{n}, %v{n} : i32 " for n in range(40))
    module = xegpu_py.parse(f"""gpu.module @k {{ gpu.func @f(%m: memref<8xi32>) kernel {{
      %c0 = arith.constant 0 : index
      %v0 = arith.constant 1 : i32
      {body}
      memref.store %v40, %m[%c0] : memref<8xi32>
      gpu.return }} }}""")
    store = next(op for op in walk(module.operation) if op.name == "memref.store")
    lines = [line for line in _slice_of(module, store).splitlines() if "..." not in line]
    assert [line.split()[0 if line[0] == " " else 1] for line in lines] == [
        "%c0", *(f"%{n}" for n in range(18, 40)), "memref.store"
    ]  # fmt: skip


def test_a_pass_of_visa():
    result = found("xegpu-to-visa{target=pvc},test-triple,visa-optimize,visa-allocate")
    assert (result.step, result.index) == ("test-triple", (0, 16))
    assert "0x40400000:f" in result.after.text and "0x40400000:f" not in result.before.text
    assert result.after.text.splitlines()[-1].startswith("> lsc_store_block2d")
    assert "<string>:11:5" in result.after.where


def test_a_fault_after_a_pass():
    result = found("cse,test-far,canonicalize")
    assert result.step == "test-far" and result.message.startswith("the kernel fails: 'memref.load' op reads 4 bytes")


def test_a_pass_whose_result_cannot_be_evaluated():
    text = HALVE.replace("arith.mulf %v, %half", "arith.mulf %v, %half").replace(
        "    gpu.return",
        "    %e = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>\n    gpu.return",
    )
    with pytest.raises(xegpu_py.DiagnosticError, match="'gpu.dynamic_shared_memory' op has no rule"):
        bisect(text, None, [matrix(), 1], grid=8)


def test_the_tool(tmp_path, capsys):
    file = tmp_path / "halve.mlir"
    file.write_text(HALVE)
    words = [str(file), "arange:f32:64x64", "i32:1", "--grid", "8"]
    assert xegpu_bisect.run(words) == 0
    assert capsys.readouterr().out.startswith("no difference: ")
    assert xegpu_bisect.run([*words, "--pass-pipeline=builtin.module(cse,test-subtract)"]) == 1
    assert capsys.readouterr().out.startswith("after 'test-subtract' %m differs first at [0, 16]")
    for wrong in ([*words, "--kernel=other"], words[:2], [str(file), "lots:f32:3"]):
        with pytest.raises(SystemExit):
            xegpu_bisect.run(wrong)
        assert "xegpu-bisect: error: " in capsys.readouterr().err


def test_one_kernel_of_several(tmp_path, capsys):
    """A pass that changes another kernel of the file changes no byte of this one."""
    file = tmp_path / "two.mlir"
    first, end = HALVE.rstrip().removesuffix("}").rstrip(), "\n}\n"
    second = first[first.index("  gpu.func") :].replace("@halve", "@again")
    file.write_text(f"{first}\n{second}{end}")
    words = [str(file), "arange:f32:64x64", "i32:1", "--grid", "8", "--pass-pipeline=builtin.module(cse,test-subtract)"]
    assert xegpu_bisect.run([*words, "--kernel=again"]) == 0
    assert capsys.readouterr().out.startswith("no difference: ")
    assert xegpu_bisect.run([*words, "--kernel=halve"]) == 1
    assert capsys.readouterr().out.startswith("after 'test-subtract' %m differs first at [0, 16]")
    with pytest.raises(SystemExit):
        xegpu_bisect.run(words)
    assert "there are halve, again" in capsys.readouterr().err


def test_passes_of_a_file(tmp_path, capsys):
    (tmp_path / "pass.py").write_text(
        "import dataclasses, xegpu_py\n\n"
        "@xegpu_py.register_pass('test-of-file')\n@dataclasses.dataclass\nclass OfFile(xegpu_py.Pass):\n"
        "    def run(self, op):\n        raise KeyError('no such thing')\n"
    )
    (tmp_path / "halve.mlir").write_text(HALVE)
    plugin = f"--load-pass-plugin={tmp_path / 'pass.py'}"
    words = [str(tmp_path / "halve.mlir"), "arange:f32:64x64", "i32:1", "--grid", "8", plugin]
    with pytest.raises(xegpu_py.DiagnosticError, match=r"pass.py:7:9: error: KeyError: 'no such thing'"):
        xegpu_bisect.run([*words, "--pass-pipeline=builtin.module(test-of-file)"])


def test_options_without_a_meaning_here_are_refused():
    for option in ("check", "engine", "no_such"):
        with pytest.raises(TypeError, match=rf"bisect\(\) got an unexpected keyword argument '{option}'"):
            bisect(HALVE, None, [matrix(), 1], grid=8, **{option: "races"})
    with pytest.raises(ValueError, match="target pvc has 128 or 256 registers, not 100"):
        bisect(HALVE, None, [matrix(), 1], grid=8, target="pvc", registers=100)


@pytest.mark.parametrize(
    ("names", "change", "message"),
    [
        (["%a", "%b", "%c"], (1, (1, 2)), "%b differs first at [1, 2]: 6.0 before, 7.0 after (1 of 8"),
        (["%a", "", "%c"], (1, (0, 3)), "argument 1 differs first at [0, 3]: 3.0 before, 4.0 after"),
        (["%a", "%b", "%c"], (2, (0,)), "%c differs first at [0]: 0 before, 1 after (1 of 3"),
        (["%a", "%b", "%c"], None, None),
    ],
)
def test_the_first_difference_of_arguments(names, change, message):
    """Numbers are no arguments that change; the bytes are those of the element in the array's memory."""
    whole = np.arange(16, dtype=np.float32).reshape(4, 4)
    expected = [5, whole[:2], np.zeros(3, np.int8)]
    actual = [6, *(array.copy() for array in expected[1:])]
    if change:
        number, index = change
        actual[number][index] += 1
    found = difference(expected, actual, names)
    if message is None:
        assert found is None
        return
    assert found.message.startswith(message), found.message
    assert (found.argument, found.index) == change
    array = expected[number]
    start = sum(i * s for i, s in zip(index, array.strides))
    assert found.byte_range == range(start, start + array.itemsize)
