"""Runs payloads of LLVM's Lighthouse at workgroup level: `Runner` has the interface of Lighthouse's class.

A payload is what Lighthouse's schedules leave at stage `xegpu-wg`: host code, and kernels in upstream's XeGPU whose
layouts divide the vectors of a workgroup. All memory is the host's, so that buffers are numpy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xegpu_py.extensions.programs.load import load_program

BENCHMARK = "__benchmark"
"""The function that Lighthouse's `wrap_in_benching_func` makes of a payload."""


class MemoryManager:
    """The memory manager that callbacks get."""

    @staticmethod
    def copy(source: np.ndarray[Any, Any], destination: np.ndarray[Any, Any]) -> None:
        """Copy a buffer to another one of its shape and type."""
        destination[...] = source


class Runner:
    """Executes the functions of a payload.

    Args:
        module: the payload: text, or a module of any MLIR bindings.
        mem_manager_cls: None if kernels change the given arrays; otherwise they change copies, which
            `argument_access_callback` can read.
        shared_libs, opt_level, target: of Lighthouse's class; host code needs no libraries here.
        options: the options of `xegpu_py.compile`, such as `engine` and `check`.

    Raises:
        DiagnosticError: if the payload cannot be parsed or imported.
    """

    payload_benchmark_function_name = BENCHMARK

    def __init__(
        self,
        module: Any,
        mem_manager_cls: type | None = None,
        shared_libs: Sequence[str] | None = None,
        opt_level: int = 3,
        target: Any = None,
        **options: Any,
    ) -> None:
        self.payload = module
        self.mem_manager_cls = mem_manager_cls
        self._program = load_program(str(module), import_upstream=True, **options)

    def execute(
        self,
        payload_function_name: str,
        host_input_buffers: Sequence[Any],
        argument_access_callback: Callable[..., None] | None = None,
    ) -> None:
        """Call a function of the payload.

        Args:
            host_input_buffers: its arguments, numpy arrays.
            argument_access_callback: called after it with the arguments, and with the keyword arguments
                `execution_engine` (this object) and `memory_manager`, which copies arrays (None without
                `mem_manager_cls`).

        Raises:
            AttributeError: if there is no such function.
            TypeError, ValueError: if the arguments do not fit.
            DiagnosticError: if a kernel cannot be lowered, or fails.
        """
        self._call(payload_function_name, host_input_buffers, (), argument_access_callback)

    def benchmark(
        self,
        host_input_buffers: Sequence[Any],
        argument_access_callback: Callable[..., None] | None = None,
        nruns: int = 100,
        nwarmup: int = 10,
    ) -> np.ndarray[Any, Any]:
        """Call the payload's function `__benchmark`, and return the seconds of each run, float64.

        These are the times of the simulation, and not of a GPU.

        Raises: see `execute`.
        """
        times = np.zeros(nruns)
        self._call(BENCHMARK, host_input_buffers, (times, nruns, nwarmup), argument_access_callback)
        return times

    def _call(
        self, name: str, buffers: Sequence[Any], more: Sequence[Any], callback: Callable[..., None] | None
    ) -> None:
        inputs = list(buffers) if self.mem_manager_cls is None else [np.array(b) for b in buffers]
        getattr(self._program, name)(*inputs, *more)
        if callback is not None:
            memory = None if self.mem_manager_cls is None else MemoryManager()
            callback(inputs, execution_engine=self, memory_manager=memory)

    @staticmethod
    def get_gpu_argument_access_callback(host_buffer: np.ndarray[Any, Any], arg_index: int = 0) -> Callable[..., None]:
        """A callback that copies an argument to an array."""

        def copy_to_host(inputs: Sequence[Any], *, memory_manager: Any, **_: Any) -> None:
            memory_manager.copy(inputs[arg_index], host_buffer)

        return copy_to_host
