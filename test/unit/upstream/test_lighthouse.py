"""Payloads of LLVM's Lighthouse and of its nanoGPT at workgroup level, as stock mlir-opt lowers them from linalg.

Lighthouse's own Python needs newer bindings than there are packages. The payloads here compute the same, and the
schedule has the same steps: tile to workgroups, vectorize, bufferize, outline kernels, convert to XeGPU, set layouts.
"""

import subprocess

import numpy as np
import pytest

from xegpu_py import external_tools
from xegpu_py.extensions.programs.lighthouse import Runner

BY_ROW = "affine_map<(i, j) -> (i)>"
BY_COLUMN = "affine_map<(i, j) -> (j)>"
BOTH = "affine_map<(i, j) -> (i, j)>"

SCHEDULE = """
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !transform.any_op) {{
    %f = transform.structured.match ops{{["func.func"]}} in %root : (!transform.any_op) -> !transform.any_op
    %leaves = transform.structured.match attributes{{leaf}} in %f : (!transform.any_op) -> !transform.any_op
    transform.foreach %leaves : !transform.any_op {{
      ^bb0(%leaf: !transform.any_op):
        %t, %l = transform.structured.fuse %leaf tile_sizes {tile} {{use_forall}}
          : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
        %products = transform.structured.match attributes{{by_k}} in %l : (!transform.any_op) -> !transform.any_op
        transform.foreach %products : !transform.any_op {{
          ^bb0(%product: !transform.any_op):
            %p, %k = transform.structured.tile_using_for %product tile_sizes [0, 0, 16]
              : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
            %transposed = transform.structured.match ops{{["linalg.transpose"]}} in %l
              : (!transform.any_op) -> !transform.any_op
            %u, %w = transform.structured.fuse_into_containing_op %transposed into %k
              : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
        }}
    }}
    transform.apply_patterns to %f {{
      transform.apply_patterns.canonicalization
      transform.apply_patterns.linalg.tiling_canonicalization
    }} : !transform.any_op
    transform.apply_cse to %f : !transform.any_op
    %v = transform.structured.vectorize_children_and_apply_patterns %f {{fold_type_extensions_into_contract}}
      : (!transform.any_op) -> !transform.any_op
    %loops = transform.structured.match ops{{["scf.for"]}} in %v : (!transform.any_op) -> !transform.any_op
    transform.apply_licm to %loops : !transform.any_op
    transform.loop.hoist_loop_invariant_subsets %loops : !transform.any_op
    transform.apply_patterns to %v {{
      transform.apply_patterns.vector.cast_away_vector_leading_one_dim
      transform.apply_patterns.vector.drop_unit_dims_with_shape_cast
    }} : !transform.any_op
    transform.yield
  }}
  transform.named_sequence @threads(%root: !transform.any_op) {{
    %launches = transform.structured.match ops{{["gpu.launch"]}} in %root : (!transform.any_op) -> !transform.any_op
    transform.foreach %launches : !transform.any_op {{
      ^bb0(%launch: !transform.any_op):
        transform.xegpu.set_gpu_launch_threads %launch threads = [{threads}, 1, 1] : !transform.any_op
    }}
    transform.yield
  }}
  transform.named_sequence @layouts(%root: !transform.any_op) {{
    %stores = transform.structured.match ops{{["xegpu.store_nd"]}} in %root : (!transform.any_op) -> !transform.any_op
    transform.foreach %stores : !transform.any_op {{
      ^bb0(%store: !transform.any_op):
        transform.xegpu.set_op_layout_attr %store sg_layout = {grid} sg_data = {data} inst_data = [8, 16]
          : !transform.any_op
    }}
    transform.yield
  }}
}}
"""

PASSES = (
    "--transform-interpreter", "--canonicalize", "--cse", "--eliminate-empty-tensors",
    "--one-shot-bufferize=bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map",
    "--fold-memref-alias-ops", "--canonicalize", "--cse", "--scf-forall-to-parallel", "--gpu-map-parallel-loops",
    "--convert-parallel-loops-to-gpu", "--lower-affine", "--canonicalize", "--cse",
    "--transform-interpreter=entry-point=threads", "--lower-affine", "--canonicalize",
    "--gpu-launch-sink-index-computations", "--gpu-kernel-outlining", "--cse", "--xevm-attach-target=chip=bmg",
    "--convert-vector-to-xegpu", "--cse", "--canonicalize", "--transform-interpreter=entry-point=layouts",
)  # fmt: skip


