"""Programs of OpenCL C: their kernels, and launches on the engines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Struct, structs

from xegpu_py.argument_types import Range, checked
from xegpu_py.extensions.fidelity.report import Fidelity, array_types, measured
from xegpu_py.extensions.opencl import abi
from xegpu_py.extensions.opencl.abi import BUFFER_BYTES, FIRST_RECORD, printed
from xegpu_py.extensions.opencl.compiler import DEFAULT, CompiledProgram, compiled, failed, relocated
from xegpu_py.extensions.profile.launches import Groups, ProfiledLaunch, counted
from xegpu_py.extensions.profile.profiles import Profile, profile_of
from xegpu_py.ir.diagnostics import Position, Source, error_at
from xegpu_py.runtime.device_memory import Buffer, DeviceMemory
from xegpu_py.runtime.executable import Executable
from xegpu_py.runtime.host_arrays import Staged
from xegpu_py.runtime.kernel import Kernel as Version
from xegpu_py.runtime.launch import Grid, Prepared, Statistics, memory_for
from xegpu_py.runtime.options import REFERENCE, Options
from xegpu_py.target import target as target_of
from xegpu_py.visa import assembly
from xegpu_py.visa.linking import link
from xegpu_py.visa.operands import Destination, Immediate
from xegpu_py.visa.program import PRINT_BUFFER, Dim, Instruction, extent
from xegpu_py.visa.program import Program as VisaProgram

MAX_PRIVATE = 1 << 32
"""The most bytes of private memory of a launch."""

MAX_ITEMS = 1024
"""The most work items of a workgroup."""

USUAL_ITEMS = 256
"""The most work items of a workgroup whose local size is not given."""

_NAME = re.compile(r'^\.(?:kernel|(global_function)) "(.*)"', re.MULTILINE)

_LANES = re.compile(r"^\.kernel_attr SimdSize=(\d+)", re.MULTILINE)

_BASES = {"const_base": "constant", "global_base": "global"}
"""The memory of the program whose address an argument is."""

_SEGMENT_NAMES = {"constant": "the program's constants", "global": "the program's variables", "string": "the strings"}
"""The memory of the program in messages."""

_PLACEHOLDER = "Intel_Symbol_Table_Void_Program"
"""A kernel that IGC adds."""


class LocalMemory(Struct, frozen=True):
    """An argument for a pointer to local memory: so many bytes of each workgroup's."""

    bytes: int


@checked
def local(nbytes: Annotated[int, Range(1)]) -> LocalMemory:
    """The argument for a `__local` pointer: the bytes that it points to, which each workgroup has for itself."""
    return LocalMemory(nbytes)


@checked
def compile(
    source: str | Path, target: str = DEFAULT, options: str = "", ocloc: str | Path | None = None, **others: Any
) -> Program:
    """Compile OpenCL C or SPIR-V for a GPU by IGC, for the engines here.

    Args:
        source: a path of a file (`.cl`, `.spv`, or `.bin` of ocloc, whose SPIR-V is compiled again), or the text of a
            program.
        target: the GPU, a name of `DEVICES`.
        options: options of the compiler, such as "-DN=4 -cl-fast-relaxed-math".
        ocloc: the compiler: a path, or a name on PATH; by default that of `make oracles`, or `ocloc` on PATH.
        others: options of kernels: engine, check, threads and so on; see `Options`.

    Raises:
        CompileError: if ocloc does not accept it or is missing, or the extra `xegpu-py[opencl]` is.
        ValueError: if there is no such target, or it is not supported.
    """
    compile_options = options_of(target, others)
    remake = lambda other: compile(source, other, options, ocloc, **others)  # noqa: E731
    return Program(compiled(source, target, options, ocloc), compile_options, remake)


@checked
def load(path: str | Path, **options: Any) -> Program:
    """Read a program that `Program.save` wrote; this needs no compiler.

    Args:
        options: options of kernels: engine, check, threads and so on; see `Options`.

    Raises:
        CompileError: if the file is no such program.
    """
    compiled = CompiledProgram.read(Path(path))
    return Program(compiled, options_of(compiled.target, options))


def options_of(target: str, keywords: Mapping[str, Any]) -> Options:
    """The options of kernels for a target; errors as of `compile`."""
    options = Options.from_keywords(target=target, **keywords)
    if options.engine == REFERENCE:
        raise ValueError("'engine' must not be 'reference', which evaluates MLIR")
    return options


