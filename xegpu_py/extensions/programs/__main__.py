"""The child process, in which host code is linked and called."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from mlir import ir
from mlir.execution_engine import ExecutionEngine

from xegpu_py import cache
from xegpu_py.extensions.programs import host_libraries
from xegpu_py.extensions.programs.confinement import confine
from xegpu_py.extensions.programs.device import Device
from xegpu_py.extensions.programs.host_libraries import (
    ELEMENTS,
    HostMemRef,
    LibraryFunction,
    LibraryState,
    descriptor_type,
    memref_copy,
)
from xegpu_py.extensions.programs.host_lowering import PREFIX, HostCode, LaunchFunc, lower
from xegpu_py.extensions.programs.load import Job, SharedArray
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, error_at, position_of
from xegpu_py.ir.module import walk
from xegpu_py.runtime.host_arrays import check_numbers
from xegpu_py.upstream import read_source


def main(number: int) -> None:
    """Run the job that the parent sends over this file descriptor, and exit."""
    pipe = Connection(number)
    job: Job = pipe.recv()
    lock = threading.Lock()

    def send(*event: Any) -> None:
        with lock:
            pipe.send(event)

    def end_with_parent() -> None:
        """Exit when the parent exits: it sends nothing more, so the next thing received is the end of the stream."""
        try:
            pipe.recv()
        except EOFError:
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        results = _perform(job, send)
    except BaseException as e:
        _leave(job, send, e)
    send("done", results)
    os._exit(0)


def _leave(job: Job, send: Callable[..., None], error: BaseException) -> None:
    """Send an error to the parent, and exit at once, because compiled code may be on the stack."""
    try:
        if isinstance(error, DiagnosticError):
            send("raise", DiagnosticError(error.diagnostics))
        elif isinstance(error, (TypeError, ValueError, BrokenPipeError, MemoryError)):
            send("raise", type(error)(*error.args))
        else:
            where = Position(job.source.name, job.source.first_line, 1)
            message = f"internal error: {type(error).__name__}: {error}"
            send("raise", error_at(where, message))
    finally:
        os._exit(1)


def _perform(job: Job, send: Callable[..., None]) -> Any:
    module = read_source(job.source, job.imported, Context.from_pool())
    for op in walk(module.operation):
        if op.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == job.entry:
            send("place", position_of(op.location))
    code = lower(module, job.entry, host_libraries.LIBRARY, job.allow_native)

    def say(message: str | Diagnostic) -> None:
        send("say", message)

    def reached(launch_number: int, launch: LaunchFunc, ended: bool) -> None:
        send("launch", launch_number, launch.kernel, ended)

    device = Device(code.kernels, job, say, reached)
    host = LibraryState(1, np.random.default_rng(job.seed))

    def guard(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except BaseException as e:
            _leave(job, send, e)

    compiled = NativeHostCode(code, device, host, guard, host_libraries.LIBRARY)
    arrays = _arrays(job)
    if not job.allow_native:
        cache_folder = cache.folder_of(job.options.get("cache"))
        confine([cache_folder] if cache_folder else [])
    results = compiled.call(arrays)
    ctypes.CDLL(None).fflush(None)
    device.close()
    return results


def _arrays(job: Job) -> list[Any]:
    if job.shared is None:
        return list(job.arguments)
    memory = np.frombuffer(mmap.mmap(job.shared, 0), np.uint8)
    return [a.of(memory) if isinstance(a, SharedArray) else a for a in job.arguments]


# Compiled host code: linking it to the runtime, and calling its functions.


class NativeHostCode:
    """A program's host code as native code, in this process."""

    def __init__(
        self, code: HostCode, device: Device, host: LibraryState, guard: Guard, printing: Mapping[str, LibraryFunction]
    ) -> None:
        """Compile it.

        Args:
            device: executes the GPU operations of host code.
            host: state of the library functions.
            guard: calls a function from compiled code, and keeps exceptions out of it.
            printing: functions that MLIR's lowering of vector.print calls.
        """
        self._code = code
        self._engine = ExecutionEngine(code.module, opt_level=3)
        # Callbacks must live as long as the code that calls them.
        self._callbacks: list[Any] = []
        for name, site in code.sites.items():
            self._register(f"_mlir_ciface_{name}", device.callback(site, guard))
        for function in code.called:
            self._register(f"_mlir_ciface_{PREFIX}{function.name}", function.callback(host, guard))
        for function in printing.values():
            if not function.has_memrefs:
                self._register(function.name, function.callback(host, guard))

        def copy(size: int, source: int, to: int) -> None:
            guard(lambda: memref_copy(size, source, to))

        self._register("memrefCopy", ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(copy))

    def _register(self, name: str, callback: Any) -> None:
        self._callbacks.append(callback)
        self._engine.raw_register_runtime(name, ctypes.cast(callback, ctypes.c_void_p))

    def call(self, arguments: Sequence[Any]) -> list[Any]:
        """Call the entry function.

        Args:
            arguments: an array for each memref, which is changed in place; otherwise a number.

        Returns:
            Its results: numbers, and arrays that are copies.

        Raises:
            TypeError, ValueError: if an argument does not match its type.
        """
        code = self._code
        if len(arguments) != len(code.inputs):
            expected = f" ({', '.join(map(str, code.inputs))})" if code.inputs else ""
            raise TypeError(
                f"host function '{code.entry}' takes {len(code.inputs)} arguments{expected}, but got {len(arguments)}"
            )
        words = [
            _given(kind, value, f"argument {i} of host function '{code.entry}', of type {kind},")
            for i, (kind, value) in enumerate(zip(code.inputs, arguments))
        ]
        results, is_one = _results(code.results), len(code.results) == 1 and not _is_memref(code.results[0])
        pointers = [ctypes.addressof(h) for h in words]
        if code.results and is_one:
            pointers.append(ctypes.addressof(results))
        elif code.results:
            results_pointer = ctypes.c_void_p(ctypes.addressof(results))
            pointers.insert(0, ctypes.addressof(results_pointer))
        self._engine.lookup(code.entry)((ctypes.c_void_p * len(pointers))(*pointers))
        return [_taken(kind, getattr(results, f"r{i}")) for i, kind in enumerate(code.results)]