class Payload:
    """A function of linalg ops on tensors, which come from memrefs and go to them."""

    def __init__(self):
        self.parameters, self.lines = [], []

    def emit(self, text):
        self.lines.append(text)
        return text.split(" = ")[0].split("\n")[-1]

    def name(self):
        return f"%v{len(self.lines)}"

    def buffer(self, shape, element):
        self.parameters.append((f"%p{len(self.parameters)}", f"{'x'.join(map(str, shape))}x{element}"))
        return self.parameters[-1]

    def read(self, buffer):
        name, kind = buffer
        return self.emit(
            f"{self.name()} = bufferization.to_tensor {name} restrict : memref<{kind}> to tensor<{kind}>"
        ), kind

    def write(self, value, buffer):
        types = f"(tensor<{value[1]}>, memref<{buffer[1]}>) -> ()"
        self.emit(f"bufferization.materialize_in_destination {value[0]} in restrict writable {buffer[0]} : {types}")

    def filled(self, kind, number):
        empty = self.emit(f"{self.name()} = tensor.empty() : tensor<{kind}>")
        element = kind.split("x")[-1]
        scalar = self.emit(f"{self.name()} = arith.constant {number} : {element}")
        text = f"linalg.fill ins({scalar} : {element}) outs({empty} : tensor<{kind}>) -> tensor<{kind}>"
        return self.emit(f"{self.name()} = {text}"), kind

    def generic(self, operands, kind, body, attrs="", iterators='"parallel", "parallel"', init=None):
        """An elementwise op or reduction: `body` computes %z of %x0, %x1, ... and the result so far, %y."""
        out = init or (self.emit(f"{self.name()} = tensor.empty() : tensor<{kind}>"), kind)
        maps = ", ".join([*(m for _, m in operands), BY_ROW if init else BOTH])
        elements = [k.split("x")[-1] for (_, k), _ in operands]
        block = ", ".join([*(f"%x{i}: {e}" for i, e in enumerate(elements)), f"%y: {kind.split('x')[-1]}"])
        ins = f"{', '.join(v for (v, _), _ in operands)} : {', '.join(f'tensor<{k}>' for (_, k), _ in operands)}"
        head = f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}"
        text = f"{head} ins({ins}) outs({out[0]} : tensor<{kind}>) attrs = {{{attrs}}} {{\n^bb0({block}):\n{body}"
        end = f"linalg.yield %z : {kind.split('x')[-1]}\n}} -> tensor<{kind}>"
        return self.emit(f"{self.name()} = {text}\n{end}"), kind

    def by_rows(self, x, first, op):
        return self.generic([(x, BOTH)], f"{x[1].split('x')[0]}xf32", f"%z = {op} %x0, %y : f32", "",
                            '"parallel", "reduction"', self.filled(f"{x[1].split('x')[0]}xf32", first))  # fmt: skip

    def product(self, a, b, init, attrs=""):
        types = f"tensor<{a[1]}>, tensor<{b[1]}>"
        text = f"linalg.matmul {{{attrs}}} ins({a[0]}, {b[0]} : {types}) outs({init[0]} : tensor<{init[1]}>)"
        return self.emit(f"{self.name()} = {text} -> tensor<{init[1]}>"), init[1]

    def transposed(self, x):
        rows, columns, element = x[1].split("x")
        kind = f"{columns}x{rows}x{element}"
        empty = self.emit(f"{self.name()} = tensor.empty() : tensor<{kind}>")
        text = f"linalg.transpose ins({x[0]} : tensor<{x[1]}>) outs({empty} : tensor<{kind}>) permutation = [1, 0]"
        return self.emit(f"{self.name()} = {text}"), kind

    def softmax(self, x, attrs=""):
        most = self.by_rows(x, "0xFF800000", "arith.maximumf")
        body = "%d = arith.subf %x0, %x1 : f32\n%z = math.exp %d : f32"
        powers = self.generic([(x, BOTH), (most, BY_ROW)], x[1], body)
        total = self.by_rows(powers, "0.0", "arith.addf")
        return self.generic([(powers, BOTH), (total, BY_ROW)], x[1], "%z = arith.divf %x0, %x1 : f32", attrs)

    def layer_norm(self, x, scale, shift, attrs=""):
        n = f"%n = arith.constant {x[1].split('x')[1]}.0 : f32\n%m = arith.divf %x1, %n : f32\n"
        total = self.by_rows(x, "0.0", "arith.addf")
        centred = self.generic([(x, BOTH), (total, BY_ROW)], x[1], f"{n}%z = arith.subf %x0, %m : f32")
        squares = self.generic([(centred, BOTH)], x[1], "%z = arith.mulf %x0, %x0 : f32")
        total = self.by_rows(squares, "0.0", "arith.addf")
        body = (
            f"{n}%e = arith.constant 1.0e-5 : f32\n%p = arith.addf %m, %e : f32\n%q = math.rsqrt %p : f32\n"
            "%r = arith.mulf %x0, %q : f32\n%s = arith.mulf %r, %x2 : f32\n%z = arith.addf %s, %x3 : f32"
        )
        operands = [(centred, BOTH), (total, BY_ROW), (scale, BY_COLUMN), (shift, BY_COLUMN)]
        return self.generic(operands, x[1], body, attrs)

    def cast(self, x, element, attrs=""):
        kind = f"{x[1].rpartition('x')[0]}x{element}"
        op, old = ("truncf", "f32") if element == "f16" else ("extf", "f16")
        return self.generic([(x, BOTH)], kind, f"%z = arith.{op} %x0 : {old} to {element}", attrs)

    def head_op(self, ins, kind, body, maps, attrs="", init=None, reduces=False):
        """A generic op on three dimensions, the first of which are heads."""
        out = init or (self.emit(f"{self.name()} = tensor.empty() : tensor<{kind}>"), kind)
        every = ", ".join(f"affine_map<(h, i, j) -> ({m})>" for m in maps)
        block = ", ".join(
            f"{n}: {k.split('x')[-1]}" for n, k in [*((f"%x{i}", k) for i, (_, k) in enumerate(ins)), ("%y", kind)]
        )
        given = f"{', '.join(v for v, _ in ins)} : {', '.join(f'tensor<{k}>' for _, k in ins)}"
        last = "reduction" if reduces else "parallel"
        head = f'linalg.generic {{indexing_maps = [{every}], iterator_types = ["parallel", "parallel", "{last}"]}}'
        text = f"{head} ins({given}) outs({out[0]} : tensor<{kind}>) attrs = {{{attrs}}} {{\n^bb0({block}):\n{body}"
        end = f"linalg.yield %z : {kind.split('x')[-1]}\n}} -> tensor<{kind}>"
        return self.emit(f"{self.name()} = {text}\n{end}"), kind

    def lowered(self, tile, grid, data, tmp_path):
        """The program at workgroup level, as mlir-opt prints it."""
        parameters = ", ".join(f"{name}: memref<{kind}>" for name, kind in self.parameters)
        body = "\n".join(self.lines)
        text = f"func.func @payload({parameters}) attributes {{llvm.emit_c_interface}} {{\n{body}\nreturn\n}}\n"
        schedule = tmp_path / "schedule.mlir"
        schedule.write_text(SCHEDULE.format(tile=tile, threads=16 * np.prod(grid), grid=grid, data=data))
        library = f"--transform-preload-library=transform-library-paths={schedule}"
        command = [external_tools.find("mlir-opt"), "-", library, *PASSES]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[:2000]
        return done.stdout