class Program:
    """A compiled program; its kernels are its attributes: `program.saxpy[1024, 64](x, y, np.float32(2))`.

    Its variables keep their values from one launch to the next.

    Attributes:
        kernels: the kernels by their names.
    """

    def __init__(
        self, compiled: CompiledProgram, options: Options, remake: Callable[[str], Program] | None = None
    ) -> None:
        self.compiled, self.options, self._remake = compiled, options, remake
        named = {k.name: k.args_info for k in compiled.info.kernels_misc_info}
        infos = sorted((k for k in compiled.info.kernels if k.name != _PLACEHOLDER), key=lambda k: k.name)
        # IGC compiles kernels again whose registers do not suffice: the last text of each is the one.
        texts = {
            (name[2], int(lanes[1])): text
            for text in compiled.texts
            if (name := _NAME.search(text)) and (lanes := _LANES.search(text))
        }
        self.kernels = {k.name: Kernel(self, k, self._text(k, texts), named.get(k.name, ())) for k in infos}
        self._memory: dict[str, bytes] | None = None

    def for_target(self, target: str) -> Program:
        """The program compiled for another GPU.

        Raises:
            CompileError: as of `compile`.
            ValueError: if there is no such target, or the program was loaded.
        """
        if target == self.compiled.target:
            return self
        if self._remake is None:
            raise ValueError(f"program '{self.compiled.file}' was compiled for {self.compiled.target}, not {target}")
        return self._remake(target)

    def save(self, path: str | Path) -> None:
        """Write what the compiler made to a file, which `load` reads where there is no compiler."""
        Path(path).write_bytes(self.compiled.to_bytes())

    def _text(self, info: abi.KernelInfo, texts: Mapping[tuple[str, int], str]) -> str:
        """The vISA of a kernel, among those by name and lanes."""
        lanes = info.execution_env.simd_size
        if (info.name, lanes) not in texts:
            raise failed(self.compiled.file, f"ocloc printed no vISA of {lanes} lanes for kernel '{info.name}'")
        return texts[info.name, lanes]

    @cached_property
    def functions(self) -> list[VisaProgram]:
        """The functions that kernels may call."""
        texts = [t for t in self.compiled.texts if (m := _NAME.search(t)) and m[1]]
        return [p for text in texts for p in assembly.read(Source(text, self.compiled.file))]

    def allocate(self, memory: DeviceMemory) -> dict[str, int]:
        """Place the program's constants and variables in memory that is empty yet; the address of each segment.

        The addresses are the same in all launches, so that variables may hold them.
        """
        buffers = {s: memory.allocate(_SEGMENT_NAMES[s], len(data)) for s, data in self.compiled.memory.items()}
        addresses = {segment: buffer.address for segment, buffer in buffers.items()}
        if self._memory is None:
            self._memory = relocated(self.compiled, addresses)
        for segment, buffer in buffers.items():
            memory.bytes_of(buffer)[:] = np.frombuffer(self._memory[segment], np.uint8)
        return addresses

    def keep(self, memory: DeviceMemory) -> None:
        """Keep the values of the program's variables after a launch."""
        for buffer in memory.buffers:
            if buffer.name == _SEGMENT_NAMES["global"] and self._memory is not None:
                self._memory["global"] = memory.bytes_of(buffer).tobytes()

    def strings(self, memory: DeviceMemory) -> dict[int, bytes]:
        """The memory in which strings may lie, by address."""
        names = (_SEGMENT_NAMES["string"], _SEGMENT_NAMES["constant"])
        return {b.address: memory.bytes_of(b).tobytes() for b in memory.buffers if b.name in names}

    def __getattr__(self, name: str) -> Kernel:
        kernels: Mapping[str, Kernel] = self.__dict__.get("kernels", {})
        if name in kernels:
            return kernels[name]
        raise AttributeError(f"there is no kernel '{name}'; there are {', '.join(kernels)}")


