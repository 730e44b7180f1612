"""The visa dialect: every instruction has an op, and kernels and programs are the same thing in two forms."""

import random
import subprocess
import sys
from collections import defaultdict

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown import ROOT
from mlir import ir
from visa.programs import STRAIGHT, program_of, random_instruction, random_program

from xegpu_py import build, run_pipeline
from xegpu_py.dialects import visa
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import DiagnosticError, Position, Source
from xegpu_py.ir.module import parse_source
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import BUILTINS, Destination, Guard, Predicate, Region, Variable
from xegpu_py.visa.program import Input, Instruction, Program

GPUS = [t for t in TARGETS.values() if t.name != "any"]


def parse(text, **options):
    return parse_source(Source(text, "k.mlir"), context=Context(), **options)


def programs(module):
    return [visa.program_of(func) for func in visa.kernels(module.operation)]


def same(program, gpu):
    """Round trips through every form."""
    module = visa.module_of([program], gpu.name)
    module.verify()
    assert programs(module) == [program]
    text = module.text()
    assert '"visa.' not in text
    read = parse(text)
    assert programs(read) == [program]
    assert read.text() == text
    generic = read.text(generic=True)
    assert "visa.add " not in generic
    assert programs(parse(generic)) == [program]
    return read


@settings(max_examples=examples(40))
@given(
    gpu=st.sampled_from(GPUS),
    names=st.lists(st.sampled_from(STRAIGHT), min_size=1, max_size=30),
    seed=st.integers(0, 1 << 32),
)
def test_programs_survive_every_form(gpu, names, seed):
    names = [n for n in names if not (gpu.block2d is None and n.endswith("block2d"))]
    same(random_program(names, random.Random(seed), gpu), gpu)


def by_target():
    """The instructions, each with the first of three targets that has it, eight at a time."""
    groups = defaultdict(list)
    for name in STRAIGHT:
        groups[next(t for t in ("pvcxt", "cri", "any") if name not in TARGETS[t].absent)].append(name)
    return [(target, names[n : n + 8]) for target, names in groups.items() for n in range(0, len(names), 8)]


@pytest.mark.parametrize(("target", "names"), by_target(), ids=lambda v: v if isinstance(v, str) else v[0])
def test_every_form_of_instructions(target, names):
    # Most of the time would be that of the variables, which each program declares.
    body = []
    for name in names:
        rng = random.Random(name)
        body += [random_instruction(name, rng, TARGETS[target]) for _ in range(examples(25, 0.1))]
    same(program_of(body, TARGETS[target]), TARGETS[target])


def test_control_flow_guards_builtins_and_inputs():
    x, p = Variable("X", "d", 16, "GRF"), Predicate("P", 16)
    y = Variable("Y", "uw", 8, "word", (x, 8))
    sizes = Variable("sizes", "ud", 3, "dword")
    body = (
        Instruction("label", {"label": "L1"}),
        Instruction("goto", {"label": "L1"}, 16, "M1", Guard(p, True)),
        Instruction("jmp", {"label": "L1"}, 1, "M1_NM", Guard(p, False, "any")),
        Instruction("jmp", {"label": "L1"}, 1, "M1", Guard(p, True, "all")),
        Instruction("mov", {"dst": Destination(x), "src0": Region(BUILTINS["%r0"], 0, 1, 0, 1, 0)}),
        Instruction("ret"),
    )
    inputs = (Input(sizes, 64, 12, "GROUP_COUNT"), Input(x, 128, 64))
    program = Program("a kernel", (x, y, sizes), (p,), inputs, {"SimdSize": 16, "Target": "cm"}, body)
    module = same(program, TARGETS["pvc"])
    text = module.text()
    assert "visa.goto (M1, 16, !%P) L1" in text
    assert "visa.jmp (M1_NM, 1, %P any) L1" in text
    assert '%Y = visa.decl "Y", uw x 8, align = word, alias = %X + 8' in text
    assert "visa.input %sizes, offset = 64, size = 12, kind = GROUP_COUNT" in text


def test_places_are_kept():
    text = """\
.kernel "k"
.decl X v_type=G type=f num_elts=16 align=GRF
.input X offset=64 size=64
    mov (M1, 16) X(0,0)<1> 0x0:f
    ret (M1, 1)
"""
    [program] = assembly.read(Source(text, "k.visaasm"))
    [again] = programs(visa.module_of([program]))
    assert again.where == Position("k.visaasm", 1, 1)
    assert again.declared == {"X": Position("k.visaasm", 2, 1)}
    assert again.inputs[0].where == Position("k.visaasm", 3, 1)
    assert [i.where for i in again.instructions] == [Position("k.visaasm", 4, 5), Position("k.visaasm", 5, 5)]


