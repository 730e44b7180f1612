"""`gpu.printf` and `cf.assert`: kernels print the same output in the same order on all engines."""

import ctypes
import itertools

import ml_dtypes
import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py import DiagnosticError, Kernel
from xegpu_py.ir.builtin import check_format, formatted
from xegpu_py.runtime import launch
from xegpu_py.visa.finalizer import GPUS

NUMBERS = """
gpu.module @m {
  gpu.func @k(%i8: memref<8xi8>, %i64: memref<8xi64>, %f16: memref<8xf16>, %bf16: memref<8xbf16>, %f64: memref<8xf64>)
      kernel {
    %g = gpu.block_id x
    %s = gpu.subgroup_id : index
    %a = memref.load %i8[%s] : memref<8xi8>
    %b = memref.load %i64[%s] : memref<8xi64>
    %c = memref.load %f16[%s] : memref<8xf16>
    %d = memref.load %bf16[%s] : memref<8xbf16>
    %e = memref.load %f64[%s] : memref<8xf64>
    %c0 = arith.constant 0 : index
    %less = arith.cmpi slt, %b, %b : i64
    %minus = arith.constant -3 : index
    gpu.printf "%d, %d of %lld:\\n", %g, %s, %minus : index, index, index
    gpu.barrier
    gpu.printf "  %d %hhx %lld %llu %5.1f %g %e %d 100%%\\n", %a, %a, %b, %b, %c, %d, %e, %less
      : i8, i8, i64, i64, f16, bf16, f64, i1
    gpu.return
  }
}
"""
ARRAYS = [
    np.arange(-4, 4, dtype=np.int8),
    np.array([-1, 2**62, -(2**63), 0, 1, 2, 3, 4]),
    np.array([0.5, -0.0, np.inf, np.nan, 1, 2, 3, 4], np.float16),
    np.arange(8).astype(ml_dtypes.bfloat16) / 3,
    np.arange(8) * 1e300,
]


def expected(grid, block):
    lines = []
    for group, number in itertools.product(range(grid), range(block)):
        a, b, c, d, e = (x[number].item() for x in ARRAYS)
        lines.append(f"{group}, {number} of -3:\n  {a} {a & 0xFF:x} {b} {b % 2**64} {c:5.1f} {d:g} {e:e} 0 100%\n")
    return "".join(lines)


@pytest.mark.parametrize("engine", ["interpreter", "jit", "both", "reference"])
def test_subgroups_print_in_order(engine, capsys):
    """Numbers of all types. The lines of a subgroup are together, although a barrier is between them."""
    kernel = xegpu_py.compile(NUMBERS, engine=engine)
    for _ in range(2):
        kernel(*ARRAYS, grid=3, block=4)
        assert capsys.readouterr().out == expected(3, 4)


def test_assembly_prints(capsys):
    """The format is in the program: it needs nothing but the buffer, which is one more argument."""
    text = xegpu_py.compile(NUMBERS).asm
    Kernel.from_assembly(text, engine="both")(*ARRAYS, grid=1, block=2)
    assert capsys.readouterr().out == expected(1, 2)


@pytest.mark.each_value
@pytest.mark.parametrize("target", GPUS)
def test_the_finalizer_accepts_what_prints(target, native_of):
    for text in (WORK_ITEMS, NUMBERS) if target == "pvc" else (WORK_ITEMS,):
        native_of(xegpu_py.compile(text, target=target).asm, target)