class Kernel:
    """A kernel of a program; `kernel[global, local](...)` runs it.

    Attributes:
        name: its name.
        text: its vISA, as IGC printed it.
        parameters: its parameters.
        owner: the program.
        stats: statistics of the last launch; None before.
    """

    def __init__(
        self, program: Program, info: abi.KernelInfo, text: str, parameters: Sequence[abi.Parameter] = ()
    ) -> None:
        self.name, self.text, self.info, self.owner = info.name, text, info, program
        # SPIR-V may have no names.
        count = max((a.arg_index + 1 for a in info.payload_arguments), default=0)
        by_index = {p.index: p for p in parameters}
        self.parameters = [by_index.get(i) or abi.Parameter(i, str(i)) for i in range(max(count, len(by_index)))]
        self._versions: dict[Any, Version] = {}
        self.stats: Statistics | None = None

    @property
    def options(self) -> Options:
        """The options with which it runs."""
        return self.owner.options

    @property
    def names(self) -> list[str]:
        """The names of its parameters."""
        return [p.name for p in self.parameters]

    def title(self, number: int) -> str:
        """A parameter in messages."""
        return f"argument '{self.parameters[number].name}' of kernel '{self.name}'"

    def __getitem__(self, size: Any) -> Launch:
        """The kernel with a global and a local size: numbers of work items, each an integer or a tuple of up to three.

        Without a local size, or with None, it is that which the kernel requires, or up to `USUAL_ITEMS` along x.

        Raises:
            TypeError, ValueError: if they are not, the local size does not divide the global one, or is too large.
        """
        if isinstance(size, int):
            size = size, None
        if not isinstance(size, tuple) or len(size) != 2:
            raise TypeError(f"kernel '{self.name}' takes [global size, local size], but got {size!r}")
        items, required_size = extent(size[0], "global size"), self.info.execution_env.required_work_group_size
        usual = max(n for n in range(1, USUAL_ITEMS + 1) if items[0] % n == 0)
        block = extent((required_size or usual) if size[1] is None else size[1], "local size")
        if any(n % b for n, b in zip(items, block)):
            raise ValueError(f"local size {block} must divide global size {items}")
        if required_size and required_size != block:
            raise ValueError(f"kernel '{self.name}' requires local size {required_size}, but got {block}")
        if math.prod(block) > MAX_ITEMS:
            raise ValueError(f"local size {block} has {math.prod(block)} work items; a workgroup has at most 1024")
        x, y, z = (n // b for n, b in zip(items, block))
        return Launch(self, (x, y, z), block, len(size[0]) if isinstance(size[0], Sequence) else 1)

    def __call__(self, *arguments: Any) -> Any:
        """Raise an error: a launch needs sizes.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"kernel '{self.name}' needs sizes: {self.name}[global size, local size](...)")

    @cached_property
    def program(self) -> VisaProgram:
        """Its vISA.

        Raises:
            DiagnosticError: if it needs what no engine has.
        """
        file = self.owner.compiled.file
        supported = (*_BASES, "arg_bypointer", "arg_byvalue", "printf_buffer", "private_base_stateless")
        for a in self.info.payload_arguments:
            images = a.arg_type == "arg_bypointer" and a.addrspace not in ("global", "constant", "local")
            if images or (a.arg_type not in supported and abi.dimensions(a.arg_type, (1, 1, 1), (1, 1, 1), 1) is None):
                unsupported = f"{a.addrspace}s" if images else f"arguments of kind {a.arg_type}"
                raise error_at(Position(file), f"kernel '{self.name}' needs {unsupported}, which no engine has")
        [visa_program] = assembly.read(Source(self.text, f"{file}:{self.name}.visaasm"))
        return visa_program

    @cached_property
    def inputs(self) -> dict[str, int]:
        """The variables that hold arguments, and where each begins in the payload."""
        target = target_of(self.options.target)
        payload_inputs = [i for i in self.program.inputs if not abi.is_local_id(self.program, i, target)]
        return {i.var.name: abi.payload_offset(self.program, i, target) for i in payload_inputs}

    def version(
        self, launch: Launch, slm: int, private: Sequence[abi.Private], addresses: Mapping[str, int]
    ) -> Version:
        """The kernel as a program for the extents and addresses of a launch; kept for further launches.

        Args:
            slm: bytes of local memory.
            private: the memory of each thread.
            addresses: the addresses of the program's memory.

        Raises:
            DiagnosticError: if its vISA is not supported.
        """
        key = (launch.block, slm, *private, launch.groups if private else None, *addresses.items())
        if key not in self._versions:
            compiled = self.owner.compiled
            target = target_of(self.options.target)
            with_prologue = abi.prologue(self.program, target, launch.block, launch.groups, private)
            linked = link(with_prologue, self.owner.functions)
            barriers = self.info.execution_env.barrier_count
            attributes = {"NBarrierCnt": min(barriers, 32) if barriers > 1 else 0, **linked.attributes}
            attributes |= {"SLMSize": -(-slm // 1024), "SLMBytes": -(-slm // 8) * 8}
            instructions = [self._with_symbol(inst, addresses) for inst in linked.instructions]
            ready = structs.replace(linked, attributes=attributes).with_instructions(instructions)
            executable = Executable.of_assembly(ready, Source(compiled.source, compiled.file))
            self._versions[key] = Version(executable, self.owner.options)
        return self._versions[key]

    def _with_symbol(self, inst: Instruction, addresses: Mapping[str, int]) -> Instruction:
        """An instruction that takes the address of a string or variable as a move of it."""
        if inst.name != "faddr":
            return inst
        segment, offset = self.owner.compiled.symbols.get(inst["symbol"], ("", 0))
        if segment not in addresses:
            raise error_at(inst.where, f"'faddr' takes the address of '{inst['symbol']}', which is not supported")
        to = inst["dst"]
        values = {"dst": Destination(to.var, to.row, to.col, 1), "src0": Immediate(addresses[segment] + offset, "uq")}
        return Instruction("mov", values, 1, "M1_NM", where=inst.where)

    def private(self, memory: DeviceMemory, threads: int) -> list[abi.Private]:
        """Allocate the memory of each thread of a launch.

        Raises:
            ValueError: if it is more than `MAX_PRIVATE`.
        """
        sizes = {"%scratchloc": int(self.program.attributes.get("SpillMemOffset", 0))}
        for a in self.info.payload_arguments:
            if a.arg_type == "private_base_stateless":
                parts = [p for p in self.info.per_thread_memory_buffers if p.type == "global"]
                lanes = self.info.execution_env.simd_size
                size = sum(p.size * (lanes if p.is_simt_thread else 1) for p in parts)
                sizes |= {name: size for name, offset in self.inputs.items() if offset == a.offset}
        memories = []
        for name, size in sizes.items():
            if size * threads > MAX_PRIVATE:
                raise ValueError(
                    f"the launch of kernel '{self.name}' needs {size} bytes of private memory for each of {threads} "
                    f"threads, more than {MAX_PRIVATE} together"
                )
            if size:
                memories.append(abi.Private(memory.allocate("private memory", size * threads).address, size, name))
        return memories


class PreparedLaunch(Struct, frozen=True):
    """A launch that is ready to run: the version of the kernel, its arguments, and the buffer of printf or None."""

    version: Version
    prepared: Prepared
    printer: Buffer | None


class Launch(Struct, frozen=True):
    """A kernel with the extents of a launch; calling it runs it.

    Attributes:
        kernel: the kernel.
        groups: workgroups in x, y, z.
        block: work items of a workgroup in x, y, z.
        dimensions: how many of them the caller gave.
    """

    kernel: Kernel
    groups: Dim
    block: Dim
    dimensions: int

    def __call__(self, *arguments: Any) -> Statistics:
        """Run the kernel; arrays are changed in place.

        Args:
            arguments: those of the kernel: arrays for pointers, `local(bytes)` for pointers to local memory, and
                numbers or structures of numpy's types for values.

        Raises:
            TypeError, ValueError: if an argument does not fit.
            DiagnosticError: if the kernel cannot run here, or fails.
        """
        return self.run(self.ready(arguments))

    def for_target(self, target: str) -> Launch:
        """The launch of the kernel of `Program.for_target`."""
        return structs.replace(self, kernel=self.kernel.owner.for_target(target).kernels[self.kernel.name])

    @property
    def names(self) -> list[str]:
        """The names of the kernel's parameters."""
        return self.kernel.names

    def prepared(self, arguments: Sequence[Any]) -> tuple[Version, Prepared]:
        """The version that runs, and the arguments with which it does; errors as of a call."""
        ready = self.ready(arguments)
        return ready.version, ready.prepared

    def run(self, ready: PreparedLaunch) -> Statistics:
        """Run a launch that is ready, once; errors as of a call."""
        program, memory = self.kernel.owner, ready.prepared.memory
        try:
            self.kernel.stats = stats = ready.version.executor.run(ready.prepared)
        finally:
            if ready.printer:
                print(printed(memory.bytes_of(ready.printer).tobytes(), program.strings(memory)), end="")
        program.keep(memory)
        return stats

    def profile(self, *arguments: Any) -> Profile:
        """Run the kernel, and count what it does, as `xegpu_py.Kernel.profile`; arguments and errors as of a call."""
        counted = self.counted(arguments)
        self(*arguments)
        return profile_of(counted)

    def fidelity(self, *arguments: Any, only: Sequence[str] = ()) -> Fidelity:
        """Run the kernel, and tell which chosen rules it depends on, as `xegpu_py.Kernel.fidelity`."""
        ready = self.ready(arguments)
        types = array_types({p.name: argument for p, argument in zip(self.kernel.parameters, arguments)})
        run = lambda own: self.run(structs.replace(ready, version=own))  # noqa: E731
        return measured(ready.version, ready.prepared, types, run, only)

    def counted(self, arguments: Sequence[Any], groups: Groups = None, trace_limit: int = 1 << 22) -> ProfiledLaunch:
        """Count what workgroups do; `profile.time_model.predicted` takes the counts of a "sample". The arrays do not
        change.
        """
        ready = self.ready(arguments)
        return counted(ready.version, ready.prepared, groups, trace_limit)

    def ready(self, arguments: Sequence[Any], memory: DeviceMemory | None = None) -> PreparedLaunch:
        """Check the arguments, and move them to memory; errors as of a call.

        Args:
            memory: memory that is empty yet; of the kind for the options by default.
        """
        kernel, env = self.kernel, self.kernel.info.execution_env
        program, parameters = kernel.owner, kernel.parameters
        if len(arguments) != len(parameters):
            listed = ", ".join(f"{p.type} {p.name}".strip() for p in parameters)
            raise TypeError(
                f"kernel '{kernel.name}' takes {len(parameters)} arguments ({listed}), but got {len(arguments)}"
            )
        passed = kernel.info.payload_arguments
        memory = memory_for(program.options) if memory is None else memory
        addresses = program.allocate(memory)
        threads = -(-math.prod(self.block) // env.simd_size) * math.prod(self.groups)
        private = kernel.private(memory, threads)
        printer = None
        if any(a.arg_type == "printf_buffer" for a in passed):
            printer = memory.allocate(PRINT_BUFFER, BUFFER_BYTES)
            memory.bytes_of(printer)[:4].view(np.uint32)[0] = FIRST_RECORD
        staged, values, local_bytes = Staged(memory), {}, 0
        for number, (parameter, argument) in enumerate(zip(parameters, arguments)):
            title = kernel.title(number)
            payload_arguments = [a for a in passed if a.arg_index == number]
            if parameter.address_qualifier == "__local" or any(a.addrspace == "local" for a in payload_arguments):
                if not isinstance(argument, LocalMemory):
                    raise TypeError(f"{title} must be local memory, local(bytes), but got {type(argument).__name__}")
                # Offsets behind the kernel's own variables. IGC takes it for granted that the first one is 0.
                alignment = max((a.slm_alignment for a in payload_arguments), default=1)
                at = -(-local_bytes // alignment) * alignment
                values[number] = at.to_bytes(8, "little")
                local_bytes = at + argument.bytes
            elif parameter.type.endswith("*") or any(a.arg_type == "arg_bypointer" for a in payload_arguments):
                array = abi.array_for(argument, parameter, title)
                staged.add(str(number), array, title, parameter.name, packed=True)
            else:
                values[number] = abi.value_bytes(argument, parameter, title)
        values |= {int(number): address for number, address in staged.addresses().items()}
        slm = env.slm_size + local_bytes
        most = target_of(program.options.target).slm_bytes
        if slm > most:
            raise ValueError(f"kernel '{kernel.name}' needs {slm} bytes of local memory, more than {most}")
        version = kernel.version(self, slm, private, addresses)
        payload = bytearray(max((a.offset + a.size for a in passed), default=0))
        for a in passed:
            data = values.get(a.arg_index, b"")[a.source_offset :]
            if a.arg_type == "printf_buffer" and printer:
                data = printer.address.to_bytes(8, "little")
            elif a.arg_type in _BASES:
                data = addresses.get(_BASES[a.arg_type], 0).to_bytes(8, "little")
            elif a.arg_index < 0:
                data = abi.dimensions(a.arg_type, self.groups, self.block, self.dimensions) or b""
            payload[a.offset : a.offset + a.size] = data[: a.size].ljust(a.size, b"\0")
        inputs = {}
        for item in version.program.inputs:
            payload_offset = kernel.inputs.get(item.var.name)
            data = b"" if payload_offset is None else bytes(payload[payload_offset : payload_offset + item.size])
            inputs[item.var.name] = data.ljust(item.size, b"\0")
        return PreparedLaunch(version, Prepared(Grid(self.groups, self.block), inputs, memory, staged), printer)
