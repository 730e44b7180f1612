"""Every XeGPU op built from Python, against the text that it stands for."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from xegpu_py import DiagnosticError, parse
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import (
    CacheHint,
    FenceScope,
    MemoryKind,
    MemoryScope,
    Mode,
    NBarrier,
    SgMap,
    TdescAttr,
    TensorDesc,
)
from xegpu_py.ir.diagnostics import Position
from xegpu_py.ir.operation import BuildError

SG_MAP = "#xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>"
ARGUMENTS = {
    "m": "memref<64x64xf16>",
    "line": "memref<64xf16>",
    "address": "ui64",
    "i": "index",
    "block": "!xegpu.tensor_desc<8x16xf16>",
    "mapped": f"!xegpu.tensor_desc<8x16xf16, {SG_MAP}>",
    "b_block": "!xegpu.tensor_desc<16x16xf16>",
    "array": "!xegpu.tensor_desc<8x16xf16, #xegpu.tdesc_attr<array_length = 2>>",
    "lanes": "!xegpu.tensor_desc<16xf32, #xegpu.scattered>",
    "chunks": "!xegpu.tensor_desc<16x4xf32, #xegpu.scattered>",
    "offsets": "vector<16xindex>",
    "mask": "vector<16xi1>",
    "value": "vector<8x16xf16>",
    "lane_values": "vector<16xf32>",
    "chunk_values": "vector<4x16xf32>",
    "a": "vector<8x8x2xf16>",
    "b": "vector<8x16x2xf16>",
    "acc": "vector<8x16xf32>",
    "scales": "vector<1x16xf8E8M0FNU>",
    "n": "i8",
    "nb": "!xegpu.nbarrier",
}
VC = "mode = vc"
BLOCK, LANES, CHUNKS = ARGUMENTS["block"], ARGUMENTS["lanes"], ARGUMENTS["chunks"]

BUILDS: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda v: xegpu.create_nd_tdesc(v.m, [v.i, 4], tdesc=TensorDesc((8, 16), "f16"), mode="vc"),
        f"create_nd_tdesc %m[%i, 4] {{{VC}}} : memref<64x64xf16> -> {BLOCK}",
    ),
    (
        lambda v: xegpu.create_nd_tdesc(v.address, [0, v.i], [64, v.i], [v.i, 1], tdesc=BLOCK, mode=Mode.VC),
        f"create_nd_tdesc %address[0, %i], [64, %i], [%i, 1] {{{VC}}} : ui64 -> {BLOCK}",
    ),
    (
        lambda v: xegpu.create_nd_tdesc(
            v.m, (0, 0), tdesc=TensorDesc((8, 16), "f16", TdescAttr(map=SgMap((1, 16), (1, 1))))
        ),
        f"create_nd_tdesc %m[0, 0] : memref<64x64xf16> -> {ARGUMENTS['mapped']}",
    ),
    (
        lambda v: xegpu.create_nd_tdesc(
            v.line, [v.i], tdesc=TensorDesc((32,), "f16", TdescAttr(boundary_check=False)), mode="vc"
        ),
        f"create_nd_tdesc %line[%i] {{{VC}}} : memref<64xf16> -> !xegpu.tensor_desc<32xf16>",
    ),
    (lambda v: xegpu.load_nd(v.block, mode="vc"), f"load_nd %block {{{VC}}} : {BLOCK} -> vector<8x16xf16>"),
    (lambda v: xegpu.load_nd(v.mapped), f"load_nd %mapped : {ARGUMENTS['mapped']} -> vector<8x1xf16>"),
    (
        lambda v: xegpu.load_nd(v.b_block, vnni_axis=0, mode="vc", l1_hint="cached", l3_hint=CacheHint.UNCACHED),
        f"load_nd %b_block {{{VC}, vnni_axis = 0, l1_hint = cached, l3_hint = uncached}} : "
        "!xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>",
    ),
    (
        lambda v: xegpu.load_nd(v.block, transpose=[1, 0], transpose_bit_width=32, mode="vc"),
        f"load_nd %block {{{VC}, transpose = [1, 0], transpose_bit_width = 32}} : {BLOCK} -> vector<8x16xf16>",
    ),
    (
        lambda v: xegpu.load_nd(v.array, mode="vc"),
        f"load_nd %array {{{VC}}} : {ARGUMENTS['array']} -> vector<2x8x16xf16>",
    ),
    (
        lambda v: xegpu.load_nd(v.array, value="vector<8x32xf16>", mode="vc"),
        f"load_nd %array {{{VC}}} : {ARGUMENTS['array']} -> vector<8x32xf16>",
    ),
    (
        lambda v: xegpu.store_nd(v.value, v.block, mode="vc", l1_hint="write_back"),
        f"store_nd %value, %block {{{VC}, l1_hint = write_back}} : vector<8x16xf16>, {BLOCK}",
    ),
    (
        lambda v: xegpu.prefetch_nd(v.block, mode="vc", memory_scope=MemoryScope.GLOBAL),
        f"prefetch_nd %block {{{VC}, memory_scope = global}} : {BLOCK}",
    ),
    (
        lambda v: xegpu.update_nd_offset(v.block, [0, v.i], mode="vc"),
        f"update_nd_offset %block, [0, %i] {{{VC}}} : {BLOCK} -> {BLOCK}",
    ),
    (
        lambda v: xegpu.dpas(v.a, v.b, v.acc, mode="vc"),
        f"dpas %acc, %a, %b {{{VC}}} : {ARGUMENTS['acc']}, {ARGUMENTS['a']}, {ARGUMENTS['b']} -> {ARGUMENTS['acc']}",
    ),
    (
        lambda v: xegpu.dpas(v.a, v.b, result="vector<8x16xf32>", mode="vc"),
        f"dpas %a, %b {{{VC}}} : {ARGUMENTS['a']}, {ARGUMENTS['b']} -> {ARGUMENTS['acc']}",
    ),
    (
        lambda v: xegpu.dpas_mx(v.a, v.b, v.acc, scale_b=v.scales, mode="vc"),
        f"dpas_mx %a, %b, %acc scale_b = %scales {{{VC}}} : ({ARGUMENTS['a']}, {ARGUMENTS['b']}, "
        f"{ARGUMENTS['acc']}, {ARGUMENTS['scales']}) -> {ARGUMENTS['acc']}",
    ),
    (
        lambda v: xegpu.truncf(v.value, result="vector<8x16xf8E5M2>"),
        f"truncf %value : {ARGUMENTS['value']} -> vector<8x16xf8E5M2>",
    ),
    (
        lambda v: xegpu.lane_shuffle(v.lane_values, shuffle="pack"),
        f"lane_shuffle %lane_values pack : {ARGUMENTS['lane_values']}",
    ),
    (
        lambda v: xegpu.create_tdesc(
            v.address,
            v.offsets,
            tdesc=TensorDesc((16, 4), "f32", TdescAttr(scattered=True)),
            chunk_size_per_lane=4,
            mode="vc",
        ),
        f"create_tdesc %address, %offsets {{{VC}, chunk_size_per_lane = 4}} : ui64, vector<16xindex> -> {CHUNKS}",
    ),
    (
        lambda v: xegpu.create_tdesc(v.address, v.offsets, tdesc=LANES, mode="vc", chunk_size_per_lane=1),
        f"create_tdesc %address, %offsets {{{VC}}} : ui64, vector<16xindex> -> {LANES}",
    ),
    (
        lambda v: xegpu.load_gather(v.lanes, v.mask, mode="vc"),
        f"load_gather %lanes, %mask {{{VC}}} : {LANES}, vector<16xi1> -> vector<16xf32>",
    ),
    (
        lambda v: xegpu.load_gather(v.chunks, v.mask, transpose=(1, 0), mode="vc"),
        f"load_gather %chunks, %mask {{{VC}, transpose = [1, 0]}} : {CHUNKS}, vector<16xi1> -> vector<4x16xf32>",
    ),
    (
        lambda v: xegpu.store_scatter(v.chunk_values, v.chunks, v.mask, mode="vc"),
        f"store_scatter %chunk_values, %chunks, %mask {{{VC}}} : vector<4x16xf32>, {CHUNKS}, vector<16xi1>",
    ),
    (lambda v: xegpu.prefetch(v.lanes, mode="vc"), f"prefetch %lanes {{{VC}}} : {LANES}"),
    (
        lambda v: xegpu.update_offset(v.lanes, v.offsets, mode="vc"),
        f"update_offset %lanes, %offsets {{{VC}}} : {LANES}, vector<16xindex> -> {LANES}",
    ),
    *(
        (
            lambda v, kind=kind: xegpu.atomic_rmw(kind, v.lane_values, v.lanes, v.mask, mode="vc"),
            f"atomic_rmw addf, %lane_values, %lanes, %mask {{{VC}}} : vector<16xf32>, {LANES}, vector<16xi1> "
            "-> vector<16xf32>",
        )
        for kind in ("addf", AtomicRMWKind.addf)
    ),
    (lambda v: xegpu.alloc_nbarrier(nbarrier_num=8), "alloc_nbarrier 8"),
    (lambda v: xegpu.alloc_nbarrier(v.n), "alloc_nbarrier %n : i8"),
    (lambda v: xegpu.init_nbarrier(v.n, v.n), "init_nbarrier %n, %n : i8, i8 -> !xegpu.nbarrier"),
    (
        lambda v: xegpu.create_nbarrier(v.n, v.n, num_producers=4, num_consumers=4),
        "create_nbarrier %n, %n {num_producers = 4, num_consumers = 4} : (i8, i8) -> !xegpu.nbarrier",
    ),
    (lambda v: xegpu.nbarrier_arrive(v.nb), "nbarrier_arrive %nb : !xegpu.nbarrier"),
    (lambda v: xegpu.nbarrier_wait(v.nb), "nbarrier_wait %nb : !xegpu.nbarrier"),
    (lambda v: xegpu.fence("gpu", "global"), "fence {scope = gpu, memory_kind = global}"),
    (lambda v: xegpu.fence("gpu"), "fence {scope = gpu}"),
    (lambda v: xegpu.fence(), "fence"),
    (
        lambda v: xegpu.fence(FenceScope.WORKGROUP, MemoryKind.SHARED),
        "fence {scope = workgroup, memory_kind = shared}",
    ),
    (lambda v: xegpu.compile_hint(), "compile_hint"),
    (lambda v: xegpu.compile_hint(hint="schedule_barrier"), "compile_hint"),
]


class Values:
    """The arguments of the function in which ops are built, by name."""

    def __init__(self, block: ir.Block) -> None:
        for name, argument in zip(ARGUMENTS, block.arguments, strict=True):
            setattr(self, name, argument)


def empty() -> Any:
    arguments = ", ".join(f"%{n}: {t}" for n, t in ARGUMENTS.items())
    return parse(f"func.func @f({arguments}) {{\n  return\n}}")


def built(build: Callable[[Any], Any]) -> Any:
    module = empty()
    block = module.body.operations[0].regions[0].blocks[0]
    with module.context, ir.Location.unknown(), ir.InsertionPoint(block.operations[0]):
        build(Values(block))
    return module


def body(text: str) -> str:
    names = {f"%arg{i}": f"%{name}" for i, name in enumerate(ARGUMENTS)}
    line = text.splitlines()[2].strip()
    return re.sub(r"^%0 = ", "", re.sub(r"%arg\d+", lambda m: names[m[0]], line))


@pytest.mark.parametrize(
    ("build", "text"), BUILDS, ids=[text.split()[0] + str(i) for i, (_, text) in enumerate(BUILDS)]
)
def test_builds(build: Callable[[Any], Any], text: str) -> None:
    module = built(build)
    module.verify()
    assert body(str(module)) == f"xegpu.{text}"
    assert str(parse(str(module))) == str(module)
    assert str(parse(module.text(generic=True))) == str(module)


def test_every_op_is_built_here() -> None:
    names = {text.split()[0] for _, text in BUILDS}
    assert names == {op.OPERATION_NAME.removeprefix("xegpu.") for op in xegpu.DIALECT.operations.values()}


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda v: xegpu.load_nd(v.block, mode="fast"),
            ValueError,
            "'mode' of 'xegpu.load_nd': expected one of simt, vc",
        ),
        (lambda v: xegpu.load_nd(v.block, l1_hint="hot"), ValueError, "'l1_hint' of 'xegpu.load_nd'"),
        (
            lambda v: xegpu.load_nd(v.block, vnni_axis="0"),
            TypeError,
            "'vnni_axis' of 'xegpu.load_nd': expected an integer",
        ),
        (lambda v: xegpu.load_nd(v.block, transpose=1), TypeError, "'transpose' of 'xegpu.load_nd'"),
        (lambda v: xegpu.load_nd(8), TypeError, "'tdesc' expects an SSA value, got 8"),
        (lambda v: xegpu.load_nd(v.i), ValueError, "expected !xegpu.tensor_desc, but got index"),
        (lambda v: xegpu.load_nd(), TypeError, "tdesc"),
        (lambda v: xegpu.load_nd(v.block, hint="cached"), TypeError, "hint"),
        (lambda v: xegpu.load_nd(v.block, transpose=[1, 0], vnni_axis=0), ValueError, "cannot be combined"),
        (lambda v: xegpu.create_nd_tdesc(v.m, [v.i, 1.5], tdesc=BLOCK), TypeError, "'offsets' expects an SSA value"),
        (lambda v: xegpu.create_nd_tdesc(v.m, [0, 0]), TypeError, "requires the result type as the argument 'tdesc'"),
        (lambda v: xegpu.create_nd_tdesc(v.m, [0, 0], tdesc=3), TypeError, "'tdesc' expects a type, got 3"),
        (lambda v: xegpu.load_nd(v.block, value="vector<8"), ValueError, "type 'vector<8'"),
        (lambda v: xegpu.load_nd(v.block, value="vectr<8xf16>"), ValueError, "type 'vectr<8xf16>'"),
        (lambda v: xegpu.create_nd_tdesc(v.m, [0, 0], tdesc="!xegpu.tensor_desc<0xf16>"), ValueError, "positive"),
        (lambda v: xegpu.atomic_rmw("sub", v.lane_values, v.lanes, v.mask), ValueError, "'kind' of 'xegpu.atomic_rmw'"),
        (lambda v: xegpu.nothing(v.i), AttributeError, "dialect 'xegpu' has no operation 'nothing'"),
    ],
)
def test_refuses(build: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        built(build)


def stored(v: Any) -> None:
    xegpu.store_nd(v.acc, v.block, mode="vc")


def test_rules_are_checked_when_an_op_is_built() -> None:
    """The error is at the line that calls the builder, and the op is not left in the module."""
    with pytest.raises(TypeError, match="'value' must be vector<8x16xf16>, but got vector<8x16xf32>") as caught:
        built(stored)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.position == Position(__file__, stored.__code__.co_firstlineno + 1)

    def refused(v: Any) -> None:
        with pytest.raises(TypeError):
            stored(v)

    assert built(refused).ops(xegpu.StoreNdOp) == []


def test_operands_in_the_printed_order() -> None:
    """`dpas` is printed with the accumulator first, and its builder takes it last."""
    with pytest.raises(DiagnosticError) as caught:
        built(lambda v: xegpu.dpas(v.acc, v.a, v.b, mode="vc"))
    (error,) = caught.value.diagnostics
    assert error.message == "'xegpu.dpas' op cannot multiply f32 by f16"
    notes = [note.message for note in error.notes]
    assert "the builder is xegpu.dpas(lhs, rhs, acc=None, *, result=None, mode=None)" in notes
    assert any(note.startswith("the op is printed as: xegpu.dpas ($acc^ `,`)? $lhs `,` $rhs") for note in notes)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda v: xegpu.load_nd(v.acc, value="vector<8x16xf32>"), "tdesc must be !xegpu.tensor_desc, but got vector"),
        (lambda v: xegpu.dpas(v.a, v.i, v.acc, mode="vc"), "rhs must be .*vector.*, but got index"),
        (lambda v: xegpu.update_nd_offset(v.block, [0, v.mask]), "offsets must be index, but got vector<16xi1>"),
        (lambda v: xegpu.update_nd_offset(v.block, [0, 1], result=v.lanes.type), "must have the tdesc's type"),
    ],
)
def test_types_of_operands(build: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(BuildError, match=message):
        built(build)


def test_rules_are_checked_by_verify() -> None:
    def changed(v: Any) -> None:
        store = xegpu.store_nd(v.value, v.block, mode="vc")
        store.operation.operands[0] = v.acc

    module = built(changed)
    with pytest.raises(DiagnosticError, match="'value' must be vector<8x16xf16>, but got vector<8x16xf32>"):
        module.verify()


def test_accessors() -> None:
    module = built(BUILDS[1][0])
    op = module.body.operations[0].regions[0].blocks[0].operations[0]
    assert isinstance(op, xegpu.CreateNdTdescOp)
    zero, i = op.offsets
    assert zero == 0
    assert isinstance(i, ir.Value)
    assert [isinstance(s, int) for s in op.shape] == [True, False]
    assert op.mode is Mode.VC
    assert TensorDesc.of(op.tdesc) == TensorDesc((8, 16), "f16")
    assert TensorDesc.of(op.tdesc.type).attr == TdescAttr()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (NBarrier(), "!xegpu.nbarrier"),
        (SgMap((1, 16), (2, 1)), "#xegpu.sg_map<wi_layout = [1, 16], wi_data = [2, 1]>"),
        (TdescAttr(scattered=True), "#xegpu.scattered"),
        (
            TdescAttr(MemoryScope.SLM, 2, False),
            "#xegpu.tdesc_attr<memory_scope = slm, array_length = 2, boundary_check = false>",
        ),
        (TensorDesc((16, 8), "f8E5M2"), "!xegpu.tensor_desc<16x8xf8E5M2>"),
        (TensorDesc((4, 4, 4), "i8"), "!xegpu.tensor_desc<4x4x4xi8>"),
    ],
)
def test_types_and_attributes_print(value: Any, text: str) -> None:
    assert str(value) == text
    assert type(value).decode(value.encode()) == value
