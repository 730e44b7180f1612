"""All that this package asks of Triton, and Triton of it: the backend, the driver and the launcher.

Triton compiles a kernel to TTIR, whose text is what this backend calls its binary. Loading it makes a
`launches.LoadedKernel`, which the launcher calls with the arguments that Triton passes on.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import triton
from triton import knobs
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.driver import DriverBase

from xegpu_py.collector import collector_paused
from xegpu_py.deferred import deferred
from xegpu_py.extensions.triton.settings import NUM_WARPS, TUNING, current

if TYPE_CHECKING:
    from xegpu_py.extensions.triton import compile_ahead
else:
    compile_ahead = deferred("xegpu_py.extensions.triton.compile_ahead")

NAME = "xegpu"

SUPPORTED = "3.9"
"""The series of Triton's releases whose interfaces this file knows."""

VERSION = "2"
"""Of this backend; kernels that an older one compiled are compiled again."""

BINARY = "xettir"
"""The extension of the files in Triton's cache that this backend loads: the text of TTIR."""

SUBGROUP_LANES = 16

SHARED_BYTES = 1024
"""Size of shared memory that kernels report. This backend takes as much as it needs."""

_EXCHANGES = re.compile(r"\btt\.(?:reduce|scan|dot|dot_scaled|gather|histogram|trans)\b")

STAGES = ("xetile", "xegpu", "visa", "zebin")
"""The levels below TTIR that `kernel.asm` of a compiled kernel has."""


class UnknownTriton(RuntimeError):
    """A release of Triton whose interfaces are not known."""


def check_version() -> None:
    """Check that this release of Triton is one that the backend knows.

    Raises:
        UnknownTriton: if it is not.
    """
    if not re.match(rf"{re.escape(SUPPORTED)}(\.|$)", triton.__version__):
        raise UnknownTriton(
            f"xegpu-py runs kernels of Triton {SUPPORTED}, but this is Triton {triton.__version__}; "
            f"pip install 'triton=={SUPPORTED}.*'"
        )


def device_name() -> str:
    """The name of the target that programs see: "xegpu", or `XEGPU_PY_TRITON_DEVICE`.

    Programs that look up `getattr(torch, name)` need "cpu".

    Raises:
        ValueError: for another name.
    """
    name = os.environ.get("XEGPU_PY_TRITON_DEVICE") or NAME
    if name not in (NAME, "cpu"):
        raise ValueError(f"'XEGPU_PY_TRITON_DEVICE' must be {NAME} or cpu, but got {name!r}")
    return name


def _launches() -> Any:
    # Importing Triton imports this file, but the compiler and the engines are imported at the first kernel.
    with collector_paused():
        from xegpu_py.extensions.triton import launches

    return launches


@dataclass(frozen=True)
class XeOptions:
    """The options of a kernel, by the names that Triton and its backends give them.

    `num_warps` is the number of subgroups of kernels with products, if these are large enough; other numbers follow
    from the code. `num_stages` and the options below `arch` are hints for other compilers: they change neither results
    nor the code. Assertions are always compiled.
    """

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    warp_size: int = SUBGROUP_LANES
    debug: bool = True
    sanitize_overflow: bool = False
    enable_fp_fusion: bool = True
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4nv")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    extern_libs: Any = None
    ir_override: str | None = None
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    backend_name: str = NAME
    arch: str = "bmg"
    maxnreg: int | None = None
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    cluster_dims: tuple[int, ...] = (1, 1, 1)
    ptx_version: int | None = None
    ptx_options: str | None = None
    sched4reg: bool = False
    enable_reflect_ftz: bool = True
    clc: bool = False
    min_shared_mem: int | None = None
    num_buffers_warp_spec: int = 0
    num_consumer_groups: int = 0
    reg_dec_producer: int = 0
    reg_inc_consumer: int = 0
    waves_per_eu: int = 0
    matrix_instr_nonkdim: int = 0
    kpack: int = 1
    allow_flush_denorm: bool = False
    schedule_hint: str = "none"
    grf_mode: str = "default"
    split_barriers_scope: str = "None"
    one_matrix_per_load_for_bt: bool = False
    generate_native_code: bool = False
    advanced_path: bool = False
    num_cpu_threads: int = 0

    def __post_init__(self) -> None:
        assert self.num_warps > 0 and self.num_warps & (self.num_warps - 1) == 0, "num_warps must be a power of 2"

    def hash(self) -> str:
        """The key of kernels with these options in Triton's cache."""
        return hashlib.sha256(repr(sorted(self.__dict__.items())).encode()).hexdigest()


