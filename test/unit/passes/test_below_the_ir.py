"""Kernels lowered to vISA are programs below the IR, whose ops are created when the IR is accessed."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py import compile, parse, run_pipeline
from xegpu_py.dialects import visa
from xegpu_py.dialects.visa import programs
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.passes import Runner, parse_pipeline
from xegpu_py.passes.visa_optimize import VisaOptimize
from xegpu_py.visa.program import Program

TEXT = """gpu.module @kernels {
  gpu.func @double(%m: memref<16xf32>) kernel {
    %d = xegpu.create_nd_tdesc %m[0] {mode = vc} : memref<16xf32> -> !xegpu.tensor_desc<16xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<16xf32> -> vector<16xf32>
    %y = arith.addf %x, %x : vector<16xf32>
    xegpu.store_nd %y, %d {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32>
    gpu.return
  }
}
"""
PIPELINE = "builtin.module(xegpu-to-visa-pipeline)"


@pytest.fixture
def calls(monkeypatch):
    """Counts of programs that are decoded from ops, and converted to ops."""
    count = {"decoded": 0, "built": 0}

    def counted(name, function):
        def run(*args, **kwargs):
            count[name] += 1
            return function(*args, **kwargs)

        return run

    monkeypatch.setattr(programs._Decoder, "program", counted("decoded", programs._Decoder.program))
    monkeypatch.setattr(programs, "replace_body", counted("built", programs.replace_body))
    return count


def test_compiling_makes_no_ops(calls):
    kernel = compile(TEXT)
    x = np.arange(16, dtype=np.float32)
    kernel(x)
    np.testing.assert_array_equal(x, 2 * np.arange(16))
    assert calls == {"decoded": 0, "built": 0}
    assert "visa.add" in kernel.ir("visa")
    assert calls == {"decoded": 0, "built": 1}
    assert kernel.ir("visa") == kernel.ir("visa")
    assert calls["built"] == 1


@pytest.mark.parametrize("verify_each", [False, True])
def test_ops_that_are_read_are_decoded_once(calls, verify_each):
    lowered = parse(TEXT)
    run_pipeline(lowered, PIPELINE)
    text = str(lowered)
    calls |= {"decoded": 0, "built": 0}
    module = parse(text)
    runner = Runner(verify_each)
    runner.run(parse_pipeline("builtin.module(visa-optimize,visa-allocate,visa-optimize)"), module)
    assert calls == {"decoded": 1, "built": 0}
    assert str(module) == text


def test_other_passes_find_ops(calls):
    module = parse(TEXT)
    run_pipeline(module, "builtin.module(xegpu-to-visa-pipeline,canonicalize,visa-optimize{dead=false},cse)")
    # Once for the canonicalizer's verification, which visa-optimize shares, and once for that of cse.
    assert calls == {"decoded": 2, "built": 1}
    whole = parse(TEXT)
    run_pipeline(whole, PIPELINE)
    assert str(module) == str(whole)


def test_who_may_change_ops_is_not_answered_from_memory():
    module = parse(TEXT)
    run_pipeline(module, PIPELINE)
    (func,) = visa.kernels(module.operation)
    add = next(op for op in func.regions[0].blocks[0].operations if op.operation.name == "visa.add")
    add.operation.erase()
    run_pipeline(module, "builtin.module(visa-optimize)", verify_each=False)
    assert "visa.add" not in str(module)


def test_a_program_that_breaks_a_rule_is_blamed_on_its_pass(monkeypatch):
    def broken(self, program, target):
        return Program(program.name, program.variables, program.predicates, program.inputs)

    monkeypatch.setattr(VisaOptimize, "optimize", broken)
    with pytest.raises(DiagnosticError, match="does not end with 'ret'") as found:
        run_pipeline(parse(TEXT), PIPELINE)
    assert "this op is invalid after pass 'visa-optimize" in str(found.value)
    # Verified once, at the end.
    with pytest.raises(DiagnosticError, match="does not end with 'ret'"):
        compile(TEXT)


def test_what_stood_before_lowering_is_kept():
    kernel = compile(TEXT)
    assert kernel.ir("xegpu") == str(parse(TEXT))


def test_kernels_of_one_name():
    text = TEXT + TEXT.replace("@kernels", "@others").replace("arith.addf", "arith.mulf")
    module = parse(text)
    run_pipeline(module, PIPELINE)
    found = [visa.program_of(func) for func in visa.kernels(module.operation)]
    assert [sum(i.name == name for i in p.instructions) for p in found for name in ("add", "mul")] == [1, 0, 0, 1]
    assert xegpu_py.parse(str(module))