def test_every_instruction_has_an_op():
    names = {spec.op_name for spec in INSTRUCTIONS.values()}
    assert set(visa.DIALECT.operations) == names | {"decl", "decl_address", "decl_pred", "builtin", "input"}
    for name, spec in INSTRUCTIONS.items():
        op = visa.OPS[name]
        assert op.declaration is spec
        assert op.effects
        assert spec.doc in op.__doc__
        operands = [n for s in spec.slots for n in ((s.name, f"{s.name}_base") if s.kind == "address" else (s.name,))]
        assert [o.name for o in op.spec.operands] == operands + ["guard"] * spec.guard


def test_ops_can_be_built_and_looked_at():
    with build.module() as module, build.gpu_module("kernels"), build.kernel("k"):
        x = visa.decl("X", "f", 16, align="GRF")
        p = visa.decl_pred("P", 16)
        visa.add(
            dst=x,
            src0=x,
            guard=p,
            inverted=True,
            dst_access="%(0,0)<1>",
            src0_access="%(0,0)<1;1,0>",
            src1_access="1.0:f",
            exec_size=16,
            mask="M1",
        )
        visa.ret(exec_size=1, mask="M1")
    assert "visa.add (M1, 16, !%P) %X(0,0)<1> %X(0,0)<1;1,0> 0x3f800000:f" in str(module)
    [add] = module.ops(visa.OPS["add"])
    assert (add.dst, add.src1, add.guard) == (x, None, p)
    assert add.instruction().values["src1"].bits == 0x3F800000
    with pytest.raises(ValueError, match="'mask' of 'visa.ret': expected one of M1, M1_NM, M2"):
        with Context(), ir.Location.unknown():
            visa.ret(exec_size=1, mask="M9")


def test_dead_code_elimination_keeps_every_op():
    gpu = TARGETS["pvcxt"]
    program = random_program(STRAIGHT, random.Random(0), gpu)
    module = visa.module_of([program])
    before = str(module)
    run_pipeline(module, "builtin.module(xegpu-dce,canonicalize,cse)")
    assert str(module) == before


KERNEL = """\
gpu.module @m {
  gpu.func @k() kernel {
    %0 = visa.decl "c0", f x 16
    %1 = visa.decl "c0", f x 16
    %2 = visa.decl "a b", f x 16
    %c0 = arith.constant 0 : i32
    %3 = arith.addi %c0, %c0 : i32
    scf.if %true {
      %4 = visa.decl "inner", f x 16
      "test.use"(%0, %4, %3) : (!visa.var, !visa.var, i32) -> ()
    }
    "test.use"(%0, %1, %2, %3) {text = "%0"} : (!visa.var, !visa.var, !visa.var, i32) -> ()
    gpu.return
  }
  gpu.func @l() kernel {
    %0 = arith.constant 1 : i32
    %1 = visa.decl "inner", f x 16
    visa.mov (M1, 16) %1(0,0)<1> %1(0,0)<1;1,0>
    gpu.return
  }
  gpu.func @blocks() kernel {
    %0 = visa.decl "after", f x 16
    cf.br ^end
  ^end:
    "test.use"(%0) : (!visa.var) -> ()
    gpu.return
  }
}
"""


def test_printed_names_mean_what_mlir_numbered():
    """Also where names clash with others, and in modules that violate our rules."""
    text = KERNEL.replace("    scf.if", "    %true = arith.constant true\n    scf.if")
    context = Context()
    context.allow_unregistered_dialects = True
    module = parse_source(Source(text, "k.mlir"), context=context, verify=False)
    printed = module.text()
    assert "%inner = visa.decl" in printed
    assert '"test.use"(%after)' in printed
    assert '{text = "%0"}' in printed
    again = parse_source(Source(printed, "k.mlir"), context=context, verify=False)
    assert again.text(generic=True) == module.text(generic=True)


def test_a_context_loads_the_dialect_where_a_text_names_it():
    context = Context(irdl_dialects=())
    assert visa.DIALECT not in context.irdl_dialects
    context.load(["visa"])
    assert visa.DIALECT in context.irdl_dialects


def test_start_up_without_visa_does_not_pay_for_it():
    script = """if True:
        import sys
        from xegpu_py.tools import xegpu_opt
        for arguments in (["--show-dialects"], ["examples/gemm.mlir", "--xegpu-dce"]):
            assert xegpu_opt.run(arguments) == 0
        assert not [name for name in sys.modules if name == "xegpu_py.dialects.visa.ops"]
        assert xegpu_opt.run(["test/visa/dpas.mlir"]) == 0
    """
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_the_faults_of_a_kernel_are_located():
    text = """\
gpu.module @m {
  gpu.func @k() kernel {
    %0 = visa.decl "X", f x 16
    %1 = visa.decl "X", f x 16
    %c = arith.constant 0 : i32
    gpu.return
  }
}
"""
    with pytest.raises(DiagnosticError) as caught:
        parse(text)
    assert [str(d.position) for d in caught.value.diagnostics] == ["k.mlir:4:10", "k.mlir:5:10"]