class XeBackend(BaseBackend):  # type: ignore[misc]
    """Compiles kernels to TTIR."""

    binary_ext = BINARY
    supports_native_tensor_specialization = True

    def __init__(self, target: GPUTarget) -> None:
        check_version()
        super().__init__(target)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend in (NAME, "cpu")

    def hash(self) -> str:
        return f"{NAME}-{VERSION}-{self.target.arch}"

    def parse_options(self, opts: Mapping[str, Any]) -> XeOptions:
        fields = XeOptions.__dataclass_fields__
        options = {name: value for name, value in opts.items() if name in fields and value is not None}
        # Triton gives False where a program says nothing.
        return XeOptions(**{**options, "debug": True, "arch": str(self.target.arch)})

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    def get_codegen_implementation(self, options: XeOptions) -> dict[str, Callable[..., Any]]:
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        from triton.language.extra.cuda import libdevice  # Triton's language is imported after its backends

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        pass

    def add_stages(self, stages: dict[str, Any], options: XeOptions, language: Any = None) -> None:
        stages["ttir"] = _optimized
        stages[BINARY] = _text


def _optimized(module: Any, metadata: dict[str, Any]) -> Any:
    """Run the passes of TTIR that every backend runs, and unroll the loops that ask for it."""
    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.ttir.add_reorder_broadcast(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.ttir.add_loop_unroll(manager)
    manager.run(module, "make_ttir")
    return module


def _text(module: Any, metadata: dict[str, Any]) -> bytes:
    text = module.str()
    # Other kernels are the same for all numbers of warps, so that an autotuner compiles them once.
    if "tt.dot" in text:
        module.set_attr(NUM_WARPS, ir.builder(module.context).get_int32_attr(metadata["num_warps"]))
        text = module.str()
    # Programs divide by the bytes of shared memory of kernels that exchange elements.
    metadata["shared"] = SHARED_BYTES if _EXCHANGES.search(text) else 0
    metadata["name"] = module.get_entry_func_name()
    return text.encode()


def _extend_asm() -> None:
    """Let `kernel.asm` of compiled kernels have the levels below TTIR, which are computed when they are asked for."""
    from triton.compiler.compiler import AsmDict  # imported after the backends

    before = AsmDict.__missing__
    if getattr(before, "is_extended", False):
        return

    def missing(self: Any, key: str) -> Any:
        if BINARY not in self:
            return before(self, key)
        if key not in STAGES:
            levels = ", ".join(("ttir", *STAGES))
            raise KeyError(
                f"Unknown key: '{key}'. Kernels of xegpu-py have {levels}: they are compiled from TTIR, without "
                "TritonGPU's IR, LLVM's and PTX"
            )
        self[key] = text = _launches().stage(self[BINARY].decode(), key)
        return text

    missing.is_extended = True  # type: ignore[attr-defined]
    AsmDict.__missing__ = missing


@cache
def installed_triton() -> str:
    """The key of the installed Triton in its cache, made of the sizes and times of its files.

    Triton makes it of their contents, half a gigabyte, which takes longer than to compile most kernels.
    """
    root = Path(triton.__file__).parent
    files = [root / "runtime" / "cache.py", *root.glob("_C/libtriton*")]
    files += [path for name in ("compiler", "backends", "language") for path in (root / name).rglob("*.py")]
    stamps = sorted((str(path.relative_to(root)), (at := path.stat()).st_size, at.st_mtime_ns) for path in files)
    return f"{triton.__version__}-{hashlib.sha256(repr(stamps).encode()).hexdigest()}"


def _shorten_key() -> None:
    """Let Triton's cache use `installed_triton`."""
    from triton.runtime import cache as kernel_cache  # imported after the backends

    kernel_cache.triton_key = installed_triton


def _multiply_exactly() -> None:
    """Let products of f32 be exact where neither the program nor `TRITON_F32_DEFAULT` says how.

    Triton takes tf32 for all backends that have it, whatever their `default_dot_input_precision` is.
    """
    knobs.language.fp32_default = knobs.language.fp32_default or XeOptions.default_dot_input_precision


class Utils:
    """Properties of the device that Triton and programs query."""

    def get_device_properties(self, device: Any) -> dict[str, int]:
        return _launches().device_properties(current())

    def load_binary(self, name: str, kernel: bytes, shared: int, device: Any) -> tuple[Any, Any, int, int, int]:
        """The kernel twice, as module and function, its registers, spilled bytes, and the most threads of a launch."""
        loaded = _launches().LoadedKernel(name, kernel.decode())
        return loaded, loaded, loaded.registers, 0, 1 << 20

    def unload_module(self, module: Any) -> None:
        pass


class Launcher:
    """Launches one kernel; Triton makes it when it first runs the kernel."""

    def __init__(self, src: Any, metadata: Any) -> None:
        signature = getattr(src, "signature", {})
        names = getattr(getattr(src, "fn", None), "arg_names", None) or list(map(str, signature))
        self._signature = tuple(zip(names, signature.values()))

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: Any,
        function: Any,
        packed: Any,
        launch_metadata: Any,
        enter: Any,
        leave: Any,
        *arguments: Any,
    ) -> None:
        if enter is not None and launch_metadata is not None:
            enter(launch_metadata)
        function.launch((x, y, z), self._signature, arguments)
        if leave is not None and launch_metadata is not None:
            leave(launch_metadata)


