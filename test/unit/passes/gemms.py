"""GEMM kernels of many types and tiles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gemm:
    """A GEMM in vector compute mode: C = A x B, or A x B^T.

    Attributes:
        a, b, c: MLIR's element types.
        rows, columns: tile of C that a subgroup computes.
        m, n, k: sizes.
        transposed: whether B is given as N x K, of 16-bit elements, and loaded transposed.
        fresh: whether each iteration creates its descriptors, instead of updating them.
    """

    a: str
    b: str
    c: str
    rows: int = 8
    columns: int = 16
    m: int = 64
    n: int = 64
    k: int = 64
    transposed: bool = False
    fresh: bool = False

    @property
    def pack(self) -> int:
        """Elements of B that fill 32 bits."""
        return 32 // {"bf16": 16, "f16": 16, "i8": 8, "ui8": 8, "tf32": 32}[self.b]

    @property
    def step(self) -> int:
        """Elements of K that one dpas takes."""
        return 8 * self.pack

    def text(self) -> str:
        """The kernel; it is launched with m/rows by n/columns workgroups, both rounded up."""
        p, k = self.pack, self.step
        a_desc = f"!xegpu.tensor_desc<{self.rows}x{k}x{self.a}>"
        b_desc = f"!xegpu.tensor_desc<{k}x16x{self.b}>"
        if self.transposed:
            b_desc = f"!xegpu.tensor_desc<16x{k}x{self.b}>"
        a_vector = f"vector<{self.rows}x{k // p}x{p}x{self.a}>" if p > 1 else f"vector<{self.rows}x{k}x{self.a}>"
        a_rows = f"vector<8x{k // p}x{p}x{self.a}>" if p > 1 else f"vector<8x{k}x{self.a}>"
        b_vector = f"vector<{k // p}x16x{p}x{self.b}>" if p > 1 else f"vector<{k}x16x{self.b}>"
        c_vector, c_desc = f"vector<8x16x{self.c}>", f"!xegpu.tensor_desc<8x16x{self.c}>"
        tiles = [(i, j) for i in range(self.rows // 8) for j in range(self.columns // 16)]
        b_memref = f"memref<{self.n}x{self.k}x{self.b}>" if self.transposed else f"memref<{self.k}x{self.n}x{self.b}>"
        a_memref, c_memref = f"memref<{self.m}x{self.k}x{self.a}>", f"memref<{self.m}x{self.n}x{self.c}>"
        blocks = range(self.columns // 16)
        out = [
            "gpu.module @kernels {",
            f"gpu.func @gemm(%A: {a_memref}, %B: {b_memref}, %C: {c_memref}) kernel {{",
            "%c0 = arith.constant 0 : index",
            f"%step = arith.constant {k} : index",
            f"%K = arith.constant {self.k} : index",
            f"%rows = arith.constant {self.rows} : index",
            f"%columns = arith.constant {self.columns} : index",
            "%x = gpu.block_id x",
            "%y = gpu.block_id y",
            "%m = arith.muli %x, %rows : index",
            "%n = arith.muli %y, %columns : index",
            f"%zero = arith.constant dense<{'0.0' if 'f' in self.c else '0'}> : {c_vector}",
        ]
        for j in blocks:
            out += [f"%j{j} = arith.constant {16 * j} : index", f"%n{j} = arith.addi %n, %j{j} : index"]

        def make(k_index: str, suffix: str) -> list[str]:
            made = [f"%a{suffix} = xegpu.create_nd_tdesc %A[%m, {k_index}] {{mode = vc}} : {a_memref} -> {a_desc}"]
            for j in blocks:
                place = f"%n{j}, {k_index}" if self.transposed else f"{k_index}, %n{j}"
                made.append(f"%b{j}{suffix} = xegpu.create_nd_tdesc %B[{place}] {{mode = vc}} : {b_memref} -> {b_desc}")
            return made

        carried = [f"%acc{i}_{j} = %zero" for i, j in tiles]
        types = [c_vector] * len(tiles)
        if not self.fresh:
            out += make("0", "_first")
            carried += ["%a = %a_first", *(f"%b{j} = %b{j}_first" for j in blocks)]
            types += [a_desc, *[b_desc] * len(blocks)]
        out.append(
            f"%r:{len(types)} = scf.for %k = %c0 to %K step %step iter_args({', '.join(carried)}) -> "
            f"({', '.join(types)}) {{"
        )
        if self.fresh:
            out += make("%k", "")
        vnni = (", vnni_axis = 1", ", vnni_axis = 0") if p > 1 else ("", "")
        out.append(f"%av = xegpu.load_nd %a {{mode = vc{vnni[0]}}} : {a_desc} -> {a_vector}")
        for j in blocks:
            if self.transposed:
                flat = f"vector<{k // p}x{16 * p}x{self.b}>"
                out += [
                    f"%bt{j} = xegpu.load_nd %b{j} {{transpose = [1, 0], transpose_bit_width = 32, mode = vc}} : "
                    f"{b_desc} -> {flat}",
                    f"%bv{j} = vector.shape_cast %bt{j} : {flat} to {b_vector}",
                ]
            else:
                out.append(f"%bv{j} = xegpu.load_nd %b{j} {{mode = vc{vnni[1]}}} : {b_desc} -> {b_vector}")
        rank = 3 if p > 1 else 2
        for i in range(self.rows // 8):
            offsets, sizes = [8 * i, 0, 0][:rank], ([8, k // p, p] if p > 1 else [8, k])
            out.append(
                f"%av{i} = vector.extract_strided_slice %av {{offsets = {offsets}, sizes = {sizes}, "
                f"strides = {[1] * rank}}} : {a_vector} to {a_rows}"
            )
        for i, j in tiles:
            out.append(
                f"%c{i}_{j} = xegpu.dpas %acc{i}_{j}, %av{i}, %bv{j} {{mode = vc}} : {c_vector}, {a_rows}, {b_vector} "
                f"-> {c_vector}"
            )
        yields = [f"%c{i}_{j}" for i, j in tiles]
        if not self.fresh:
            move = {"a": (a_desc, "0, %step")} | {
                f"b{j}": (b_desc, "0, %step" if self.transposed else "%step, 0") for j in blocks
            }
            for name, (desc, by) in move.items():
                out.append(f"%{name}_next = xegpu.update_nd_offset %{name}, [{by}] {{mode = vc}} : {desc} -> {desc}")
                yields.append(f"%{name}_next")
        out += [f"scf.yield {', '.join(yields)} : {', '.join(types)}", "}"]
        for q, (i, j) in enumerate(tiles):
            out += [
                f"%i{q} = arith.constant {8 * i} : index",
                f"%m{q}_ = arith.addi %m, %i{q} : index",
                f"%d{q} = xegpu.create_nd_tdesc %C[%m{q}_, %n{j}] {{mode = vc}} : {c_memref} -> {c_desc}",
                f"xegpu.store_nd %r#{q}, %d{q} {{mode = vc}} : {c_vector}, {c_desc}",
            ]
        return "\n".join([*out, "gpu.return", "}", "}"])
