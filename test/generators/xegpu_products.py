"""Random kernels of subgroups: products of matrices, and block-scaled products."""

from __future__ import annotations

import math

from xegpu_py.dialects.xegpu.matrix_ops import NARROW_FLOATS, SCALE, WIDE_FLOATS, accumulators
from xegpu_py.ir.builtin import bit_width, is_float, vector_text
from xegpu_py.numerics.block_scaled import scaled_depth
from xegpu_py.numerics.dpas import ops_per_channel
from xegpu_py.passes.analysis.target_messages import precision_of
from xegpu_py.target import TARGETS

from .body import Value, attributes
from .xegpu_scattered import Scattered

NARROW = (8, 8, 4, 2)
"""Widths of integers that dpas multiplies."""


class Products(Scattered):
    """Products, and loads of their factors."""

    def dpas(self) -> Value | None:
        """A product of elements that meet, of one instruction or of several."""
        pairs = dpas_pairs(self.target)
        a, b = self.r.choice([p for p in pairs if p[0] == self.only] or pairs)
        step = max(self.gpu.dpas_depths) * ops_per_channel(precision_of(b), precision_of(a))
        width = self.gpu.dpas_exec_size
        m, n, k = self.r.randint(1, 8), width, step
        if self.r.random() < 0.2:
            m, n, k = self.r.choice([9, 12, 16]), width * self.r.choice([1, 2]), step * self.r.choice([1, 2])
        small = self.r.random() < 0.3
        lhs = self.operand(a, (m, k), axis=self.r.choice([None, 1]), small=small)
        rhs = self.operand(b, (k, n), axis=0, small=small)
        results = accumulators(a, b)
        if not self.gpu.dpas_half_accumulators:
            results = tuple(e for e in results if e not in ("bf16", "f16"))
        result, start = self.r.choice(results), self.r.choice(results)
        acc = self.pick(lambda v: v.shape == (m, n) and v.element == start)
        if acc is None and self.r.random() < 0.7:
            acc = self.of_shape((m, n), start)
        exact = None
        if lhs.exact is not None and rhs.exact is not None and is_float(a):
            more = 0 if acc is None else acc.exact
            exact = None if more is None else lhs.exact * rhs.exact * k + more
        kind = vector_text((m, n), result)
        if acc is None:
            text = f"{lhs.name}, {rhs.name} {{mode = vc}} : {lhs.type}, {rhs.type} -> {kind}"
        elif self.r.random() < 0.8:
            text = f"{acc.name}, {lhs.name}, {rhs.name} {{mode = vc}} : {acc.type}, {lhs.type}, {rhs.type} -> {kind}"
        else:
            text = f"{lhs.name}, {rhs.name}, {acc.name} {{mode = vc}} : {lhs.type}, {rhs.type}, {acc.type} -> {kind}"
        return self.op(f"xegpu.dpas {text}", (m, n), result, exact)

    def scaled(self) -> Value | None:
        """A block-scaled product, on a target that has it."""
        if "bdpas" in self.gpu.absent:
            return None
        eights = ("f8E5M2", "f8E4M3FN")
        pairs = [(e, e) for e in ("bf16", "f16", "f4E2M1FN")] + [(a, b) for a in eights for b in eights]
        a, b = self.r.choice([p for p in pairs if p[0] == self.only] or pairs)
        m, n, k = 8, 16, scaled_depth(precision_of(b), precision_of(a)) * self.r.choice([1, 1, 2])
        small = self.r.random() < 0.5
        factors = [self.operand(a, (m, k), None, small), self.operand(b, (k, n), 0, small)]
        result = self.r.choice(["f32", a if a in ("bf16", "f16") else "bf16"])
        if self.r.random() < 0.6:
            factors.append(self.of_shape((m, n), result))
        words, kinds = [", ".join(v.name for v in factors)], [v.type for v in factors]
        blocks = -(-k // 32)
        for name, shape in (("scale_a", (m, blocks)), ("scale_b", (blocks, n))):
            if self.r.random() < 0.7:
                numbers = self.table([self.r.randint(-12, 127) for _ in range(math.prod(shape))], "i8")
                kind = vector_text(shape, "i8")
                rows = self.op(f"vector.shape_cast {numbers.name} : {numbers.type} to {kind}", shape, "i8")
                scales = self.op(f"vector.bitcast {rows.name} : {rows.type} to {rows.typed(SCALE)}", shape, SCALE)
                words.append(f"{name} = {scales.name}")
                kinds.append(scales.type)
        kind = vector_text((m, n), result)
        text = f"xegpu.dpas_mx {' '.join(words)} {{mode = vc}} : ({', '.join(kinds)}) -> {kind}"
        return self.op(text, (m, n), result)

    def truncated(self) -> Value:
        """xegpu.truncf; of elements of 4 bits the bytes."""
        source = self.only if self.only in WIDE_FLOATS else self.r.choice(WIDE_FLOATS)
        x = self.of_shape((self.r.choice([1, 2, 4]), 16), source)
        # dg2 has no conversions of f8E5M2 but this one, and computes nothing with it.
        to = self.r.choice(("f8E4M3FN", "f4E2M1FN") if self.target == "dg2" else NARROW_FLOATS)
        found = self.op(f"xegpu.truncf {x.name} : {x.type} -> {x.typed(to)}", x.shape, to)
        if to != "f4E2M1FN":
            return found
        shape = (x.shape[0], x.shape[1] // 2)
        return self.op(f"vector.bitcast {found.name} : {found.type} to {vector_text(shape, 'i8')}", shape, "i8")

    def operand(self, element: str, shape: tuple[int, int], axis: int | None, small: bool) -> Value:
        """A factor, loaded from memory, in VNNI layout along an axis or not."""
        bits = bit_width(element)
        rows, columns = shape
        if bits < 8:
            # There is no memory of such elements: bytes hold several.
            each = 8 // bits
            bytes_ = self.operand(
                twin_byte(element), (rows, columns // each) if axis != 0 else (rows // each, columns), axis, False
            )
            if axis is None:
                kind = (rows, columns)
            else:
                *outer, inner = bytes_.shape
                kind = (*outer, inner * each)
            return self.op(
                f"vector.bitcast {bytes_.name} : {bytes_.type} to {vector_text(kind, element)}", kind, element
            )
        factor = 32 // bits if bits < 32 else 1
        wide = self.columns_for(element, columns)
        tensor = self.tensor(element, (rows + 1, wide), small)
        vnni = axis is not None and factor > 1 and shape[axis] % factor == 0
        desc = self.block_desc(tensor, shape, [self.place(self.r.randint(0, 1)), "0"], [])
        entries, found = ["mode = vc"], shape
        if vnni:
            entries.append(f"vnni_axis = {axis}")
            found = (rows // factor, columns, factor) if axis == 0 else (rows, columns // factor, factor)  # type: ignore[assignment]
        kind = vector_text(found, element)
        exact = 4 if tensor.small else None
        return self.op(f"xegpu.load_nd {desc.name}{attributes(entries)} : {desc.type} -> {kind}", found, element, exact)


def twin_byte(element: str) -> str:
    """The byte that holds several integers of fewer bits."""
    return "ui8" if element.startswith("u") else "i8"


def dpas_pairs(target: str) -> list[tuple[str, str]]:
    """Elements that meet in a dpas of a target."""
    gpu = TARGETS[target]
    integers = [f"{sign}i{bits}" for bits in NARROW for sign in ("", "u")]
    found = [(a, b) for a in integers for b in integers]
    found += [(e, e) for e in ("bf16", "f16", "tf32") * 8]
    found += [(a, b) for a in ("f8E5M2", "f8E4M3FN") for b in ("f8E5M2", "f8E4M3FN")] * 4
    found += [("f64", "f64")] * 6
    return [(a, b) for a, b in found if {precision_of(a), precision_of(b)} <= set(gpu.dpas_precisions)]
