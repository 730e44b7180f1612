"""A GEMM kernel in XeGPU as it is written for speed: subgroup tiles of 32x64, two depths of K a step, 64-byte rows."""

from __future__ import annotations

from dataclasses import dataclass

ROWS, COLUMNS = 32, 64
SUBGROUPS = (8, 4)
"""Subgroups of a workgroup, down and across: its tile is 256x256."""
TILE = (ROWS * SUBGROUPS[0], COLUMNS * SUBGROUPS[1])
BITS = {"bf16": 16, "f16": 16, "tf32": 32, "i8": 8, "f8E5M2": 8, "f8E4M3FN": 8}


@dataclass(frozen=True)
class GemmKernel:
    """C = A x B, of sizes that the workgroup's tile divides.

    Attributes:
        dtype: MLIR's element type of A and B.
        size: M, N and K.
    """

    dtype: str
    size: int

    @property
    def result(self) -> str:
        """The element type of C."""
        return "i32" if self.dtype == "i8" else "f32"

    @property
    def grid(self) -> tuple[int, int]:
        """Workgroups."""
        return self.size // TILE[1], self.size // TILE[0]

    @property
    def block(self) -> int:
        """Subgroups of a workgroup."""
        return SUBGROUPS[0] * SUBGROUPS[1]

    def text(self) -> str:
        """The module, for the pipeline `xegpu-to-visa-pipeline`."""
        bits, n, e = BITS[self.dtype], self.size, self.dtype
        pack, depth = 32 // bits, 256 // bits
        step = 2 * depth
        # A load of B has up to 32 rows, and blocks of 16 columns that fill 64 bytes.
        height, count = min(step, 32), min(64 * 8 // (16 * bits), 2 if bits == 32 else 4)
        a_desc = f"!xegpu.tensor_desc<{ROWS}x{depth}x{e}, #xegpu.tdesc_attr<array_length = 2>>"
        shared = f", #xegpu.tdesc_attr<array_length = {count}>" if count > 1 else ""
        b_desc = f"!xegpu.tensor_desc<{height}x16x{e}{shared}>"
        packed = f"x{pack}" if pack > 1 else ""
        a_all = f"vector<2x{ROWS}x{depth // pack}{packed}x{e}>"
        a_block = f"vector<{ROWS}x{depth // pack}{packed}x{e}>"
        a_rows = f"vector<8x{depth // pack}{packed}x{e}>"
        b_block = f"vector<{height // pack}x16{packed}x{e}>"
        b_all = f"vector<{count}x{height // pack}x16{packed}x{e}>" if count > 1 else b_block
        b_rows = f"vector<{depth // pack}x16{packed}x{e}>"
        c_vector, c_desc = f"vector<8x16x{self.result}>", f"!xegpu.tensor_desc<8x16x{self.result}>"
        memref, c_memref = f"memref<{n}x{n}x{e}>", f"memref<{n}x{n}x{self.result}>"
        tiles = [(i, j) for i in range(ROWS // 8) for j in range(COLUMNS // 16)]
        # The loads of B, by their first row and first column.
        loads = [(k, j) for k in range(0, step, height) for j in range(0, COLUMNS // 16, count)]
        out = [
            "gpu.module @kernels {",
            f"gpu.func @gemm(%A: {memref}, %B: {memref}, %C: {c_memref}) kernel {{",
            "%c0 = arith.constant 0 : index",
            f"%c4 = arith.constant {SUBGROUPS[1]} : index",
            f"%rows = arith.constant {ROWS} : index",
            f"%columns = arith.constant {COLUMNS} : index",
            f"%step = arith.constant {step} : index",
            f"%K = arith.constant {n} : index",
            f"%tile_m = arith.constant {TILE[0]} : index",
            f"%tile_n = arith.constant {TILE[1]} : index",
            "%sg = gpu.subgroup_id : index",
            "%x = gpu.block_id x",
            "%y = gpu.block_id y",
            "%sg_m = arith.divui %sg, %c4 : index",
            "%sg_n = arith.remui %sg, %c4 : index",
            "%m0 = arith.muli %y, %tile_m : index",
            "%m1 = arith.muli %sg_m, %rows : index",
            "%m = arith.addi %m0, %m1 : index",
            "%n0 = arith.muli %x, %tile_n : index",
            "%n1 = arith.muli %sg_n, %columns : index",
            "%n = arith.addi %n0, %n1 : index",
            f"%zero = arith.constant dense<{'0' if self.result == 'i32' else '0.0'}> : {c_vector}",
            f"%a_first = xegpu.create_nd_tdesc %A[%m, 0] {{mode = vc}} : {memref} -> {a_desc}",
        ]
        for q, (k, j) in enumerate(loads):
            out += [
                f"%o{q} = arith.constant {16 * j} : index",
                f"%n_{q} = arith.addi %n, %o{q} : index",
                f"%b{q}_first = xegpu.create_nd_tdesc %B[{k}, %n_{q}] {{mode = vc}} : {memref} -> {b_desc}",
            ]
        carried = [f"%acc{i}_{j} = %zero" for i, j in tiles]
        carried += ["%a = %a_first", *(f"%b{q} = %b{q}_first" for q in range(len(loads)))]
        types = [c_vector] * len(tiles) + [a_desc] + [b_desc] * len(loads)
        out.append(
            f"%r:{len(types)} = scf.for %k = %c0 to %K step %step iter_args({', '.join(carried)}) -> "
            f"({', '.join(types)}) {{"
        )
        vnni = (", vnni_axis = 1", ", vnni_axis = 0") if pack > 1 else ("", "")
        out.append(f"%av = xegpu.load_nd %a {{mode = vc{vnni[0]}}} : {a_desc} -> {a_all}")
        for q in range(len(loads)):
            out.append(f"%bv{q} = xegpu.load_nd %b{q} {{mode = vc{vnni[1]}}} : {b_desc} -> {b_all}")
        rank = 3 if pack > 1 else 2
        for h in range(2):
            out.append(f"%av{h} = vector.extract %av[{h}] : {a_block} from {a_all}")
            for i in range(ROWS // 8):
                out.append(self._slice(f"%a{h}_{i}", f"%av{h}", [8 * i, 0, 0][:rank], a_block, a_rows))
        for q, (k, first) in enumerate(loads):
            for b in range(count):
                source = f"%bv{q}"
                if count > 1:
                    source = f"%bv{q}_{b}"
                    out.append(f"{source} = vector.extract %bv{q}[{b}] : {b_block} from {b_all}")
                for h in range(k // depth, (k + height) // depth):
                    name, row = f"%b_{h}_{first + b}", (h * depth - k) // pack
                    out.append(self._slice(name, source, [row, 0, 0][:rank], b_block, b_rows))
        out.append(f"%a_next = xegpu.update_nd_offset %a, [0, %step] {{mode = vc}} : {a_desc} -> {a_desc}")
        yields = [*(f"%e{i}_{j}" for i, j in tiles), "%a_next"]
        for q in range(len(loads)):
            out.append(f"%b{q}_next = xegpu.update_nd_offset %b{q}, [%step, 0] {{mode = vc}} : {b_desc} -> {b_desc}")
            yields.append(f"%b{q}_next")
        # What the next step needs comes into the caches while this one multiplies.
        out.append(f"xegpu.prefetch_nd %a_next {{mode = vc}} : {a_desc}")
        out += [f"xegpu.prefetch_nd %b{q}_next {{mode = vc}} : {b_desc}" for q in range(len(loads))]
        for h in range(2):
            for i, j in tiles:
                acc = f"%d{i}_{j}" if h else f"%acc{i}_{j}"
                name = f"%e{i}_{j}" if h else f"%d{i}_{j}"
                out.append(
                    f"{name} = xegpu.dpas {acc}, %a{h}_{i}, %b_{h}_{j} {{mode = vc}} : {c_vector}, {a_rows}, {b_rows} "
                    f"-> {c_vector}"
                )
        out += [f"scf.yield {', '.join(yields)} : {', '.join(types)}", "}"]
        for q, (i, j) in enumerate(tiles):
            out += [
                f"%i{q} = arith.constant {8 * i} : index",
                f"%m{q}_ = arith.addi %m, %i{q} : index",
                f"%j{q} = arith.constant {16 * j} : index",
                f"%n{q}_ = arith.addi %n, %j{q} : index",
                f"%cd{q} = xegpu.create_nd_tdesc %C[%m{q}_, %n{q}_] {{mode = vc}} : {c_memref} -> {c_desc}",
                f"xegpu.store_nd %r#{q}, %cd{q} {{mode = vc}} : {c_vector}, {c_desc}",
            ]
        return "\n".join([*out, "gpu.return", "}", "}"])

    @staticmethod
    def _slice(name: str, source: str, offsets: list[int], whole: str, part: str) -> str:
        sizes = [int(s) for s in part[7:].split("x")[: len(offsets)]]
        return (
            f"{name} = vector.extract_strided_slice {source} {{offsets = {offsets}, sizes = {sizes}, "
            f"strides = {[1] * len(offsets)}}} : {whole} to {part}"
        )