def close(payload, arrays, expected, tolerance, tmp_path, *, tile="[32]", grid=(4, 1), data=(8, 64)):
    """The payload's first array becomes what numpy says."""
    text = payload.lowered(tile, list(grid), list(data), tmp_path)
    assert "sg_layout" in text
    found = np.zeros_like(arrays[0])
    runner = Runner(text, mem_manager_cls=object, engine="interpreter")
    runner.execute("payload", arrays, Runner.get_gpu_argument_access_callback(found))
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=tolerance, rtol=0)
    return text


def whole(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def noise(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def normalized(x):
    x = x.astype(np.float64)
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def softmax(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


pytestmark = pytest.mark.needs("mlir-opt")


@pytest.mark.parametrize("options", ["trunc bias relu", "transposed_b bias", "transposed_a accumulate"])
def test_products(options, tmp_path):
    m, n, k = 64, 64, 32
    p, element = Payload(), "f16" if "trunc" in options else "f32"
    out = p.buffer((m, n), element)
    a, b = whole((m, k), np.float16), whole((k, n), np.float16, 1)
    given = [x.T.copy() if f"transposed_{s}" in options else x for x, s in ((a, "a"), (b, "b"))]
    left, right = (p.read(p.buffer(x.shape, "f16")) for x in given)
    left = p.transposed(left) if "transposed_a" in options else left
    right = p.transposed(right) if "transposed_b" in options else right
    c, expected = whole((m, n), seed=2), a.astype(np.float64) @ b.astype(np.float64)
    init = p.read(out) if "accumulate" in options else p.filled(f"{m}x{n}xf32", "0.0")
    expected = expected + c if "accumulate" in options else expected
    steps = [s for s in ("bias", "trunc", "relu") if s in options]
    value = p.product(left, right, init, "by_k" if steps else "leaf, by_k")
    arrays = [c.astype(np.float16) if "trunc" in options else c, *given]
    for step in steps:
        leaf = "leaf" if step == steps[-1] else ""
        if step == "bias":
            vector = p.read(p.buffer((n,), "f32"))
            arrays.append(whole((n,), seed=3))
            expected = expected + arrays[-1]
            value = p.generic([(value, BOTH), (vector, BY_COLUMN)], value[1], "%z = arith.addf %x0, %x1 : f32", leaf)
        elif step == "trunc":
            value = p.cast(value, "f16", leaf)
        else:
            zero = f"%c = arith.constant 0.0 : {element}\n%z = arith.maximumf %x0, %c : {element}"
            value, expected = p.generic([(value, BOTH)], value[1], zero, leaf), np.maximum(expected, 0)
    p.write(value, out)
    close(p, arrays, expected, 0, tmp_path, tile="[32, 64]", grid=(2, 2), data=(16, 32))


def test_attention(tmp_path):
    """One kernel: the scaled product of queries and keys, its softmax, and the product with the values."""
    p, (q, k, v) = Payload(), (noise((64, 64), np.float16, seed) for seed in range(3))
    out = p.buffer((64, 64), "f32")
    queries, keys, values = (p.read(p.buffer((64, 64), "f16")) for _ in range(3))
    scores = p.product(queries, keys, p.filled("64x64xf32", "0.0"))
    body = "%c = arith.constant 0.125 : f32\n%z = arith.mulf %x0, %c : f32"
    weights = p.cast(p.softmax(p.generic([(scores, BOTH)], scores[1], body)), "f16")
    p.write(p.product(weights, values, p.filled("64x64xf32", "0.0"), "leaf"), out)
    expected = softmax(q.astype(np.float64) @ k.astype(np.float64) / 8) @ v.astype(np.float64)
    close(p, [np.zeros((64, 64), np.float32), q, k, v], expected, 3e-3, tmp_path)


def test_attention_of_several_heads(tmp_path):
    """Batches and heads are the grid's first dimension; each workgroup has rows of the queries of one head."""
    p, (q, k, v) = Payload(), (noise((1, 2, 32, 32), np.float16, seed) for seed in range(3))
    out = p.buffer((1, 2, 32, 32), "f32")
    views = []
    for buffer in (p.buffer((1, 2, 32, 32), "f16") for _ in range(3)):
        kinds = f"memref<{buffer[1]}> into memref<2x32x32xf16>"
        flat = p.emit(f"{p.name()} = memref.collapse_shape {buffer[0]} [[0, 1], [2], [3]] : {kinds}")
        views.append(p.read((flat, "2x32x32xf16")))
    queries, keys, values = views
    scores, rows, every = "2x32x32xf32", "2x32xf32", "h, i, j"
    empty = p.emit(f"{p.name()} = tensor.empty() : tensor<2x32x32xf16>")
    transposed = f"linalg.transpose ins({keys[0]} : tensor<2x32x32xf16>) outs({empty} : tensor<2x32x32xf16>)"
    keys = p.emit(f"{p.name()} = {transposed} permutation = [0, 2, 1]"), "2x32x32xf16"

    def product(a, b, kind, attrs=""):
        types, init = f"tensor<{a[1]}>, tensor<{b[1]}>", p.filled(kind, "0.0")
        text = f"linalg.batch_matmul {{{attrs}}} ins({a[0]}, {b[0]} : {types}) outs({init[0]} : tensor<{kind}>)"
        return p.emit(f"{p.name()} = {text} -> tensor<{kind}>"), kind

    s = product(queries, keys, scores)
    body = "%c = arith.constant 0.1767766952966369 : f32\n%z = arith.mulf %x0, %c : f32"
    s = p.head_op([s], scores, body, [every, every])
    most = p.head_op([s], rows, "%z = arith.maximumf %x0, %y : f32", [every, "h, i"], "",
                     p.filled(rows, "0xFF800000"), True)  # fmt: skip
    s = p.head_op([s, most], scores, "%d = arith.subf %x0, %x1 : f32\n%z = math.exp %d : f32", [every, "h, i", every])
    total = p.head_op([s], rows, "%z = arith.addf %x0, %y : f32", [every, "h, i"], "", p.filled(rows, "0.0"), True)
    body = "%d = arith.divf %x0, %x1 : f32\n%z = arith.truncf %d : f32 to f16"
    s = p.head_op([s, total], "2x32x32xf16", body, [every, "h, i", every])
    result = product(s, values, "2x32x32xf32", "leaf")
    kinds = "memref<1x2x32x32xf32> into memref<2x32x32xf32>"
    flat = p.emit(f"{p.name()} = memref.collapse_shape {out[0]} [[0, 1], [2], [3]] : {kinds}")
    p.write(result, (flat, "2x32x32xf32"))
    weights = np.einsum("zhid,zhjd->zhij", q.astype(np.float64), k.astype(np.float64)) / np.sqrt(32)
    weights = np.exp(weights - weights.max(-1, keepdims=True))
    expected = np.einsum("zhij,zhjd->zhid", weights / weights.sum(-1, keepdims=True), v.astype(np.float64))
    arrays = [np.zeros((1, 2, 32, 32), np.float32), q, k, v]
    close(p, arrays, expected, 3e-3, tmp_path, tile="[1, 32]", data=(8, 32))


FLASH = """
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#both = affine_map<(i, j, k) -> (i, j)>
#product = {indexing_maps = [#left, #right, #both], iterator_types = ["parallel", "parallel", "reduction"]}
!matrix = memref<2x64x32xf16>
!queries = vector<32x32xf16>
!scores = vector<32x16xf32>
!sums = vector<32x32xf32>
!rows = vector<32xf32>
module {
  func.func @payload(%out: !matrix, %q: !matrix, %k: !matrix, %v: !matrix) attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    gpu.launch blocks(%h, %g, %z) in (%gx = %c2, %gy = %c2, %gz = %c1)
        threads(%tx, %ty, %tz) in (%bx = %c64, %by = %c1, %bz = %c1) {
      %pad = arith.constant 0.0 : f16
      %least = arith.constant dense<0xFF800000> : !rows
      %none = arith.constant dense<0.0> : !rows
      %nothing = arith.constant dense<0.0> : !sums
      %unscored = arith.constant dense<0.0> : !scores
      %scale = arith.constant dense<0.176776695> : !scores
      %row = arith.muli %g, %c32 : index
      %vq = vector.transfer_read %q[%h, %row, %c0], %pad {in_bounds = [true, true]} : !matrix, !queries
      %end:3 = scf.for %i = %c0 to %c64 step %c16 iter_args(%m = %least, %l = %none, %acc = %nothing)
          -> (!rows, !rows, !sums) {
        %vk = vector.transfer_read %k[%h, %i, %c0], %pad {in_bounds = [true, true]} : !matrix, vector<16x32xf16>
        %kt = vector.transpose %vk, [1, 0] : vector<16x32xf16> to vector<32x16xf16>
        %s = vector.contract #product %vq, %kt, %unscored : !queries, vector<32x16xf16> into !scores
        %scaled = arith.mulf %s, %scale : !scores
        %most = vector.multi_reduction <maximumf>, %scaled, %least [1] : !scores to !rows
        %next = arith.maximumf %m, %most : !rows
        %wide = vector.broadcast %next : !rows to vector<16x32xf32>
        %across = vector.transpose %wide, [1, 0] : vector<16x32xf32> to !scores
        %centred = arith.subf %scaled, %across : !scores
        %p = math.exp %centred fastmath<fast> : !scores
        %sum = vector.multi_reduction <add>, %p, %none [1] : !scores to !rows
        %less = arith.subf %m, %next : !rows
        %alpha = math.exp %less fastmath<fast> : !rows
        %ls = arith.mulf %l, %alpha : !rows
        %ln = arith.addf %ls, %sum : !rows
        %alphas = vector.broadcast %alpha : !rows to !sums
        %by_row = vector.transpose %alphas, [1, 0] : !sums to !sums
        %rescaled = arith.mulf %acc, %by_row : !sums
        %weights = arith.truncf %p : !scores to vector<32x16xf16>
        %vv = vector.transfer_read %v[%h, %i, %c0], %pad {in_bounds = [true, true]} : !matrix, vector<16x32xf16>
        %an = vector.contract #product %weights, %vv, %rescaled : vector<32x16xf16>, vector<16x32xf16> into !sums
        scf.yield %next, %ln, %an : !rows, !rows, !sums
      }
      %totals = vector.broadcast %end#1 : !rows to !sums
      %total = vector.transpose %totals, [1, 0] : !sums to !sums
      %r = arith.divf %end#2, %total : !sums
      %o = arith.truncf %r : !sums to !queries
      vector.transfer_write %o, %out[%h, %row, %c0] {in_bounds = [true, true]} : !queries, !matrix
      gpu.terminator
    }
    return
  }
}
"""

FLASH_LAYOUTS = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %store = transform.structured.match ops{["xegpu.store_nd"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.xegpu.set_op_layout_attr %store sg_layout = [4, 1] sg_data = [8, 32] : !transform.any_op
    %loads = transform.structured.match ops{["xegpu.load_nd"]} in %root : (!transform.any_op) -> !transform.any_op
    %q, %k, %v = transform.split_handle %loads
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.xegpu.set_op_layout_attr %q result sg_layout = [4, 1] sg_data = [8, 32] inst_data = [8, 16]
      : !transform.any_op
    transform.xegpu.set_op_layout_attr %k result sg_layout = [1, 1] sg_data = [16, 32] : !transform.any_op
    transform.xegpu.set_op_layout_attr %v result sg_layout = [1, 1] sg_data = [16, 32] inst_data = [16, 32]
      : !transform.any_op
    %products = transform.structured.match ops{["xegpu.dpas"]} in %root : (!transform.any_op) -> !transform.any_op
    %qk, %pv = transform.split_handle %products : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.xegpu.set_op_layout_attr %qk result sg_layout = [4, 1] sg_data = [8, 16] : !transform.any_op
    transform.xegpu.set_op_layout_attr %pv result sg_layout = [4, 1] sg_data = [8, 32] : !transform.any_op
    transform.yield
  }
}
"""


def test_tiled_flash_attention(tmp_path):
    """A loop over tiles of keys and values, with the running maximum and sum of each row.

    Lighthouse makes it of attention by a transform of its own, in Python for newer bindings: what that makes is written
    here, and stock mlir-opt converts it to XeGPU and sets the layouts of Lighthouse's schedule.
    """
    schedule = tmp_path / "layouts.mlir"
    schedule.write_text(FLASH_LAYOUTS)
    passes = (
        "--gpu-launch-sink-index-computations", "--gpu-kernel-outlining", "--cse", "--xevm-attach-target=chip=bmg",
        "--convert-vector-to-xegpu", "--cse", "--loop-invariant-code-motion", "--canonicalize",
        f"--transform-preload-library=transform-library-paths={schedule}", "--transform-interpreter",
    )  # fmt: skip
    # MLIR has no aliases of the properties of an op.
    text = FLASH.replace("#product %", "{PRODUCT} %")
    line = next(s for s in FLASH.splitlines() if s.startswith("#product"))
    text = text.replace(line + "\n", "").replace("{PRODUCT}", line.partition(" = ")[2])
    done = subprocess.run(
        [external_tools.find("mlir-opt"), "-", *passes], input=text, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[:2000]
    q, k, v = (noise((2, 64, 32), np.float16, seed) for seed in range(3))
    found = np.zeros_like(q)
    runner = Runner(done.stdout, mem_manager_cls=object, engine="interpreter")
    runner.execute("payload", [found, q, k, v], Runner.get_gpu_argument_access_callback(found))
    weights = np.einsum("hid,hjd->hij", q.astype(np.float64), k.astype(np.float64)) / np.sqrt(32)
    w = np.exp(weights - weights.max(-1, keepdims=True))
    expected = np.einsum("hij,hjd->hid", w / w.sum(-1, keepdims=True), v.astype(np.float64))
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=1e-3, rtol=0)


@pytest.mark.parametrize("form", ["softmax", "layer_norm"])
def test_rows(form, tmp_path):
    """Lighthouse's softmax and layer normalization, each one kernel."""
    p, x = Payload(), noise((64, 32))
    scale, shift = noise((32,), seed=1), noise((32,), seed=2)
    out, given = p.buffer(x.shape, "f32"), p.read(p.buffer(x.shape, "f32"))
    if form == "softmax":
        value, arrays, expected = p.softmax(given, "leaf"), [], softmax(x.astype(np.float64))
    else:
        vectors = [p.read(p.buffer((32,), "f32")) for _ in range(2)]
        value, arrays = p.layer_norm(given, *vectors, "leaf"), [scale, shift]
        expected = normalized(x) * scale + shift
    p.write(value, out)
    close(p, [np.zeros_like(x), x, *arrays], expected, 2e-6, tmp_path, data=(8, 32))


def test_the_feed_forward_part_of_nano_gpt(tmp_path):
    """x + relu(norm(x) W1 + b1) W2, as kernels of their own: norm, cast, two products, bias and relu, residual."""
    p, x = Payload(), noise((64, 32))
    scale, shift, bias = noise((32,), seed=1), noise((32,), seed=2), noise((32,), seed=3)
    w1, w2 = (noise((32, 32), np.float16, seed) / np.float16(8) for seed in (4, 5))
    out, given = p.buffer((64, 32), "f32"), p.buffer((64, 32), "f32")
    s, t, b = (p.read(p.buffer((32,), "f32")) for _ in range(3))
    left, right = (p.read(p.buffer((32, 32), "f16")) for _ in range(2))
    arrays = [np.zeros_like(x), x, scale, shift, bias, w1, w2]

    def kept(value):
        """The value in memory, which ends a kernel."""
        shape = [int(n) for n in value[1].split("x")[:-1]]
        buffer = p.buffer(shape, value[1].split("x")[-1])
        arrays.append(np.zeros(shape, {"f32": np.float32, "f16": np.float16}[value[1].split("x")[-1]]))
        p.write(value, buffer)
        return p.read(buffer)

    h = kept(p.layer_norm(p.read(given), s, t, "leaf"))
    h = kept(p.cast(h, "f16", "leaf"))
    h = kept(p.product(h, left, p.filled("64x32xf32", "0.0"), "leaf"))
    body = "%a = arith.addf %x0, %x1 : f32\n%c = arith.constant 0.0 : f32\n%z = arith.maximumf %a, %c : f32"
    h = kept(p.generic([(h, BOTH), (b, BY_COLUMN)], "64x32xf32", body, "leaf"))
    h = kept(p.cast(h, "f16", "leaf"))
    h = kept(p.product(h, right, p.filled("64x32xf32", "0.0"), "leaf"))
    p.write(p.generic([(p.read(given), BOTH), (h, BOTH)], "64x32xf32", "%z = arith.addf %x0, %x1 : f32", "leaf"), out)
    hidden = np.maximum((normalized(x) * scale + shift) @ w1.astype(np.float64) + bias, 0)
    text = close(p, arrays, x + hidden @ w2.astype(np.float64), 2e-2, tmp_path, data=(8, 32))
    assert text.count("gpu.launch_func") == 7
