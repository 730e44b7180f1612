"""Random kernels of subgroups: XeGPU in VC mode, with arith, math, vector, memref and scf around it."""

from __future__ import annotations

from random import Random

from xegpu_py.dialects.xegpu.types import LANES
from xegpu_py.ir.builtin import bit_width, vector_text

from . import elementwise, vectors
from .body import Value, attributes, twin
from .ops import NARROW, NUMBERS, STORED
from .program import Program
from .xegpu_control import Control

TARGET_NAMES = ("pvcxt", "pvcxt", "pvcxt", "any", "any", "pvc", "dg2")


class Kernel(Control):
    """A kernel of all statements."""

    def exchange(self) -> Value | None:
        """Each thread of a workgroup writes to shared local memory; after a barrier it reads another one's data."""
        if self.r.random() < 0.4:
            return self.exchange_block()
        element = self.element_of([*NUMBERS, *STORED, *NARROW])
        count = self.r.choice([4, 8, 16, 32])
        kind = f"memref<{self.block * count}x{element}, 3>"
        buffer = self.shared(kind) if self.r.random() < 0.5 else self.op(f"memref.alloc() : {kind}", (), "memref").name
        x = self.of_shape((count,), element)
        own = self.op(f"arith.muli {self.local}, {self.index(count)} : index", (), "index").name
        next_ = self.op(f"arith.addi {self.local}, {self.index(1)} : index", (), "index").name
        other = self.op(f"arith.remui {next_}, {self.index(self.block)} : index", (), "index").name
        theirs = self.op(f"arith.muli {other}, {self.index(count)} : index", (), "index").name
        may_scatter = count in LANES and element not in NARROW
        lanes = may_scatter and self.r.random() < 0.5
        desc = f"!xegpu.tensor_desc<{count}x{element}, #xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>>"

        def line(at: str) -> str:
            return self.op(f"xegpu.create_nd_tdesc {buffer}[{at}] {{mode = vc}} : {kind} -> {desc}", (), "desc").name

        scattered = f"!xegpu.tensor_desc<{count}x{element}, #xegpu.tdesc_attr<memory_scope = slm, #xegpu.scattered>>"

        def each(at: str) -> str:
            step = self.op(f"vector.step : vector<{count}xindex>", (), "index").name
            first = self.op(f"vector.broadcast {at} : index to vector<{count}xindex>", (), "index").name
            places = self.op(f"arith.addi {first}, {step} : vector<{count}xindex>", (), "index").name
            return self.op(
                f"xegpu.create_tdesc {buffer}, {places} {{mode = vc}} : {kind}, vector<{count}xindex> -> {scattered}",
                (),
                "desc",
            ).name

        mask = self.op(f"arith.constant dense<true> : vector<{count}xi1>", (), "i1").name
        if lanes:
            to = each(own)
            entries = ["mode = vc", *self.scope(slm=True)]
            self.line(
                f"xegpu.store_scatter {x.name}, {to}, {mask}{attributes(entries)} : {x.type}, {scattered}, vector<{count}xi1>"
            )
        else:
            self.line(f"xegpu.store_nd {x.name}, {line(own)} {{mode = vc}} : {x.type}, {desc}")
        self.meet()
        if self.r.random() < 0.5 and may_scatter:
            found = self.op(
                f"xegpu.load_gather {each(theirs)}, {mask} {{mode = vc}} : {scattered}, vector<{count}xi1> -> {x.type}",
                x.shape,
                element,
                x.exact,
            )
        else:
            if self.only or self.r.random() < 0.3:
                self.line(
                    f"xegpu.prefetch_nd {line(theirs)}{attributes(['mode = vc', *self.scope(slm=True)])} : {desc}"
                )
            found = self.op(
                f"xegpu.load_nd {line(theirs)} {{mode = vc}} : {desc} -> {x.type}", x.shape, element, x.exact
            )
        return found

    def exchange_block(self) -> Value:
        """Each thread of a workgroup writes a block to shared local memory, and reads another one's with a transform."""
        element = self.element_of([*NUMBERS, *STORED])
        bits = bit_width(element)
        rows, columns = self.r.choice([(4, 16), (8, 8), (8, 32), (16, 4), (16, 16), (32, 8)])
        # Rows may lie apart, and begin at any element.
        before, behind = self.r.choice([(0, 0), (0, 4), (1, 3), (4, 0)])
        pitch = before + columns + behind
        kind = f"memref<{self.block * rows}x{pitch}x{element}, 3>"
        buffer = self.shared(kind) if self.r.random() < 0.5 else self.op(f"memref.alloc() : {kind}", (), "memref").name
        x = self.of_shape((rows, columns), element)
        next_ = self.op(f"arith.addi {self.local}, {self.index(1)} : index", (), "index").name
        other = self.op(f"arith.remui {next_}, {self.index(self.block)} : index", (), "index").name
        scope = "#xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>"
        desc = f"!xegpu.tensor_desc<{rows}x{columns}x{element}, {scope}>"

        def block(thread: str) -> str:
            row = self.op(f"arith.muli {thread}, {self.index(rows)} : index", (), "index").name
            create = f"xegpu.create_nd_tdesc {buffer}[{row}, {before}] {{mode = vc}} : {kind} -> {desc}"
            return self.op(create, (), "desc").name

        self.line(f"xegpu.store_nd {x.name}, {block(self.local)} {{mode = vc}} : {x.type}, {desc}")
        self.meet()
        entries, shape = self.transformed((rows, columns), bits)
        loaded = vector_text(shape, element)
        return self.op(
            f"xegpu.load_nd {block(other)}{attributes(entries)} : {desc} -> {loaded}", shape, element, x.exact
        )

    def meet(self) -> None:
        """All threads of a workgroup wait for each other."""
        if self.r.random() < 0.3 and self.gpu.named_barriers:
            fence = "xegpu.fence"
            if self.r.random() < 0.8:
                fence += f" {{scope = {self.r.choice(['workgroup', 'gpu'])}, memory_kind = shared}}"
            self.line(fence)
            if self.r.random() < 0.5:
                self.line("xegpu.fence {scope = workgroup, memory_kind = global}")
            if not any("alloc_nbarrier" in line for line in self.lines):
                if self.r.random() < 0.5:
                    self.lines[:0] = [
                        "    %barriers = arith.constant 4 : i8",
                        "    xegpu.alloc_nbarrier %barriers : i8",
                    ]
                else:
                    self.lines.insert(0, "    xegpu.alloc_nbarrier 4")
            number = self.scalar(self.r.randint(0, 3), "i8")
            if self.r.random() < 0.5:
                count = self.scalar(self.block, "i8")
                made = f"xegpu.init_nbarrier {number.name}, {count.name} : i8, i8"
            else:
                both = f"{{num_producers = {self.block}, num_consumers = {self.block}}}"
                made = f"xegpu.create_nbarrier {number.name}, {self.scalar(0, 'i8').name} {both} : (i8, i8)"
            barrier = self.op(f"{made} -> !xegpu.nbarrier", (), "nbarrier")
            self.line(f"xegpu.nbarrier_arrive {barrier.name}")
            self.line(f"xegpu.nbarrier_wait {barrier.name}")
        else:
            self.line("gpu.barrier")

    # Programs

    def statement(self, depth: int) -> None:
        """Any statement."""
        blocks = self.gpu.block2d is not None
        options = {
            "step": 10 if self.steppable() else 0,
            "change": 7 if self.steppable() else 0,
            "load": 4 if blocks else 0,
            "line": 2,
            "gather": 3,
            "dpas": 3 if blocks else 0,
            "scatter": 1,
            "atomic": 2,
            "scaled": 1,
            "truncated": 1,
            "hint": 1,
            "element": 1,
            "if": 2 if depth else 0,
            "for": 2 if depth else 0,
            "while": 1 if depth else 0,
            "switch": 1 if depth else 0,
        }
        (how,) = self.r.choices(list(options), weights=list(options.values()))
        made: Value | None = None
        if how == "step":
            elementwise.steps(self, self.steppable())  # type: ignore[arg-type]
        elif how == "change":
            vectors.change(self, self.steppable())  # type: ignore[arg-type]
        elif how == "load":
            made = self.load_block()
        elif how == "line":
            element = self.element_of([*NUMBERS, *STORED, *NARROW])
            made = self.load_line(element, element == "tf32" or self.r.random() < 0.4)
        elif how == "gather":
            made = self.gather()
        elif how == "dpas":
            made = self.dpas()
        elif how == "scatter":
            self.scatter()
        elif how == "atomic":
            made = self.atomic()
        elif how == "scaled":
            made = self.scaled()
        elif how == "truncated":
            made = self.truncated()
        elif how == "hint":
            self.line(self.r.choice(["xegpu.compile_hint", "xegpu.compile_hint {schedule_barrier}"]))
        elif how == "element":
            made = self.element()
        elif how == "if":
            self.branch(depth)
        elif how == "for":
            self.counted(depth)
        elif how == "while":
            self.turning(depth)
        else:
            self.switch(depth)
        if made is not None:
            self.keep(self.computable(made))

    def element(self) -> Value:
        """One number from memory."""
        element = self.r.choice(NUMBERS)
        shape = (self.threads, 5)
        kind = f"memref<?x{self.r.choice(['5', '?'])}x{element}>"
        name = self.argument(kind, self.data(element, shape))
        return self.op(f"memref.load {name}[{self.tid}, {self.dynamic(self.r.randint(0, 4))}] : {kind}", (), element)

    def computable(self, x: Value) -> Value:
        """The value in elements that arith computes with."""
        if x.element in NUMBERS:
            return x
        if self.r.random() < 0.3:
            self.store(x)
        return self.bits(x)

    def bits(self, x: Value) -> Value:
        """The bits as integers; of tf32, whose lowest bits say nothing, the number."""
        if x.element == "tf32":
            return self.op(f"arith.extf {x.name} : {x.type} to {x.typed('f32')}", x.shape, "f32", x.exact)
        if x.element in NARROW:
            name = self.r.choice(["extsi", "extui"])
            return self.op(f"arith.{name} {x.name} : {x.type} to {x.typed('i8')}", x.shape, "i8")
        whole = twin(x.element)
        return self.op(f"vector.bitcast {x.name} : {x.type} to {x.typed(whole)}", x.shape, whole)

    def steppable(self) -> Value | None:
        """A value to compute with, recent ones more often."""
        found = [v for v in self.values if v.element in NUMBERS]
        if not found:
            return None
        return self.r.choice(found[-3:]) if self.r.random() < 0.7 else self.r.choice(found)


