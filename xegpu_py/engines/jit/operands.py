"""Where the values of an instruction lie in native code, and which registers stay temporaries."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from string import Template
from typing import TYPE_CHECKING

from msgspec import Struct, field

from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.ir_text import PTR, Code, Value, bits_of, lanes_of, vector
from xegpu_py.engines.jit.llvm import function_of
from xegpu_py.engines.jit.native_launch_struct import STRIDE_BYTES, STRIDES, TABLES, Frame, Status, context_offset
from xegpu_py.engines.operands import Layout, execution_format
from xegpu_py.engines.semantics.alu import ROUNDED
from xegpu_py.numerics.dpas import Model
from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import Target
from xegpu_py.visa.dataflow import accesses, effects, span_bits
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import (
    Address,
    AddressOf,
    Destination,
    Flag,
    Immediate,
    Indirect,
    Instruction,
    Predicate,
    Program,
    Raw,
    Region,
    Variable,
    Vector,
    analysis,
    first_byte,
)
from xegpu_py.visa.spec import FLOATS

if TYPE_CHECKING:
    from xegpu_py.engines.jit.packed_operand_cache import Matrices, Matrix


# Operands as native code: registers, predicates and masks of one hardware thread.

_WIDEST_LOAD = 256
"""The largest extent in bytes of strided elements that are loaded together and shuffled."""

_TILES = Value("%tiles", PTR)
"""The variable of a function with the number of the tile registers' configuration; 0 if it is not known."""

_WAY_OUT = "leave"
"""The block that returns from a thread's function so that the function can be entered again."""


class Queue(Struct, frozen=True):
    """Steps of a loop whose products are not added to the accumulators yet.

    Attributes:
        count: the function's variable with the number of these steps.
        memory: the array of pointers to their matrices.
        flush: the function that multiplies them, from the context, the thread's block, this memory and a number of
            steps.
    """

    count: Value
    memory: Value
    flush: str


def is_independent(program: Program) -> bool:
    """Whether threads can run in any order; they have no local memory, barriers or atomics."""
    specs = [INSTRUCTIONS[inst.name] for inst in program.instructions]
    return not program.slm_bytes and not any(s.barrier or s.category in ("atomic", "sync") for s in specs)


@analysis
def _messages(program: Program) -> list[int]:
    """The indices of a program's messages."""
    return [at for at, inst in enumerate(program.instructions) if INSTRUCTIONS[inst.name].is_message]


def prefetch_next(code: Code, strides: Value, pointer: Value, prefetch: Callable[[Value], None]) -> None:
    """Prefetch what a thread's message accesses the next time it is sent, in a loop or in another workgroup, if the
    last two of its strides were the same.

    Args:
        strides: see `Emitter.strides`.
        pointer: a pointer to the memory that the message accesses now.
        prefetch: a function that emits prefetches of the memory at a pointer.
    """
    address = code.cast("ptrtoint", pointer, "i64")
    known = [code.at(strides, at) for at in (0, 8)]
    before, expected = (code.load(at, "i64", 8) for at in known)
    found = code.sub(address, before)
    code.store(address, known[0], 8)
    code.store(found, known[1], 8)
    with code.when(code.and_(code.icmp("eq", found, expected), code.icmp("ne", found, 0))):
        prefetch(code.at(pointer, found))


def prefetch_line(code: Code, pointer: Value, category: str) -> None:
    """Prefetch a line of memory into all levels of the cache of data, for a message of category `load` or `store`."""
    code.call("llvm.prefetch.p0", pointer, *(code.const(n, "i32") for n in (int(category == "store"), 3, 1)))


# Register promotion: values that need not be in the thread's block, and NaNs whose bits no one observes.


class RegisterPromotion(Struct, frozen=True):
    """Variables and predicates that LLVM may keep anywhere, and variables whose NaNs may have any bits.

    Attributes:
        variables: see `temporaries`.
        predicates: see `temporary_predicates`.
        nans: see `free_nans`.
    """

    variables: Set[Variable] = frozenset()
    predicates: Set[Predicate] = frozenset()
    nans: Set[Variable] = frozenset()


