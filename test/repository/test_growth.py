"""The steps of a compilation are proportional to the program: a kernel twice as large takes twice as many.

Steps are lines of Python that are executed, so that the figures do not depend on the machine. Each kernel is compiled
in three sizes. A function may take more than twice the steps once, where the code generation changes: long blocks are
cut, or accumulators no longer fit in registers. A function that is not linear takes more at each size.
"""

import gc
import random
import sys
import time
from collections import Counter

import pytest
from visa.mixtures import Mixture

import xegpu_py
from xegpu_py.engines.jit.host import native_host
from xegpu_py.engines.jit.thread_function import functions_of_program
from xegpu_py.passes.visa_optimize.code_motion import forward_results, hoist, schedule_loads
from xegpu_py.passes.visa_optimize.simplify import remove_dead_code, rewrite_values
from xegpu_py.target import TARGETS

PACKAGE = tuple(xegpu_py.__path__)

FACTOR = 2.6
"""How many times as many steps a function may take for twice the program; n log n is less, n squared is 4."""

FEWEST = 32
"""Functions that take fewer steps for the smallest program are not compared."""


def pointers(n):
    """A subgroup adds n elements, with masks: gathers of runs and pieces of vectors."""
    tile = f"!xetile.tile<{n}xf32, #xetile.tile_attr<scattered = true>>"
    return f"""gpu.module @m {{
      gpu.func @k(%A: memref<?xf32>, %B: memref<?xf32>, %bound: index) kernel {{
        %x = gpu.block_id x
        %size = arith.constant {n} : index
        %first = arith.muli %x, %size : index
        %step = vector.step : vector<{n}xindex>
        %base = vector.broadcast %first : index to vector<{n}xindex>
        %i = arith.addi %base, %step : vector<{n}xindex>
        %bounds = vector.broadcast %bound : index to vector<{n}xindex>
        %m = arith.cmpi slt, %i, %bounds : vector<{n}xindex>
        %a = xetile.init_tile %A, %i : memref<?xf32>, vector<{n}xindex> -> {tile}
        %b = xetile.init_tile %B, %i : memref<?xf32>, vector<{n}xindex> -> {tile}
        %u = xetile.load %a, %m {{padding = 0.0 : f32}} : {tile}, vector<{n}xi1> -> vector<{n}xf32>
        %v = xetile.load %b, %m {{padding = 0.0 : f32}} : {tile}, vector<{n}xi1> -> vector<{n}xf32>
        %s = arith.addf %u, %v : vector<{n}xf32>
        xetile.store %s, %b, %m : vector<{n}xf32>, {tile}, vector<{n}xi1>
        gpu.return
      }}
    }}"""


def product(n, depth=64):
    """A subgroup multiplies n x depth by depth x 32 in a loop."""
    a, b, c = f"{n}x{depth}xf16", f"{depth}x32xf16", f"{n}x32xf32"
    return f"""gpu.module @m {{
      gpu.func @k(%A: memref<{n}x512xf16>, %B: memref<512x32xf16>, %C: memref<{c}>) kernel {{
        %c0 = arith.constant 0 : index
        %step = arith.constant {depth} : index
        %c512 = arith.constant 512 : index
        %zero = arith.constant dense<0.0> : vector<{c}>
        %a0 = xetile.init_tile %A[0, 0] : memref<{n}x512xf16> -> !xetile.tile<{a}>
        %b0 = xetile.init_tile %B[0, 0] : memref<512x32xf16> -> !xetile.tile<{b}>
        %r:3 = scf.for %k = %c0 to %c512 step %step iter_args(%sum = %zero, %a = %a0, %b = %b0)
            -> (vector<{c}>, !xetile.tile<{a}>, !xetile.tile<{b}>) {{
          %x = xetile.load_tile %a : !xetile.tile<{a}> -> vector<{a}>
          %y = xetile.load_tile %b : !xetile.tile<{b}> -> vector<{b}>
          %s = xetile.tile_mma %x, %y, %sum : vector<{a}>, vector<{b}>, vector<{c}> -> vector<{c}>
          %an = xetile.update_tile_offset %a, [%c0, %step] : !xetile.tile<{a}>
          %bn = xetile.update_tile_offset %b, [%step, %c0] : !xetile.tile<{b}>
          scf.yield %s, %an, %bn : vector<{c}>, !xetile.tile<{a}>, !xetile.tile<{b}>
        }}
        %c = xetile.init_tile %C[0, 0] : memref<{c}> -> !xetile.tile<{c}>
        xetile.store_tile %r#0, %c : vector<{c}>, !xetile.tile<{c}>
        gpu.return
      }}
    }}"""