WORK_ITEMS = """
gpu.module @m {
  gpu.func @k(%x: memref<?xf32>) kernel attributes {xegpu.subgroup_size = SIZE : i32} {
    %g = gpu.block_id x
    %id = gpu.thread_id x
    %v = memref.load %x[%id] : memref<?xf32>
    %c3 = arith.constant 3 : index
    %c0 = arith.constant 0 : index
    %left = arith.remui %id, %c3 : index
    %third = arith.cmpi eq, %left, %c0 : index
    scf.if %third {
      gpu.printf "group %d item %d: %.2f\\n", %g, %id, %v : index, index, f32
    } else {
      %c5 = arith.constant 5 : index
      %far = arith.cmpi ult, %id, %c5 : index
      scf.if %far {
        gpu.printf "early %d\\n", %id : index
      }
    }
    %c30 = arith.constant 30 : index
    %few = arith.cmpi slt, %id, %c30 : index
    scf.if %third {
      cf.assert %few, "item 100% too large"
    }
    gpu.printf "end\\n"
    gpu.return
  }
}
""".replace("SIZE", "16")


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["both", "reference"])
@pytest.mark.parametrize("size", [16, 32])
def test_work_items_print_under_divergence(engine, size, capsys):
    """Work items that reach an op print in order; absent work items print nothing."""
    text = WORK_ITEMS.replace("subgroup_size = 16", f"subgroup_size = {size}")
    xegpu_py.compile(text, engine=engine)(np.arange(40, dtype=np.float32), grid=2, block=21)
    lines = []
    for group in range(2):
        for first in range(0, 21, size):
            mine = range(first, min(first + size, 21))
            lines += [f"group {group} item {i}: {i:.2f}" for i in mine if i % 3 == 0]
            lines += [f"early {i}" for i in mine if i % 3 and i < 5]
            lines += ["end"] * len(mine)
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("engine", "check"),
    [("interpreter", ()), ("jit", ()), ("jit", "races"), ("both", ()), ("reference", ())],
)
def test_an_assertion_has_its_message(engine, check):
    """It fails for item 30, which is active, and not for item 31, which is inactive."""
    compiled, x = xegpu_py.compile(WORK_ITEMS, engine=engine, check=check), np.zeros(40, np.float32)
    compiled(x, block=30)
    with pytest.raises(DiagnosticError) as caught:
        compiled(x, block=31)
    (found,) = caught.value.diagnostics
    assert found.message == "assertion failed: item 100% too large"
    assert found.position.line == 1 + WORK_ITEMS.split("\n").index('      cf.assert %few, "item 100% too large"')
    assert "workgroup (0, 0, 0), subgroup 1" in found.notes[0].message


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_output_that_does_not_fit_is_lost(engine, monkeypatch, capsys):
    """Printed lines are complete, and a message says how much is missing."""
    monkeypatch.setattr(launch, "BUFFER_BYTES", 1 << 10)
    text = """gpu.module @m { gpu.func @k(%n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 { gpu.printf "%d of many\\n", %i : index }
      gpu.return
    } }"""
    xegpu_py.compile(text, engine=engine)(100)
    captured = capsys.readouterr()
    # A record has four words, three of "index" and the format, and one of the number.
    count = ((1 << 10) - 8) // 64
    assert captured.out == "".join(f"{i} of many\n" for i in range(count))
    assert captured.err == f"{(100 - count) * 64} bytes of output are lost: the buffer has 1024\n"


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize(
    ("form", "operands", "message"),
    [
        ("%d %d", "%a : i32", "the format has 2 conversions, but there are 1 operands"),
        ("no number", "%a : i32", "the format has 0 conversions, but there are 1 operands"),
        ("%f", "%a : i32", "'%f' requires a floating-point number, but got i32"),
        ("%.3d", "%b : f32", "'%.3d' requires an integer, but got f32"),
        ("%s", "%a : i32", "'%s' is not a supported conversion"),
        ("90%", "%a : i32", "'%' is not a supported conversion"),
    ],
)
@pytest.mark.parametrize("attributes", ["", "attributes {xegpu.subgroup_size = 16 : i32}"])
def test_formats_that_do_not_fit(form, operands, message, engine, attributes):
    text = f"""gpu.module @m {{ gpu.func @k(%a: i32, %b: f32) kernel {attributes} {{
      gpu.printf "{form}", {operands}
      gpu.return
    }} }}"""
    with pytest.raises(DiagnosticError) as caught:
        xegpu_py.compile(text, engine=engine)(1, 1.0)
    assert message in str(caught.value) and "'gpu.printf' op" in str(caught.value)


FLAGS = st.sets(st.sampled_from("-+ 0")).map("".join)
LIBC = ctypes.CDLL(None)


@settings(max_examples=examples(200))
@given(FLAGS, st.integers(0, 12), st.sampled_from("diuxXofFeEgGaA"), st.data())
def test_formats_are_those_of_c(flags, width, kind, data):
    is_float = kind in "fFeEgGaA"
    precisions = st.integers(0, 15).map(lambda n: f".{n}") | st.just("")
    precision = data.draw(precisions) if is_float else ""
    form = f"<%{flags}{width or ''}{precision}{'' if is_float else 'll'}{kind}>"
    if is_float:
        value = data.draw(st.floats(allow_nan=False, width=32))
        passed = ctypes.c_double(value)
    else:
        value = data.draw(st.integers(-(2**63), 2**63 - 1))
        passed = ctypes.c_longlong(value)
    buffer = ctypes.create_string_buffer(400)
    LIBC.snprintf(buffer, 400, form.encode(), passed)
    element = "f32" if is_float else "i64"
    check_format(form, [element])
    assert formatted(form, [element], [value]) == buffer.value.decode()


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities_are_padded_with_spaces(value):
    assert formatted("%06f", ["f32"], [value]) == f"{value:>6}"