class Event:
    """A point in time, as `torch.cuda.Event`."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds up to another event."""
        return (end._at - self._at) * 1000

    def synchronize(self) -> None:
        pass


class DeviceInterface:
    """The functions of `torch.cuda` that `triton.testing` calls. Launches end before they return."""

    Event = Event

    def synchronize(self, device: Any = None) -> None:
        pass

    def current_device(self) -> str:
        return "cpu"


MOST_RUNS = 1000


def _number(seconds: float, quantiles: Sequence[float] | None) -> Any:
    """A time as `do_bench` gives it, in milliseconds."""
    return seconds * 1000 if quantiles is None else [seconds * 1000] * len(quantiles)


_CHOSEN: list[Any] = []
"""The arguments of the autotuner's call that has its first configuration."""


_TRIED: list[Any] = []
"""The arguments of the last autotuner's call that tried a configuration, and the number of those it has tried."""


def _record_configurations() -> None:
    """Let autotuners keep the configurations that are left after pruning, which `benchmark` compiles together."""
    from triton.runtime.autotuner import Autotuner  # imported after the backends

    prune = Autotuner.prune_configs

    def pruned(self: Any, kwargs: Any) -> Any:
        self.xegpu_configurations = prune(self, kwargs)
        return self.xegpu_configurations

    if prune.__name__ != pruned.__name__:
        Autotuner.prune_configs = pruned


def _compile_ahead(run: Callable[[], Any], call: Any) -> None:
    """Compile all other configurations of an autotuner's call when it tries its second one.

    The first one has imported the compiler, which the processes that compile the others share.
    """
    tried = _TRIED[1] + 1 if _TRIED and _TRIED[0] is call else 1
    _TRIED[:] = [call, tried]
    if tried != 2:
        return
    variables = inspect.getclosurevars(run).nonlocals
    autotuner, arguments = variables["self"], variables["args"]
    named = {k: v for k, v in variables["current"].items() if k not in variables["config"].all_kwargs()}
    # The first tuning of a process has pruned its configurations before Triton made the driver.
    pruned = autotuner.early_config_prune or autotuner.perf_model
    configurations = getattr(autotuner, "xegpu_configurations", () if pruned else autotuner.configs)
    compile_ahead.compile_ahead(
        [partial(autotuner.fn.run, *arguments, **named, **config.all_kwargs()) for config in configurations[1:]]
    )