def shallow_product(n):
    """The same, with one dpas for each accumulator in an iteration: iterations are multiplied together."""
    return product(n, 16)


def transposed(n):
    """A subgroup stores a function of n x 32 elements transposed: moves of elements, and pieces in both orders."""
    t, u = f"{n}x32xf32", f"32x{n}xf32"
    return f"""gpu.module @m {{
      gpu.func @k(%A: memref<{t}>, %B: memref<{u}>) kernel {{
        %a = xetile.init_tile %A[0, 0] : memref<{t}> -> !xetile.tile<{t}>
        %b = xetile.init_tile %B[0, 0] : memref<{u}> -> !xetile.tile<{u}>
        %x = xetile.load_tile %a : !xetile.tile<{t}> -> vector<{t}>
        %e = math.exp %x : vector<{t}>
        %z = vector.transpose %e, [1, 0] : vector<{t}> to vector<{u}>
        xetile.store_tile %z, %b : vector<{u}>, !xetile.tile<{u}>
        gpu.return
      }}
    }}"""


def places(n):
    """Elements at n places that are sums of one index and constants."""
    lines = (
        f"%c{i} = arith.constant {3 * i} : index\n%p{i} = arith.addi %first, %c{i} : index\n"
        f"%v{i} = memref.load %A[%p{i}] : memref<?xf32>\nmemref.store %v{i}, %B[%p{i}] : memref<?xf32>"
        for i in range(n)
    )
    return f"""gpu.module @m {{
      gpu.func @k(%A: memref<?xf32>, %B: memref<?xf32>) kernel {{
        %x = gpu.block_id x
        %size = arith.constant 4096 : index
        %first = arith.muli %x, %size : index
        {chr(10).join(lines)}
        gpu.return
      }}
    }}"""


def branches(n):
    """n branches, each after the other."""
    lines = (
        f"%c{i} = arith.constant {i} : index\n%t{i} = arith.cmpi slt, %bound, %c{i} : index\n"
        f"%v{i + 1} = scf.if %t{i} -> vector<16xf32> {{\n%w{i} = arith.addf %v{i}, %u : vector<16xf32>\n"
        f"scf.yield %w{i} : vector<16xf32>\n}} else {{\n%w{i} = arith.mulf %v{i}, %u : vector<16xf32>\n"
        f"scf.yield %w{i} : vector<16xf32>\n}}"
        for i in range(n)
    )
    return f"""gpu.module @m {{
      gpu.func @k(%A: memref<16xf32>, %bound: index) kernel {{
        %zero = arith.constant 0 : index
        %u = vector.load %A[%zero] : memref<16xf32>, vector<16xf32>
        %v0 = arith.addf %u, %u : vector<16xf32>
        {chr(10).join(lines)}
        vector.store %v{n}, %A[%zero] : memref<16xf32>, vector<16xf32>
        gpu.return
      }}
    }}"""


