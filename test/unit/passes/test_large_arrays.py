"""Arrays of more than 2^32 elements, in every form of access. Their pages are zero and not there, but for a few."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py import language
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.runtime.launch import Grid, Prepared

# The interpreter would copy gigabytes.
pytestmark = pytest.mark.native

ROWS, COLUMNS = 70_000, 65_536
"""4.6e9 elements: the last ones lie behind 2^32 bytes."""

ROW, COLUMN = ROWS - 9, COLUMNS - 24
"""Where accesses are: two elements from it do not differ by a multiple of 2^32."""

STATIC = f"memref<{ROWS}x{COLUMNS}xi8>"
DYNAMIC = "memref<?x?xi8>"
LINE = "memref<?xi8>"
SCATTERED = "#xegpu.tdesc_attr<scattered = true>"
UNCHECKED = "#xegpu.tdesc_attr<boundary_check = false>"

BODIES = {
    "memref.load and memref.store": """
        %x = memref.load %a[%row, %column] : TYPE
        %y = arith.addi %x, %one : i8
        memref.store %y, %a[%row, %column] : TYPE
    """,
    "2D blocks": """
        %d = xegpu.create_nd_tdesc %a[%row, %column] {mode = vc} : TYPE -> !xegpu.tensor_desc<1x16xi8>
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x16xi8> -> vector<1x16xi8>
        %ones = arith.constant dense<1> : vector<1x16xi8>
        %y = arith.addi %x, %ones : vector<1x16xi8>
        xegpu.store_nd %y, %d {mode = vc} : vector<1x16xi8>, !xegpu.tensor_desc<1x16xi8>
    """,
    "2D blocks that move": """
        %c0 = arith.constant 0 : index
        %c10000 = arith.constant 10000 : index
        %top = xegpu.create_nd_tdesc %a[%c0, %column] {mode = vc} : TYPE -> !xegpu.tensor_desc<1x16xi8>
        %d = scf.for %i = %c0 to %row step %c10000 iter_args(%t = %top) -> !xegpu.tensor_desc<1x16xi8> {
          %left = arith.subi %row, %i : index
          %by = arith.minsi %left, %c10000 : index
          %next = xegpu.update_nd_offset %t, [%by, 0] {mode = vc} : !xegpu.tensor_desc<1x16xi8>
            -> !xegpu.tensor_desc<1x16xi8>
          scf.yield %next : !xegpu.tensor_desc<1x16xi8>
        }
        %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<1x16xi8> -> vector<1x16xi8>
        %ones = arith.constant dense<1> : vector<1x16xi8>
        %y = arith.addi %x, %ones : vector<1x16xi8>
        xegpu.store_nd %y, %d {mode = vc} : vector<1x16xi8>, !xegpu.tensor_desc<1x16xi8>
    """,
    "1D blocks of a view": f"""
        %line = memref.subview %a[%row, %column] [1, 16] [1, 1] : TYPE to memref<16xi8, strided<[1], offset: ?>>
        %d = xegpu.create_nd_tdesc %line[0] {{mode = vc}} : memref<16xi8, strided<[1], offset: ?>>
          -> !xegpu.tensor_desc<16xi8, {UNCHECKED}>
        %x = xegpu.load_nd %d {{mode = vc}} : !xegpu.tensor_desc<16xi8, {UNCHECKED}> -> vector<16xi8>
        %ones = arith.constant dense<1> : vector<16xi8>
        %y = arith.addi %x, %ones : vector<16xi8>
        xegpu.store_nd %y, %d {{mode = vc}} : vector<16xi8>, !xegpu.tensor_desc<16xi8, {UNCHECKED}>
    """,
    "gathers and scatters": f"""
        %line = memref.collapse_shape %a [[0, 1]] : TYPE into LINE
        %first = arith.muli %row, %width : index
        %place = arith.addi %first, %column : index
        %step = vector.step : vector<16xindex>
        %base = vector.broadcast %place : index to vector<16xindex>
        %places = arith.addi %base, %step : vector<16xindex>
        %d = xegpu.create_tdesc %line, %places {{mode = vc}} : LINE, vector<16xindex>
          -> !xegpu.tensor_desc<16xi8, {SCATTERED}>
        %all = arith.constant dense<true> : vector<16xi1>
        %x = xegpu.load_gather %d, %all {{mode = vc}} : !xegpu.tensor_desc<16xi8, {SCATTERED}>, vector<16xi1>
          -> vector<16xi8>
        %ones = arith.constant dense<1> : vector<16xi8>
        %y = arith.addi %x, %ones : vector<16xi8>
        xegpu.store_scatter %y, %d, %all {{mode = vc}} : vector<16xi8>, !xegpu.tensor_desc<16xi8, {SCATTERED}>,
          vector<16xi1>
    """,
    "gathers that move": f"""
        %line = memref.collapse_shape %a [[0, 1]] : TYPE into LINE
        %first = arith.muli %row, %width : index
        %place = arith.addi %first, %column : index
        %step = vector.step : vector<16xindex>
        %by = vector.broadcast %place : index to vector<16xindex>
        %d0 = xegpu.create_tdesc %line, %step {{mode = vc}} : LINE, vector<16xindex>
          -> !xegpu.tensor_desc<16xi8, {SCATTERED}>
        %d = xegpu.update_offset %d0, %by {{mode = vc}} : !xegpu.tensor_desc<16xi8, {SCATTERED}>, vector<16xindex>
          -> !xegpu.tensor_desc<16xi8, {SCATTERED}>
        %all = arith.constant dense<true> : vector<16xi1>
        %ones = arith.constant dense<1> : vector<16xi8>
        xegpu.store_scatter %ones, %d, %all {{mode = vc}} : vector<16xi8>, !xegpu.tensor_desc<16xi8, {SCATTERED}>,
          vector<16xi1>
    """,
    "atomics": f"""
        %line = memref.collapse_shape %a [[0, 1]] : TYPE into LINE
        %place = arith.muli %row, %width : index
        %start = arith.addi %place, %column : index
        %words = memref.view %line[%start][] : LINE to memref<4xi32>
        %places = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
        %d = xegpu.create_tdesc %words, %places {{mode = vc}} : memref<4xi32>, vector<4xindex>
          -> !xegpu.tensor_desc<4xi32, {SCATTERED}>
        %all = arith.constant dense<true> : vector<4xi1>
        %ones = arith.constant dense<0x01010101> : vector<4xi32>
        %old = xegpu.atomic_rmw addi %d, %all, %ones {{mode = vc}} : !xegpu.tensor_desc<4xi32, {SCATTERED}>,
          vector<4xi1>, vector<4xi32> -> vector<4xi32>
    """,
    "vector transfers": """
        %zero = arith.constant 0 : i8
        %x = vector.transfer_read %a[%row, %column], %zero {in_bounds = [true]} : TYPE, vector<16xi8>
        %ones = arith.constant dense<1> : vector<16xi8>
        %y = arith.addi %x, %ones : vector<16xi8>
        vector.transfer_write %y, %a[%row, %column] {in_bounds = [true]} : vector<16xi8>, TYPE
    """,
}
LENGTH = {"memref.load and memref.store": 1}
"""Of how many elements a body adds one to."""


def program(body: str, kind: str) -> str:
    line = LINE if kind == DYNAMIC else f"memref<{ROWS * COLUMNS}xi8>"
    return f"""
    gpu.module @kernels {{
      gpu.func @k(%a: {kind}, %row: index, %column: index) kernel {{
        %c1 = arith.constant 1 : index
        %one = arith.constant 1 : i8
        %width = memref.dim %a, %c1 : {kind}
        {body.replace("TYPE", kind).replace("LINE", line)}
        gpu.return
      }}
    }}
    """


@pytest.fixture(scope="module")
def array():
    return np.zeros((ROWS, COLUMNS), np.int8)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("form", BODIES)
def test_the_last_elements_are_accessed(array, form, kind):
    kernel = xegpu_py.compile(program(BODIES[form], kind), cache="off")
    length = LENGTH.get(form, 16)
    array[ROW, COLUMN : COLUMN + length] = 0
    kernel(array, ROW, COLUMN)
    assert (array[ROW, COLUMN : COLUMN + length] == 1).all()
    assert array[ROW - 1 :].sum() == length


@pytest.mark.parametrize("form", BODIES)
def test_the_interpreter_agrees(form):
    kernel = xegpu_py.compile(program(BODIES[form], DYNAMIC), engine="interpreter", large=True)
    memory = DeviceMemory()
    buffer = memory.allocate("in0", ROWS * COLUMNS)
    given = {"in0": np.uint64(buffer.address), "in1": np.int64(ROW), "in2": np.int64(COLUMN)}
    given |= {f"in0_size{d}": np.int64(n) for d, n in enumerate((ROWS, COLUMNS))}
    arguments = {i.var.name: given[i.var.name].tobytes() for i in kernel.program.arguments}
    kernel.executor.run(Prepared(Grid((1, 1, 1), (1, 1, 1)), arguments, memory))
    found = memory.bytes_of(buffer)[ROW * COLUMNS :].reshape(-1, COLUMNS)
    length = LENGTH.get(form, 16)
    assert (found[0, COLUMN : COLUMN + length] == 1).all()
    assert found.sum() == length


ITEMS = {
    "elements": """
        %place = arith.addi %column, %t : index
        %x = memref.load %a[%row, %place] : TYPE
        %y = arith.addi %x, %one : i8
        memref.store %y, %a[%row, %place] : TYPE
    """,
    "elements of lines": """
        %line = memref.collapse_shape %a [[0, 1]] : TYPE into LINE
        %first = arith.muli %row, %width : index
        %start = arith.addi %first, %column : index
        %place = arith.addi %start, %t : index
        %x = memref.load %line[%place] : LINE
        %y = arith.addi %x, %one : i8
        memref.store %y, %line[%place] : LINE
    """,
    "vectors": """
        %c2 = arith.constant 2 : index
        %twice = arith.muli %t, %c2 : index
        %place = arith.addi %column, %twice : index
        %some = arith.cmpi ult, %t, %c8 : index
        scf.if %some {
          %x = vector.load %a[%row, %place] : TYPE, vector<2xi8>
          %ones = arith.constant dense<1> : vector<2xi8>
          %y = arith.addi %x, %ones : vector<2xi8>
          vector.store %y, %a[%row, %place] : TYPE, vector<2xi8>
        }
    """,
    "updates by a region": """
        %place = arith.addi %column, %t : index
        %old = memref.generic_atomic_rmw %a[%row, %place] : TYPE {
        ^bb0(%x: i8):
          %y = arith.addi %x, %one : i8
          memref.atomic_yield %y : i8
        }
    """,
    "fragments": """
        %d = xegpu.create_nd_tdesc %a[%row, %column] : TYPE
          -> !xegpu.tensor_desc<1x16xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
        %x = xegpu.load_nd %d : !xegpu.tensor_desc<1x16xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
          -> vector<1x1xi8>
        %ones = arith.constant dense<1> : vector<1x1xi8>
        %y = arith.addi %x, %ones : vector<1x1xi8>
        xegpu.store_nd %y, %d : vector<1x1xi8>,
          !xegpu.tensor_desc<1x16xi8, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>
    """,
}
"""What 16 work items do to add one to 16 elements."""


def program_of_items(body: str, kind: str) -> str:
    made = program("%t = gpu.thread_id x\n        %c8 = arith.constant 8 : index" + body, kind)
    return made.replace(" kernel {", " kernel attributes {xegpu.subgroup_size = 16 : i32} {")


@pytest.mark.each_value
@pytest.mark.parametrize("kind", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("form", ITEMS)
def test_work_items_access_the_last_elements(array, form, kind):
    kernel = xegpu_py.compile(program_of_items(ITEMS[form], kind), cache="off")
    array[ROW - 1 :] = 0
    kernel(array, ROW, COLUMN, block=16)
    assert (array[ROW, COLUMN : COLUMN + 16] == 1).all()
    assert array[ROW - 1 :].sum() == 16


def test_work_items_in_rows_that_differ(array):
    """Lanes whose places are more than 2^32 elements apart."""
    body = """
        %c4600 = arith.constant 4600 : index
        %up = arith.muli %t, %c4600 : index
        %mine = arith.subi %row, %up : index
        %x = memref.load %a[%mine, %column] : TYPE
        %y = arith.addi %x, %one : i8
        memref.store %y, %a[%mine, %column] : TYPE
    """
    array[ROW - 1 :] = 0
    xegpu_py.compile(program_of_items(body, DYNAMIC), cache="off")(array, ROW, COLUMN, block=16)
    rows = [ROW - 4600 * n for n in range(16)]
    assert (array[rows, COLUMN] == 1).all() and (rows[0] - rows[-1]) * COLUMNS > 1 << 32
    array[rows, COLUMN] = 0


TALL = """
gpu.module @kernels {
  gpu.func @tall(%a: memref<?x64xi8>, %row: index, %out: memref<8x64xi8>) kernel {
    %from = xegpu.create_nd_tdesc %a[%row, 0] {mode = vc} : memref<?x64xi8> -> !xegpu.tensor_desc<8x64xi8>
    %v = xegpu.load_nd %from {mode = vc} : !xegpu.tensor_desc<8x64xi8> -> vector<8x64xi8>
    %to = xegpu.create_nd_tdesc %out[0, 0] {mode = vc} : memref<8x64xi8> -> !xegpu.tensor_desc<8x64xi8>
    xegpu.store_nd %v, %to {mode = vc} : vector<8x64xi8>, !xegpu.tensor_desc<8x64xi8>
    gpu.return
  }
}
"""


@language.tile_kernel((np.int8, (None, 64)), (np.int8, (8, 64)))
def tall_tile(A, OUT):
    OUT.tile((8, 64), at=(0, 0)).store(A.tile((8, 64), at=(A.shape[0] - 13, 0)).load())


@pytest.mark.parametrize("rows", [1 << 24, (1 << 24) + 64, 1 << 26])
def test_more_rows_than_a_surface_has(rows):
    """2D block messages address 2^24 rows; beyond, blocks are moved by other messages."""
    array = np.zeros((rows, 64), np.int8)
    array[rows - 13 : rows - 5] = np.arange(512).reshape(8, 64).astype(np.int8)
    found = np.zeros((2, 8, 64), np.int8)
    kernel = xegpu_py.compile(TALL)
    kernel(array, rows - 13, found[0])
    tall_tile(array, found[1])
    assert (found == array[rows - 13 : rows - 5]).all()
    assert ("block2d" in kernel.version_for([array, rows - 13, found[0]]).asm.split("store")[0]) == (rows <= 1 << 24)
