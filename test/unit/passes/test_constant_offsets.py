"""Accesses at constant distances of work items, at factors of indices, in arrays and in shared local memory."""

import numpy as np
import pytest

import xegpu_py

ELEMENTS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
COUNT = 64


@pytest.mark.each_value
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("target", ["pvc", "dg2"])
def test_work_items(element: str, shared: bool, target: str) -> None:
    """Each work item writes the sum of elements before, at and after its own, and moves them; one sum is used twice."""
    space = ", 3" if shared else ""
    kind, wide = f"memref<{3 * COUNT}x{element}{space}>", f"memref<{3 * COUNT}x{element}>"
    loads = {"before": -1, "here": 0, "next": 1, "far": COUNT}
    reads = "\n".join(
        f"""%c_{name} = arith.constant {by} : index
        %i_{name} = arith.addi %from, %c_{name} : index
        %x_{name} = memref.load %held[%i_{name}] : {kind}"""
        for name, by in loads.items()
    )
    body = f"""
        %id = gpu.thread_id x
        %c64 = arith.constant {COUNT} : index
        %c128 = arith.constant {2 * COUNT} : index
        %from = arith.addi %id, %c64 : index
        {
        ""
        if not shared
        else f'''
        %second = arith.addi %id, %c128 : index
        %p = memref.load %in[%id] : {wide}
        %q = memref.load %in[%from] : {wide}
        %r = memref.load %in[%second] : {wide}
        memref.store %p, %held[%id] : {kind}
        memref.store %q, %held[%from] : {kind}
        memref.store %r, %held[%second] : {kind}
        gpu.barrier'''
    }
        {reads}
        %a = arith.addi %x_before, %x_here : {element}
        %b = arith.addi %a, %x_next : {element}
        %c0 = arith.constant 0 : index
        %c63 = arith.constant {COUNT - 1} : index
        %less = arith.subi %c0, %id : index
        %back = arith.addi %less, %c63 : index
        %x_back = memref.load %held[%back] : {kind}
        %most = arith.addi %b, %x_far : {element}
        %c = arith.addi %most, %x_back : {element}
        memref.store %c, %out[%i_far] : {wide}
        memref.store %x_far, %out[%id] : {wide}
        memref.store %x_before, %out[%i_here] : {wide}"""
    arguments = f"%held: {kind}" if not shared else f"%in: {wide}"
    workgroup = f"workgroup(%held: {kind})" if shared else ""
    text = f"""gpu.module @m {{
      gpu.func @k({arguments}, %out: {wide}) {workgroup} kernel attributes {{xegpu.subgroup_size = 16 : i32}} {{
        {body}
        gpu.return
      }}
    }}"""
    given = np.random.default_rng(0).integers(-100, 100, 3 * COUNT).astype(ELEMENTS[element])
    middle = np.arange(COUNT) + COUNT
    wanted = np.zeros_like(given)
    before, here, after, far = (given[middle + by] for by in loads.values())
    with np.errstate(over="ignore"):
        wanted[middle + COUNT] = before + here + after + far + given[COUNT - 1 :: -1]
    wanted[middle - COUNT], wanted[middle] = far, before
    for engine in ("both", "reference"):
        out = np.zeros_like(given)
        xegpu_py.compile(text, target=target, engine=engine)(given, out, grid=1, block=COUNT)
        np.testing.assert_array_equal(out, wanted)