class _Parts(Struct, frozen=True):
    """Parts of wider integers of a register file: `bits` bits of each, from bit `first` on.

    Attributes:
        whole: the integers.
        place: their byte offset.
    """

    whole: Value
    place: int
    first: int
    bits: int

    def of(self, code: Code) -> Value:
        """The parts."""
        return code.resize(code.lshr(self.whole, self.first), self.bits, False)

    def with_(self, code: Code, values: Value) -> Value:
        """The integers with other parts."""
        wide = code.resize(values, bits_of(self.whole.type), False)
        ones = (1 << bits_of(self.whole.type)) - 1
        others = code.mask(self.whole, ones ^ ((1 << self.bits) - 1) << self.first)
        return code.or_(others, code.shl(wide, self.first))


class Emitter(Struct):
    """The state of code generation that rules use: the function of a thread, and its module.

    Attributes:
        program: the program.
        layout: where its variables lie.
        frame: where the thread's state lies.
        model: how dpas rounds.
        code: the function that is written.
        host: the CPU for which code is generated.
        helpers: functions that the thread's function calls, by name.
        live: the first and last instruction of the live range of each variable that is no alias; None to keep all.
        active: the variable with the enabled lanes, an i32; None if all lanes are enabled.
        matrices: variables that are not in registers; None if all are there.
        freedom: the freedom that the program leaves to LLVM; see `RegisterPromotion`.
        loop: the block that is written, if it jumps to itself.
        queue: the products that are queued in that block.
    """

    program: Program
    layout: Layout
    frame: Frame
    model: Model
    code: Code
    host: Host
    helpers: dict[str, str] = field(default_factory=dict)
    active: Value | None = None
    live: Mapping[Variable, tuple[int, int]] | None = None
    matrices: Matrices | None = None
    freedom: RegisterPromotion = field(default_factory=RegisterPromotion)
    loop: range | None = None
    queue: Queue | None = None
    _queues: list[Queue] = field(default_factory=list)
    _panels: dict[Variable, list[tuple[int, int, Value]]] = field(default_factory=dict)
    _reserved: dict[Variable, Value] = field(default_factory=dict)
    _truths: dict[Predicate, Value] = field(default_factory=dict)
    _scratch: int = 0
    _left: bool = False
    _tiles: dict[str, int] = field(default_factory=dict)

    def forgotten(self, at: int, reader: int) -> bool:
        """Whether the result of instruction `at` is dead after instruction `reader`."""
        if self.live is None:
            return False
        root = self.program.instructions[at]["dst"].var.root[0]
        return self.live[root][1] == reader

    def strides(self, at: int) -> Value:
        """Where the strides of message `at` are kept: see `Frame.strides`. Messages that share a place have none."""
        number = bisect_left(_messages(self.program), at) % STRIDES
        return self.code.at(self.thread, self.frame.strides + STRIDE_BYTES * number)

    def scratch(self, size: int) -> Value:
        """Memory of the function that is used for one instruction only."""
        self._scratch = max(self._scratch, size)
        return Value("%scratch", PTR)

    def finish(self) -> str:
        """The function's text."""
        if self._scratch:
            self.code.reserve("%scratch", self._scratch)
        if self._left:
            self._write_way_out()
        if self.host.multiplies_tiles:
            self.code.variable(_TILES.name, "i32")
        return self.code.text()

    def matrix(self, operand: Raw | Vector) -> tuple[Matrix, int] | None:
        """The matrix that holds an operand instead of registers, and the byte of the variable."""
        found = self.matrices.of(operand.var) if self.matrices else None
        if found is None:
            return None
        matrix, offset = found
        return matrix, offset + self.place(operand) - self.layout.offset(operand.var)

    def part_of_matrix(self, operand: Raw | Vector) -> tuple[Value, int] | None:
        """The memory that holds an operand instead of registers: a pointer and a size in bytes."""
        found = self.matrix(operand)
        if found is None:
            return None
        matrix, offset = found
        for start, end, panel in reversed(self._panels[operand.var.root[0]]):
            if start <= offset < end:
                return panel, matrix.scale * (offset - start)
        raise AssertionError(f"{operand.var.name} is read where it was not loaded")

    def note_panel(self, operand: Raw, size: int, panel: Value) -> None:
        """Record the panel to which a message has loaded `size` bytes of a variable."""
        found = self.matrix(operand)
        assert found
        start = found[1]
        self._panels.setdefault(operand.var.root[0], []).append((start, start + size, panel))

    def new_queue(self, queue: Queue, size: int) -> None:
        """Begin a queue of `size` bytes in the current loop."""
        self.code.variable(queue.count.name, "i64")
        self.code.reserve(queue.memory.name, size)
        self.queue = queue
        self._queues.append(queue)

    def flush(self, queue: Queue | None) -> None:
        """Multiply the queued panels, which is necessary before other instructions access the accumulators."""
        if queue is None:
            return
        code = self.code
        count = code.load(queue.count, "i64", 8)
        with code.when(code.icmp("ne", count, 0)):
            code.call(queue.flush, self.ctx, self.thread, queue.memory, count)
            code.store(code.const(0, "i64"), queue.count, 8)

    @property
    def ctx(self) -> Value:
        """The worker's context."""
        return self.code.arguments[0]

    @property
    def thread(self) -> Value:
        """The thread's block."""
        return self.code.arguments[1]

    def helper(self, name: str, make: Callable[[], str]) -> str:
        """The name of a function, which is written at its first use."""
        if name not in self.helpers:
            self.helpers[name] = ""
            self.helpers[name] = make()
        return name

    def template(self, file: str, name: str, **words: object) -> str:
        """The name of a function of a template file (see `llvm.function_of`), written at its first use."""
        words["attributes"] = self.host.attributes
        return self.helper(Template(name).substitute(words), lambda: function_of(file, name, **words))

    def context(self, name: str, kind: str = "i64") -> Value:
        """A field of the context."""
        return self.code.load(self.code.at(self.ctx, context_offset(name)), kind, 8)

    # Tile registers of the host.

    def configure_tiles(self, function: str) -> None:
        """Configure the tile registers by calling a function, unless they are configured."""
        code, number = self.code, self._tiles.setdefault(function, len(self._tiles) + 1)
        with code.when(code.icmp("ne", code.load(_TILES, "i32", 4), number)):
            code.call(function)
            code.store(code.const(number, "i32"), _TILES, 4)

    def release_tiles(self) -> None:
        """Release the tile registers if they are in use; otherwise the system saves their state for each thread."""
        if self._tiles:
            self.code.call("llvm.x86.tilerelease")

    # Registers.

    def place(self, operand: Region | Destination | Vector | Raw | Address) -> int:
        """Byte offset of an operand in the register file."""
        return self.layout.offset(operand.var) + first_byte(operand, self.layout.target.grf_bytes)

    def where(self, operand: Region | Destination) -> tuple[Value, int]:
        """The memory of an operand's first byte: a pointer and an offset in bytes."""
        place, (root, _) = self.place(operand), operand.var.root
        if root not in self.freedom.variables:
            return self.thread, place
        base = self._reserved.get(root)
        if base is None:
            base = self._reserved[root] = self.code.alloca(root.bytes, 64)
        return base, place - self.layout.offset(root)

    def read(self, operand: Region | Immediate | Indirect | AddressOf, lanes: int) -> Value:
        """A source's elements as integers of their width."""
        code = self.code
        if isinstance(operand, AddressOf):
            operand = Immediate(self.layout.offset(operand.var) + operand.offset, operand.format.name)
        if isinstance(operand, Indirect):
            return self.read_indirect(operand, lanes)
        if isinstance(operand, Immediate) and operand.is_packed:
            return code.consts(operand.elements(lanes), f"i{operand.format.bits}")
        if isinstance(operand, Immediate):
            return code.const(operand.bits, vector(lanes, f"i{operand.format.bits}"))
        size = operand.var.format.bytes
        element, (block, base) = f"i{8 * size}", self.where(operand)
        if operand.is_scalar:
            return code.splat(code.fetch(block, base, element), lanes)
        places = operand.elements(lanes)
        if places == list(range(lanes)):
            return code.fetch(block, base, vector(lanes, element))
        span, root = max(places) + 1, operand.var.root[0]
        if root in self.freedom.variables and root.bytes <= _WIDEST_LOAD and base % size == root.bytes % size == 0:
            # The whole variable: LLVM promotes memory to values only if loads and stores have the same type.
            places = [base // size + place for place in places]
            span, base = root.bytes // size, 0
        elif lanes > 1 and places == [lane * places[1] for lane in range(lanes)]:
            parts = self._wider(operand, lanes, places[1])
            if parts is not None:
                return parts.of(code)
        if span * size <= _WIDEST_LOAD:
            whole = code.fetch(block, base, vector(span, element))
            return code.shuffle(whole, whole, places)
        found = code.poison(vector(lanes, element))
        for lane, place in enumerate(places):
            found = code.insert(found, code.fetch(block, base + place * size, element), lane)
        return found

    def _places(self, operand: Indirect, lanes: int) -> Value:
        """The place in the register file of each lane's element, i64."""
        code, (which, behind) = self.code, zip(*operand.elements(lanes))
        first = self.layout.offset(operand.var) + 4 * operand.col
        starts = code.fetch(self.thread, first, vector(operand.addresses(lanes), "i32"))
        starts = code.resize(code.shuffle(starts, starts, which), 64, False)
        return code.add(starts, code.consts([place + operand.plus for place in behind], "i64"))

    def _pointers(self, operand: Indirect, lanes: int, behind: int) -> list[Value]:
        """A pointer to each lane's element. Those of lanes that do not act are kept inside of the register file."""
        code, places = self.code, self._places(operand, lanes)
        places = code.intrinsic("umin", places, code.const(self.frame.registers - operand.format.bytes, places.type))
        return [code.at(code.at(self.thread, behind), code.extract(places, lane)) for lane in range(lanes)]

    def read_indirect(self, operand: Indirect, lanes: int, behind: int = 0) -> Value:
        """Each lane's element, which lies so many bytes behind where the operand says, as an integer."""
        found = self.code.poison(vector(lanes, f"i{operand.format.bits}"))
        for lane, pointer in enumerate(self._pointers(operand, lanes, behind)):
            found = self.code.insert(found, self.code.load(pointer, found.element), lane)
        return found

    def require_places(self, inst: Instruction, at: int) -> None:
        """Fail before an instruction unless the elements that it finds by addresses are within variables."""
        code = self.code
        for operand in inst.indirect:
            places, bits = self._places(operand, inst.exec_size), self.acting(inst)
            outside = code.const((1 << inst.exec_size) - 1, "i32") if bits is None else bits
            for base in operand.bases:
                behind = code.sub(places, self.layout.offset(base))
                count = max(base.bytes - operand.format.bytes + 1, 0)
                beyond = code.icmp("uge", behind, code.const(count, places.type))
                outside = code.and_(outside, code.mask_to_bits(beyond))
            self.require(code.icmp("eq", outside, 0), at)

    def write_indirect(self, operand: Indirect, values: Value, mask: Value | None, behind: int = 0) -> None:
        """Write each lane's element so many bytes behind where the operand says."""
        code, lanes = self.code, lanes_of(values.type)
        for lane, place in enumerate(self._pointers(operand, lanes, behind)):
            value = code.extract(values, lane)
            if mask is None:
                code.store(value, place)
                continue
            with code.when(code.extract(mask, lane)):
                code.store(value, place)

    def _wider(self, operand: Region | Destination, lanes: int, stride: int) -> _Parts | None:
        """Every `stride`-th element as a part of an integer `stride` times as wide; None if no integers contain them.

        LLVM compiles these in two thirds of the time that shuffles of all elements in between take.
        """
        size, (block, base), root = operand.var.format.bytes, self.where(operand), operand.var.root[0]
        unit = stride * size
        inside = root not in self.freedom.variables or root.bytes % unit == 0
        if unit not in (2, 4, 8) or base % size or not inside:
            return None
        place = base - base % unit
        whole = self.code.fetch(block, place, vector(lanes, f"i{8 * unit}"))
        return _Parts(whole, place, 8 * (base % unit), 8 * size)

    def scalar(self, operand: Region | Immediate) -> Value:
        """The first element of a source, an integer."""
        if isinstance(operand, Immediate):
            return self.code.const(operand.bits, f"i{operand.format.bits}")
        return self.code.fetch(*self.where(operand), f"i{operand.format.bits}")

    def write(self, operand: Destination | Indirect, values: Value, mask: Value | None) -> None:
        """Write integers of the destination's width to the lanes that a mask sets; None for all."""
        code = self.code
        if isinstance(operand, Indirect):
            self.write_indirect(operand, values, mask)
            return
        size, lanes, (block, base) = operand.var.format.bytes, lanes_of(values.type), self.where(operand)
        if operand.stride == 1 or lanes == 1:
            if mask is not None:
                values = code.merge(mask, values, code.fetch(block, base, values.type))
            code.put(values, block, base)
            return
        parts = self._wider(operand, lanes, operand.stride)
        if parts is not None:
            if mask is not None:
                values = code.merge(mask, values, parts.of(code))
            code.put(parts.with_(code, values), block, parts.place)
            return
        span = (lanes - 1) * operand.stride + 1
        if span * size <= _WIDEST_LOAD:
            before = code.fetch(block, base, vector(span, values.element))
            if mask is not None:
                values = code.merge(mask, values, code.shuffle(before, before, operand.elements(lanes)))
            spread = code.shuffle(values, values, [min(i, lanes - 1) for i in range(span)])
            picks = [i if i % operand.stride else span + i // operand.stride for i in range(span)]
            code.put(code.shuffle(before, spread, picks), block, base)
            return
        for lane, place in enumerate(operand.elements(lanes)):
            value, at = code.extract(values, lane), base + place * size
            if mask is not None:
                value = code.select(code.extract(mask, lane), value, code.fetch(block, at, value.type))
            code.put(value, block, at)

    # Predicates and masks. A predicate is an i32.

    def flag_place(self, predicate: Predicate) -> int:
        """Byte offset of a predicate in the thread's block."""
        return self.frame.flags + 4 * self.layout.predicates[predicate]

    def any_nan(self, operand: Destination | Indirect) -> bool:
        """Whether the written value may be a NaN with any bits."""
        return operand.var.root[0] in self.freedom.nans

    def truth(self, predicate: Predicate) -> Value | None:
        """A predicate that is a vector of i1, with the lanes of all instructions that access it, or None."""
        return self._truths[predicate] if predicate in self.freedom.predicates else None

    def flag(self, predicate: Predicate) -> Value:
        """All bits of a predicate in the thread's block, an i32."""
        # As many bytes as `write_flag` writes at once: see `Code.fetch`.
        bits = predicate.count if predicate.count in (8, 16) else 32
        return self.code.resize(self.code.fetch(self.thread, self.flag_place(predicate), f"i{bits}"), 32, False)

    def chosen(self, inst: Instruction) -> Value:
        """The guard's bits for the instruction's lanes, the lowest of an i32. Inversion is after any and all."""
        code, guard, lanes = self.code, inst.guard, inst.exec_size
        assert guard
        truth = self.chosen_lanes(inst)
        if truth is not None:
            return code.mask_to_bits(truth)
        bits = self.flag(guard.var)
        if guard.control:
            all_bits = (1 << guard.var.count) - 1
            own = code.mask(bits, all_bits)
            joined = code.icmp("ne", own, 0) if guard.control == "any" else code.icmp("eq", own, all_bits)
            bits = code.cast("sext", joined, "i32")
        elif not INSTRUCTIONS[inst.name].goes_together(inst):
            bits = code.lshr(bits, inst.first_lane) if inst.first_lane else bits
        if guard.inverted:
            bits = code.not_(bits)
        return code.mask(bits, (1 << lanes) - 1) if lanes < 32 else bits

    def chosen_lanes(self, inst: Instruction) -> Value | None:
        """`chosen` as a vector of i1, if the guard is one."""
        assert inst.guard
        truth = self.truth(inst.guard.var)
        return self.code.not_(truth) if truth and inst.guard.inverted else truth

    def acting(self, inst: Instruction) -> Value | None:
        """The lanes in which an instruction acts, the lowest bits of an i32; None for all."""
        code, lanes = self.code, inst.exec_size
        enabled = None
        if self.active is not None and not inst.no_mask and INSTRUCTIONS[inst.name].exec_sizes:
            enabled = code.load(self.active, "i32", 4)
            enabled = code.lshr(enabled, inst.first_lane) if inst.first_lane else enabled
            enabled = code.mask(enabled, (1 << lanes) - 1) if lanes < 32 else enabled
        if inst.guard is None or INSTRUCTIONS[inst.name].selects:
            return enabled
        chosen = self.chosen(inst)
        return chosen if enabled is None else code.and_(chosen, enabled)

    def mask(self, inst: Instruction) -> Value | None:
        """The lanes in which an instruction acts, as a vector of i1; None for all."""
        if inst.guard and not INSTRUCTIONS[inst.name].selects:
            truth = self.chosen_lanes(inst)
            if truth is not None:
                return truth
        bits = self.acting(inst)
        return None if bits is None else self.code.bits_to_mask(bits, inst.exec_size)

    def write_truth(self, inst: Instruction, truth: Value) -> None:
        """Write a vector of i1 to the predicate that is the destination, in the lanes that act."""
        if inst["dst"].var in self.freedom.predicates:
            self._truths[inst["dst"].var] = truth
        else:
            self.write_flag(inst, self.code.mask_to_bits(truth))

    def write_flag(self, inst: Instruction, bits: Value) -> None:
        """Write the lowest bits of an i32 to the predicate that is the destination, in the lanes that act."""
        code, place = self.code, self.flag_place(inst["dst"].var)
        own = (1 << inst.exec_size) - 1
        acting = self.acting(inst)
        if acting is None and inst.exec_size % 8 == 0 and inst.first_lane % 8 == 0:
            # LLVM 22 loses the other lanes when it inserts a byte or word into a value in a mask register.
            code.put(code.resize(bits, inst.exec_size, False), self.thread, place + inst.first_lane // 8)
            return
        bits = code.mask(bits, own)
        where = code.const(own, "i32") if acting is None else acting
        if acting is not None:
            bits = code.and_(bits, acting)
        if inst.first_lane:
            bits, where = code.shl(bits, inst.first_lane), code.shl(where, inst.first_lane)
        before = code.fetch(self.thread, place, "i32")
        code.put(code.or_(code.and_(before, code.not_(where)), bits), self.thread, place)

    # Leaving the function.

    def leave(self, at: int, status: Status) -> None:
        """Return; the next call continues at an instruction."""
        self.code.br(_WAY_OUT, *self._leaving(at, status))

    def _leaving(self, at: int, status: Status) -> tuple[Value, Value]:
        self._left = True
        return self.code.const(at, "i32"), self.code.const(status, "i32")

    def _write_way_out(self) -> None:
        code = self.code
        at, status = code.begin_with(_WAY_OUT, "i32", "i32")
        for queue in self._queues:
            self.flush(queue)
        code.put(at, self.thread, self.frame.pc)
        if self.active is not None:
            code.put(code.load(self.active, "i32", 4), self.thread, self.frame.active)
        self.release_tiles()
        code.ret(status)

    def require(self, fine: Value, at: int) -> None:
        """Fail before instruction `at` unless an i1 is set."""
        code = self.code
        good = code.label()
        code.cond_br(fine, good, _WAY_OUT, *self._leaving(at, Status.FAULT))
        code.begin(good)

    def call_semantics(self, at: int) -> None:
        """Run an instruction by its semantic function on the thread's block."""
        code, inst = self.code, self.program.instructions[at]
        assert not any(access.var in self.freedom.variables for access in accesses(inst, self.layout.target))
        active = code.load(self.active, "i32", 4) if self.active is not None else code.const(-1, "i32")
        pointer = self.context("semantics", PTR)
        index = code.const(at, "i32")
        done = code.call(pointer, self.context("worker"), index, self.thread, active, result="i32")
        if self.host.multiplies_tiles:
            # Python's libraries may use tiles too.
            code.store(code.const(0, "i32"), _TILES, 4)
        self.require(code.icmp("ne", done, 0), at)


BY_SEMANTICS = ("tanh", "sigm", "pow", "lrp", "madw", "invm", "rsqtm", "shfl_idx4", "faddr")
"""Instructions that their semantic functions execute."""

_IN_PLACE = ("setp", "addc", "subb", *BY_SEMANTICS, *TABLES)
"""Instructions that access the thread's block, some of them only when their semantic function executes them."""

_FLOATS = tuple(TYPES[name] for name in FLOATS)


def freedom_of(program: Program, target: Target, starts: Sequence[int], *, within_blocks: bool) -> RegisterPromotion:
    """The freedom that a program leaves to LLVM, if its registers hold no results at the end.

    Args:
        starts: instructions that begin blocks.
        within_blocks: whether nothing reads registers between the instructions of a block.
    """
    nans = free_nans(program)
    if not within_blocks:
        return RegisterPromotion(nans=nans)
    return RegisterPromotion(temporaries(program, target, starts), temporary_predicates(program, target, starts), nans)


def _in_blocks(program: Program, starts: Sequence[int]) -> Iterator[tuple[int, Instruction]]:
    """The number of each instruction's block, and the instruction."""
    block, following = 0, [*starts[1:], len(program.instructions)]
    for at, inst in enumerate(program.instructions):
        while at >= following[block]:
            block += 1
        yield block, inst


def temporaries(program: Program, target: Target, starts: Sequence[int]) -> set[Variable]:
    """The variables that LLVM can keep in registers of the host.

    These variables are not aliases. Only arithmetic instructions of a single basic block access them, and the block
    always writes an element before it reads it. All other variables are in the thread's block, where the golden
    function, and a thread that resumes, find them.

    Args:
        starts: instructions that begin blocks.
    """
    homes: dict[Variable, int] = {}
    written: dict[Variable, int] = {}
    others: set[Variable] = set()
    for block, inst in _in_blocks(program, starts):
        own = _is_free(inst)
        for access in accesses(inst, target):
            var, bits = access.var, span_bits(access)
            before = written.get(var, 0)
            if not own or homes.setdefault(var, block) != block:
                others.add(var)
            elif access.writes and access.whole:
                written[var] = before | bits
            elif bits & ~before:
                others.add(var)
    return homes.keys() - others


def temporary_predicates(program: Program, target: Target, starts: Sequence[int]) -> set[Predicate]:
    """The predicates that can be values of LLVM: vectors of i1.

    Only arithmetic instructions of a single basic block access these predicates. They always access the same lanes, and
    the block always writes a predicate before it reads it.

    Args:
        starts: instructions that begin blocks.
    """
    homes: dict[Predicate, tuple[int, int, int]] = {}
    written: set[Predicate] = set()
    others: set[Predicate] = set()
    for block, inst in _in_blocks(program, starts):
        found = effects(inst, target)
        # Some guards, and moves of predicates, take all lanes of a predicate.
        by_lane = isinstance(inst.values.get("dst"), Flag) or not any(isinstance(o, Flag) for o in inst.sources)
        own = _is_free(inst) and by_lane and not (inst.guard and inst.guard.control)
        home = block, inst.first_lane, inst.exec_size
        others.update(p for p in found.tests if p not in written)
        for predicate in (*found.tests, *([found.sets] if found.sets else ())):
            if not own or homes.setdefault(predicate, home) != home:
                others.add(predicate)
        if found.sets:
            written.add(found.sets)
            if found.lanes is None:
                others.add(found.sets)
    return homes.keys() - others


def _is_free(inst: Instruction) -> bool:
    """Whether an instruction's operands may be kept outside the thread's block."""
    places = any(isinstance(value, (Indirect, AddressOf)) for value in inst.values.values())
    in_place = inst.name in _IN_PLACE or places or by_semantics(inst)
    return INSTRUCTIONS[inst.name].is_arithmetic and not in_place


def rounds_directed(inst: Instruction) -> bool:
    """Whether the result of an instruction depends on a rounding mode other than to nearest."""
    dst = inst.values.get("dst")
    if inst.rounding == "even" or dst is None or getattr(dst, "format", None) not in _FLOATS:
        return False
    formats = [source.format for source in inst.sources]
    if INSTRUCTIONS[inst.name].copies:
        return any(not fmt.is_float or fmt.bits > dst.format.bits for fmt in formats)
    return inst.name in ROUNDED or execution_format(inst, [fmt.name for fmt in formats]) not in ("", dst.format.name)


def by_semantics(inst: Instruction) -> bool:
    """Whether an instruction rounds in a direction, and its semantic function executes it: hosts round only to f and
    df, and negated integers of 64 bits are not of that type."""
    if not rounds_directed(inst):
        return False
    wide = any(source.modifier and source.format.name in ("q", "uq") for source in inst.sources)
    return inst.saturate or inst["dst"].format.name not in ("f", "df") or inst.name == "sel" or wide


def free_nans(program: Program) -> set[Variable]:
    """The variables, none of them an alias, whose NaN bits no instruction observes.

    They are always accessed as one type of floats. Instructions that compute with them make the NaNs of the result
    canonical. Instructions that copy them write to such variables only.
    """
    types: dict[Variable, set[str]] = {}
    seen: set[Variable] = set()
    copies: dict[Variable, list[Variable]] = {}
    for inst in program.instructions:
        for name, value in inst.values.items():
            var = getattr(value, "var", None)
            if not isinstance(var, Variable):
                continue
            root = var.root[0]
            if isinstance(value, (Indirect, AddressOf)):
                seen.update(base.root[0] for base in getattr(value, "bases", (var,)))
                continue
            if isinstance(value, (Region, Destination)):
                types.setdefault(root, set()).add(var.type)
            if name != "dst" and _copies(inst, var):
                copies.setdefault(inst["dst"].var.root[0], []).append(root)
            elif name != "dst" and not _computes(inst, name):
                seen.add(root)
    free = {var for var, names in types.items() if names in ({"f"}, {"df"})} - seen
    pending = [to for to in copies if to not in free]
    while pending:
        for source in copies.get(pending.pop(), ()):
            if source in free:
                free.remove(source)
                pending.append(source)
    return free


def _copies(inst: Instruction, source: Variable) -> bool:
    """Whether an instruction copies a source's bits."""
    dst = inst.values.get("dst")
    copies = INSTRUCTIONS[inst.name].copies and not inst.saturate and not isinstance(dst, Indirect)
    return copies and source.format is inst["dst"].var.format


def _computes(inst: Instruction, name: str) -> bool:
    """Whether an instruction reads a source as numbers, and makes the NaNs of its result canonical."""
    spec = INSTRUCTIONS[inst.name]
    if spec.category == "dpas":
        return name == "src0"
    if not spec.is_arithmetic or spec.on_bits or (isinstance(inst["dst"], Flag) and not spec.compares):
        return False
    types = [source.format.name for source in inst.sources if not isinstance(source, Flag)]
    return bool(execution_format(inst, types))