Guard = Callable[[Callable[[], Any]], Any]


def _is_memref(kind: ir.Type) -> bool:
    return isinstance(kind, (ir.MemRefType, ir.UnrankedMemRefType))


def _given(kind: ir.Type, value: Any, title: str) -> Any:
    """The object to which an argument's pointer in a packed call points."""
    if not _is_memref(kind):
        dtype = ELEMENTS.get(str(kind))
        if dtype is None:
            raise TypeError(f"{title} cannot be passed; memrefs and numbers can")
        try:
            # numpy makes NaN of None. Floats of ml_dtypes are of kind V.
            word, kinds = np.asarray(value), "iub" if dtype.kind in "iub" else "iubfV"
            if word.ndim or (word.dtype.kind not in kinds and not isinstance(value, int)):
                raise TypeError
            exact = np.array([value], dtype)
        except (TypeError, OverflowError):
            raise TypeError(f"{title} must be a number of that type, but got {value!r}") from None
        return (ctypes.c_char * dtype.itemsize).from_buffer_copy(exact.tobytes())
    element = str(kind.element_type)
    if not isinstance(value, np.ndarray) or value.dtype != ELEMENTS.get(element):
        actual = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise TypeError(f"{title} must be a numpy array of {ELEMENTS.get(element, element)}, but got {actual}")
    check_numbers(value, title)
    view = HostMemRef.of(value)
    inner = view.descriptor()
    if isinstance(kind, ir.UnrankedMemRefType):
        return _Held((ctypes.c_int64 * 2)(value.ndim, ctypes.addressof(inner)), inner)
    unknown, kind = ir.ShapedType.get_dynamic_size(), ir.MemRefType(kind)
    if len(kind.shape) != value.ndim or any(n not in (unknown, m) for n, m in zip(kind.shape, value.shape)):
        raise ValueError(f"{title} cannot be an array of shape {value.shape}")
    strides, offset = kind.get_strides_and_offset()
    fits = (s in (unknown, t) or n == 1 for s, t, n in zip(strides, view.strides, view.sizes))
    if not all(fits) or offset not in (0, unknown):
        raise ValueError(f"{title} cannot be an array of strides {view.strides} elements")
    return _Held(inner)


class _Held(ctypes.c_void_p):
    """A pointer to a descriptor; it keeps the descriptor alive."""

    def __init__(self, descriptor: Any, *more: Any) -> None:
        super().__init__(ctypes.addressof(descriptor))
        self._kept = (descriptor, *more)


def _results(kinds: Sequence[ir.Type]) -> Any:
    fields = [(f"r{i}", _field(kind)) for i, kind in enumerate(kinds)]
    return type("Results", (ctypes.Structure,), {"_fields_": fields})()


def _field(kind: ir.Type) -> Any:
    if isinstance(kind, ir.MemRefType):
        return descriptor_type(ir.MemRefType(kind).rank)
    if isinstance(kind, ir.UnrankedMemRefType):
        return ctypes.c_int64 * 2
    dtype = ELEMENTS.get(str(kind))
    if dtype is None:
        raise TypeError(f"results of type {kind} cannot be passed; memrefs and numbers can")
    return {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}[dtype.itemsize]


def _taken(kind: ir.Type, word: Any) -> Any:
    """A result: a number or a copy of an array."""
    if isinstance(kind, ir.MemRefType):
        view = HostMemRef.ranked(ctypes.addressof(word), ir.MemRefType(kind).rank)
    elif isinstance(kind, ir.UnrankedMemRefType):
        view = HostMemRef.unranked(ctypes.addressof(word))
    else:
        dtype = ELEMENTS[str(kind)]
        return np.array([word], f"u{dtype.itemsize}").view(dtype)[0]
    return view.array(str(kind.element_type)).copy()


if __name__ == "__main__":
    main(int(sys.argv[1]))