def test_atomics() -> None:
    """Atomic updates of shared local memory at constant distances of work items."""
    text = """gpu.module @m {
      gpu.func @k(%out: memref<32xi32>) workgroup(%s: memref<32xi32, 3>) kernel
          attributes {xegpu.subgroup_size = 16 : i32} {
        %id = gpu.thread_id x
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %zero = arith.constant 0 : i32
        %n = arith.index_cast %id : index to i32
        %second = arith.addi %id, %c16 : index
        memref.store %zero, %s[%id] : memref<32xi32, 3>
        memref.store %zero, %s[%second] : memref<32xi32, 3>
        gpu.barrier
        %next = arith.addi %id, %c1 : index
        %old = memref.atomic_rmw addi %n, %s[%next] : (i32, memref<32xi32, 3>) -> i32
        %more = memref.atomic_rmw addi %n, %s[%id] : (i32, memref<32xi32, 3>) -> i32
        gpu.barrier
        %x = memref.load %s[%id] : memref<32xi32, 3>
        %y = memref.load %s[%second] : memref<32xi32, 3>
        memref.store %x, %out[%id] : memref<32xi32>
        memref.store %y, %out[%second] : memref<32xi32>
        gpu.return
      }
    }"""
    out = np.zeros(32, np.int32)
    xegpu_py.compile(text, target="pvc", engine="both")(out, grid=1, block=16)
    assert out.tolist() == [0, *range(1, 31, 2), 15, *[0] * 15]


@pytest.mark.each_value
@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("space", ["", "strided", "shared"])
@pytest.mark.parametrize("shape", [(8, 4, 1), (4, 2, 4), (16, 2, 1)])
def test_factors(shape: tuple[int, int, int], space: str, index: str) -> None:
    """Single elements at products of indices with constants and strides; far indices select nothing else."""
    rows, columns, depth = shape
    shared = space == "shared"
    layout = {"": "", "strided": ", strided<[?, ?, ?], offset: ?>", "shared": ", 3"}[space]
    kind = f"memref<{rows}x{columns}x{depth}xf32{layout}>"
    whole = f"memref<{rows}x{columns}x{depth}xf32>"
    copy = f"""
        scf.for %a = %c0 to %rows step %c1 {{
          scf.for %b = %c0 to %columns step %c1 {{
            scf.for %c = %c0 to %depth step %c1 {{
              %v = memref.load %in[%a, %b, %c] : {whole}
              memref.store %v, %held[%a, %b, %c] : {kind}
            }}
          }}
        }}"""
    text = f"""gpu.module @m {{
      gpu.func @k({f"%in: {whole}" if shared else f"%held: {kind}"}, %at: memref<2x{index}>, %out: memref<3xf32>)
          {f"workgroup(%held: {kind})" if shared else ""} kernel {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %rows = arith.constant {rows} : index
        %columns = arith.constant {columns} : index
        %depth = arith.constant {depth} : index
        {copy if shared else ""}
        %i0 = memref.load %at[%c0] : memref<2x{index}>
        %j0 = memref.load %at[%c1] : memref<2x{index}>
        %i = arith.index_cast %i0 : {index} to index
        %j = arith.index_cast %j0 : {index} to index
        %ii = arith.muli %i, %c2 : index
        %next = arith.addi %ii, %c1 : index
        %x = memref.load %held[%ii, %c0, %c0] : {kind}
        %y = memref.load %held[%next, %j, %c0] : {kind}
        %z = memref.load %held[%i, %j, %c0] : {kind}
        memref.store %x, %out[%c0] : memref<3xf32>
        memref.store %y, %out[%c1] : memref<3xf32>
        memref.store %z, %out[%c2] : memref<3xf32>
        gpu.return
      }}
    }}"""
    given = np.arange(1, rows * columns * depth + 1, dtype=np.float32).reshape(shape)
    kernel = xegpu_py.compile(text, target="pvc", engine="both")
    for i, j in [(0, 0), (rows // 2 - 1, columns - 1), (1, 1)]:
        out = np.zeros(3, np.float32)
        kernel(given, np.array([i, j], index.replace("i", "int")), out, grid=1)
        assert out.tolist() == [given[2 * i, 0, 0], given[2 * i + 1, j, 0], given[i, j, 0]]
    if shared:
        # Out of bounds of shared local memory: a product of 2^32 or 2^64 bytes must not wrap around to its start.
        i, out = 1 << 30 if index == "i32" else (1 << 64) // (8 * columns * depth), np.zeros(3, np.float32)
        with pytest.raises(xegpu_py.DiagnosticError, match="of the shared local memory"):
            kernel(given, np.array([i, 0], index.replace("i", "int")), out, grid=1)