def _arguments_of(run: Callable[[], Any]) -> Any:
    """The arguments of the autotuner's call that tries configurations by a function of this one; None for others."""
    autotuner = inspect.getclosurevars(run).nonlocals.get("self") if inspect.isfunction(run) else None
    return getattr(autotuner, "nargs", None)


def benchmark(run: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **more: Any) -> Any:
    """The time of a configuration, for autotuners, in milliseconds; `Settings.autotune` says of what.

    Raises:
        OutOfResources: if it does not fit the GPU.
    """
    token = TUNING.set(True)
    try:
        mode, call = current().autotune, _arguments_of(run)
        if mode != "first" and call is not None:
            _compile_ahead(run, call)
        if mode == "time" or call is None:
            return do_bench(run, quantiles=quantiles, **more)
        if mode == "model":
            return _number(_launches().predicted_seconds(run), quantiles)
        if _CHOSEN and _CHOSEN[0] is call:
            return _number(float("inf"), quantiles)
        run()
        _CHOSEN[:] = [call]
        return _number(0.0, quantiles)
    finally:
        TUNING.reset(token)


def do_bench(
    run: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """The time of a call in milliseconds, as `triton.testing.do_bench` gives it.

    Args:
        run: the call.
        warmup: without effect but for two calls, which are not counted: the first compiles the kernels.
        rep: milliseconds for all calls together.
        grad_to_none: tensors whose gradients are removed before each call.
        quantiles: which quantiles of the times to return.
        return_mode: otherwise "min", "max", "mean", "median" or "all".
    """
    run()
    run()
    times: list[float] = []
    end = time.perf_counter() + rep / 1000
    while not times or (time.perf_counter() < end and len(times) < MOST_RUNS):
        for tensor in grad_to_none or ():
            tensor.grad = None
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000)
    if quantiles is not None:
        ordered = sorted(times)
        quantile_times = [ordered[min(len(ordered) - 1, round(q * (len(ordered) - 1)))] for q in quantiles]
        return quantile_times[0] if len(quantile_times) == 1 else quantile_times
    if return_mode == "all":
        return times
    reduced: dict[str, Callable[[Any], float]] = {"min": min, "max": max, "median": statistics.median}
    return reduced.get(return_mode, statistics.fmean)(times)


class XeDriver(DriverBase):  # type: ignore[misc]
    """Runs kernels on the virtual GPU: the arrays of a launch are those of the caller, in the host's memory."""

    launcher_cls = Launcher

    def __init__(self) -> None:
        check_version()
        super().__init__()
        self.utils = Utils()
        _extend_asm()
        _shorten_key()
        _multiply_exactly()
        _record_configurations()

    @classmethod
    def is_active(cls) -> bool:
        """Whether no other driver is, such as that of a GPU, or the user has chosen this one."""
        if os.environ.get("TRITON_DEFAULT_BACKEND") == NAME:
            return True
        from triton.backends import backends  # complete only after this file has been imported

        return not any(other.driver.is_active() for name, other in backends.items() if name != NAME)

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError("kernels of this backend are not called from C++")

    def get_current_target(self) -> GPUTarget:
        return GPUTarget(device_name(), "bmg", SUBGROUP_LANES)

    def get_current_device(self) -> str:
        # As `torch.cpu.current_device` says.
        return "cpu"

    def set_current_device(self, device: Any) -> None:
        pass

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return 12, 0

    def get_current_stream(self, device: Any) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch  # an option of programs, and slow to import

        return torch.device("cpu")

    def get_device_interface(self) -> DeviceInterface:
        return DeviceInterface()

    def get_benchmarker(self) -> Callable[..., Any]:
        return benchmark

    def get_empty_cache_for_benchmark(self) -> Any:
        return None

    def clear_cache(self, cache: Any) -> None:
        pass