def doublings(n):
    """Places that are doubled n times: each sum has the one before twice, so that there are 2^n ways to the first."""

    def doubled(name, kind):
        return "\n".join(f"%{name}{i + 1} = arith.addi %{name}{i}, %{name}{i} : {kind}" for i in range(n))

    tile = "!xetile.tile<16xf32, #xetile.tile_attr<scattered = true>>"
    return f"""module attributes {{xegpu.options = {{load_ahead = true, prefetch = 1}}}} {{ gpu.module @m {{
      gpu.func @k(%A: memref<64x?xf32>, %B: memref<?xf32>, %C: memref<64x64xf32>, %n: index) kernel {{
        %c0 = arith.constant 0 : index
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %zero = arith.constant dense<0.0> : vector<8x8xf32>
        %r = scf.for %k = %c0 to %n step %c8 iter_args(%sum = %zero) -> (vector<8x8xf32>) {{
          %k0 = arith.addi %k, %c8 : index
          {doubled("k", "index")}
          %t = xetile.init_tile %A[%c0, %k{n}] : memref<64x?xf32> -> !xetile.tile<8x8xf32>
          %x = xetile.load_tile %t : !xetile.tile<8x8xf32> -> vector<8x8xf32>
          %next = arith.addf %sum, %x : vector<8x8xf32>
          scf.yield %next : vector<8x8xf32>
        }}
        %d0 = arith.addi %n, %c4 : index
        {doubled("d", "index")}
        %u = xetile.init_tile %C[%c0, %c0] : memref<64x64xf32> -> !xetile.tile<8x8xf32>
        xetile.store_tile %r, %u : vector<8x8xf32>, !xetile.tile<8x8xf32>
        %a = xegpu.create_nd_tdesc %C[%c0, %d{n}] {{mode = vc}} : memref<64x64xf32> -> !xegpu.tensor_desc<16x8xf32>
        %y = xegpu.load_nd %a {{mode = vc, transpose = [1, 0]}} : !xegpu.tensor_desc<16x8xf32> -> vector<8x16xf32>
        %b = xegpu.create_nd_tdesc %C[%c0, %c0] {{mode = vc}} : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
        xegpu.store_nd %y, %b {{mode = vc}} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
        %step = vector.step : vector<16xindex>
        %base = vector.broadcast %n : index to vector<16xindex>
        %v0 = arith.addi %base, %step : vector<16xindex>
        {doubled("v", "vector<16xindex>")}
        %g = xetile.init_tile %B, %v{n} : memref<?xf32>, vector<16xindex> -> {tile}
        %all = arith.constant dense<true> : vector<16xi1>
        %w = xetile.load %g, %all {{padding = 0.0 : f32}} : {tile}, vector<16xi1> -> vector<16xf32>
        xetile.store %w, %g, %all : vector<16xf32>, {tile}, vector<16xi1>
        gpu.return
      }}
    }} }}"""


def compiled(text):
    """Compile a kernel, and write its native code."""
    own = xegpu_py.compile(xegpu_py.parse(text), cache="off").executor.interpreter
    functions_of_program(own.program, own.layout, own.model, native_host(), False, False)


def steps(text):
    """The steps of each function of this project in such a compilation."""
    tracers = {}

    def tracer(code):
        if not code.co_filename.startswith(PACKAGE):
            return code, None, None
        count = [0]

        def line(frame, event, arg):
            count[0] += 1
            return line

        return code, line, count

    def enter(frame, event, arg):
        # Hashing a code object takes longer than a step.
        code = frame.f_code
        if id(code) not in tracers:
            tracers[id(code)] = tracer(code)
        return tracers[id(code)][1]

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        compiled(text)
    finally:
        sys.settrace(before)
    counts = Counter()
    for code, _, count in tracers.values():
        if count:
            counts[code.co_filename, getattr(code, "co_qualname", code.co_name)] += count[0]
    return counts


@pytest.mark.parametrize(
    ("kernel", "n"),
    [
        (pointers, 512),
        (product, 128),
        (shallow_product, 64),
        (transposed, 16),
        (places, 24),
        (branches, 12),
        (doublings, 4),
    ],
)
def test_steps_grow_with_the_kernel(kernel, n):
    sizes = n, 2 * n, 4 * n
    compiled(kernel(sizes[-1]))  # What is imported and decoded once does not count.
    small, middle, large = (steps(kernel(size)) for size in sizes)
    found = {
        f"{'/'.join(k[0].split('/')[-2:])} {k[1]}": (middle[k] / v, large[k] / middle[k])
        for k, v in small.items()
        if v >= FEWEST and middle[k]
    }
    assert found
    assert not {name: ratios for name, ratios in found.items() if min(ratios) > FACTOR}


@pytest.mark.parametrize("lanes_part", [False, True])
def test_optimizations_take_linear_time(lanes_part):
    target = TARGETS["pvcxt"]

    def seconds(program):
        # How long Python looks for garbage depends on what else the process keeps.
        gc.collect()
        gc.disable()
        start = time.process_time()
        program = remove_dead_code(program, target)
        program = rewrite_values(program, target, ("fold", "copies", "addresses"))
        program = forward_results(program, target)
        program = hoist(program, target, 1 << 20)
        schedule_loads(program, target, 1 << 20)
        taken = time.process_time() - start
        gc.enable()
        return taken

    programs = [Mixture(random.Random(0), lanes_part=lanes_part).program(n) for n in (200, 800)]
    few, many = (min(seconds(program) for _ in range(2)) for program in programs)
    assert many < 4 * 2 * few