def tour(r: Random, element: str | None = None, length: int | None = None) -> Program:
    """A kernel of ops on memory and products, with one element and many attributes, whose results are stored."""
    target = r.choice(TARGET_NAMES)
    grid, block = r.choice([(1, 1), (2, 1), (1, 2)])
    b = Kernel(r, target, grid, block)
    b.only, b.plain_hints = element or r.choice([*NUMBERS, *STORED, *NARROW]), 0.1
    for _ in range(length or r.randint(2, 6)):
        (how,) = r.choices(
            ["load", "line", "gather", "scatter", "atomic", "dpas", "exchange", "scaled", "truncated"],
            weights=[5, 1, 3, 3, 3, 1, 2, 1, 1],
        )
        made: Value | None = None
        if r.random() < 0.1:
            b.line("xegpu.compile_hint")
        if how == "load":
            made = b.load_block()
        elif how == "line":
            made = b.load_line(b.only, b.only == "tf32" or r.random() < 0.4)
        elif how == "scatter":
            b.scatter()
        else:
            made = getattr(b, how)()
        # A tour of a given length is not run.
        if made is not None and (length is None or r.random() < 0.5):
            b.store(made)
    return Program(b.text(), b.words(), b.grid_size, b.block_size, target)


def program(r: Random) -> Program:
    """A random kernel of subgroups."""
    if r.random() < 0.3:
        return tour(r)
    target = r.choice(TARGET_NAMES)
    grid, block = r.choice([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2), (3, 1)])
    b = Kernel(r, target, grid, block)
    for _ in range(r.randint(1, 3)):
        (how,) = r.choices(["block", "line", "gather", "dpas"], weights=[5, 2, 2, 3])
        made = {
            "block": b.load_block,
            "line": lambda: b.load_line(r.choice(NUMBERS), r.random() < 0.5),
            "gather": b.gather,
            "dpas": b.dpas,
        }[how]()
        assert made is not None
        b.keep(b.computable(made))
    b.statements(r.randint(1, 6), 2)
    if block > 1 or r.random() < 0.15:
        found = b.all_reduced(b.element()) if r.random() < 0.25 else b.exchange()
        if found is not None:
            b.keep(b.computable(found))
        b.statements(r.randint(0, 2), 1)
    for x in b.values[-3:]:
        b.store(x)
    registers = r.choice([None, None, 256])
    model = r.choice(["fma", "fma", "stage", "exact"])
    return Program(b.text(), b.words(), b.grid_size, b.block_size, target, registers, model)
