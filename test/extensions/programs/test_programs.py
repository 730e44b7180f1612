"""`load_program`, the child process, and the library functions against MLIR's own."""

import contextlib
import ctypes
import io
import math
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import forked_tools
import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.extensions.programs import confinement, device, host_libraries, load
from xegpu_py.extensions.programs.host_libraries import HostMemRef, LibraryState, multiply
from xegpu_py.extensions.programs.host_lowering import jam_loops
from xegpu_py.extensions.programs.lighthouse import Runner
from xegpu_py.extensions.programs.native import C_FUNCTIONS

PROGRAM = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%a: memref<?xf32>, %b: memref<?xf32>) kernel {
      %x = gpu.block_id x
      %c16 = arith.constant 16 : index
      %i = arith.muli %x, %c16 : index
      %u = vector.load %a[%i] : memref<?xf32>, vector<16xf32>
      %v = vector.load %b[%i] : memref<?xf32>, vector<16xf32>
      %w = arith.addf %u, %v : vector<16xf32>
      vector.store %w, %b[%i] : memref<?xf32>, vector<16xf32>
      gpu.return
    }
  }
  func.func @add(%a: memref<?xf32>, %b: memref<?xf32>) -> (index, memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %a, %c0 : memref<?xf32>
    %groups = arith.divui %n, %c16 : index
    gpu.launch_func @kernels::@add blocks in (%groups, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%a : memref<?xf32>, %b : memref<?xf32>)
    return %n, %b : index, memref<?xf32>
  }
  func.func @half(%x: bf16, %n: i8) -> bf16 {
    %m = arith.sitofp %n : i8 to bf16
    %y = arith.divf %x, %m : bf16
    return %y : bf16
  }
  func.func @lanes(%x: vector<4xf32>) {
    return
  }
  func.func @vectors() -> vector<4xf32> {
    %x = arith.constant dense<1.0> : vector<4xf32>
    return %x : vector<4xf32>
  }
  func.func @rows(%a: memref<*xf64>) -> i64 {
    %r = memref.rank %a : memref<*xf64>
    %i = arith.index_cast %r : index to i64
    return %i : i64
  }
  func.func @hello() {
    vector.print str "hello\\n"
    return
  }
  func.func @forever() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %end = arith.constant 9223372036854775807 : index
    %a = memref.alloc() : memref<1xi64>
    vector.print str "begun\\n"
    scf.for %i = %c0 to %end step %c1 {
      %n = arith.index_cast %i : index to i64
      %x = memref.atomic_rmw addi %n, %a[%c0] : (i64, memref<1xi64>) -> i64
    }
    return
  }
}
"""


@pytest.fixture(autouse=True)
def _forks(monkeypatch):
    """Host code runs in forks of this process, except that of the tools which tests start."""
    monkeypatch.setattr(load, "subprocess", forked_tools.program_processes())


@pytest.fixture(scope="module")
def program():
    return xegpu_py.load_program(PROGRAM, cache="off")


def test_functions_take_and_give_arrays(program):
    a, b = np.arange(32, dtype=np.float32), np.ones(32, np.float32)
    n, result = program.add(a, b)
    assert n == 32
    assert (b == np.arange(32) + 1).all()
    assert (result == b).all()


def test_numbers_are_passed(program):
    assert program.half(1.0, 2) == ml_dtypes.bfloat16(0.5)
    assert program.rows(np.zeros((2, 3, 4))) == 3


def test_kernels_are_taken_out(program):
    a, b = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
    assert list(program.kernels) == ["add"]
    program.kernels["add"](a, b)
    assert (b == a + 1).all()


def test_output_goes_to_standard_output(program, capfd):
    program.hello()
    assert capfd.readouterr() == ("hello\n", "")


def test_output_goes_to_streams_without_a_descriptor(program):
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        program.hello()
    assert stream.getvalue() == "hello\n"


def test_modules_are_programs(program, capfd):
    xegpu_py.load_program(xegpu_py.parse(PROGRAM)).hello()
    assert capfd.readouterr().out == "hello\n"


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        (
            "lanes",
            (np.zeros(4, np.float32),),
            TypeError,
            "of type vector<4xf32>, cannot be passed",
        ),
        ("vectors", (), TypeError, "results of type vector<4xf32> cannot be passed; memrefs and numbers can"),
        ("half", (1.0,), TypeError, "takes 2 arguments"),
        ("half", (1.0, 1.5), TypeError, "must be a number of that type, but got 1.5"),
        ("half", (1.0, 300), TypeError, "must be a number of that type, but got 300"),
        (
            "add",
            (np.zeros(16), np.zeros(16)),
            TypeError,
            "must be a numpy array of float32, but got an array of float64",
        ),
        ("add", (np.zeros((4, 4), np.float32),) * 2, ValueError, "cannot be an array of shape"),
    ],
)
def test_arguments_that_do_not_fit(program, name, arguments, error, message):
    with pytest.raises(error, match=message):
        getattr(program, name)(*arguments)


def test_unknown_functions(program):
    with pytest.raises(AttributeError, match="no host function 'nothing'; it has add, half"):
        program.nothing()


def _begin(tmp_path):
    file = tmp_path / "forever.mlir"
    file.write_text(PROGRAM)
    tool = Path(sys.executable).with_name("xegpu-run")
    # In the background of a shell without job control, SIGINT is ignored, and by what is started there.
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [tool, file, "-e", "forever"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heeds)
    assert started.stdout.readline() == b"begun\n"
    return started


def _children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def _ends(pid):
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_the_end_of_the_parent_ends_the_program(tmp_path, number, status):
    started = _begin(tmp_path)
    (child,) = _children(started.pid)
    started.send_signal(number)
    _, errors = started.communicate(timeout=20)
    assert started.returncode == status
    assert errors == b""
    assert _ends(child)


def test_the_process_of_host_code_is_confined(tmp_path):
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("there is no /proc")
    started = _begin(tmp_path)
    (child,) = _children(started.pid)
    (child, *_) = _children(child) or [child]
    found = Path(f"/proc/{child}/status").read_text()
    limits = Path(f"/proc/{child}/limits").read_text()
    started.send_signal(signal.SIGINT)
    started.communicate(timeout=20)
    assert "NoNewPrivs:\t1" in found
    assert re.search(r"Max core file size +0 ", limits)


CONFINED = """
import os, pathlib, socket, subprocess, sys
import numpy as np
from xegpu_py.extensions.programs.confinement import confine

folder = pathlib.Path(sys.argv[1])
server = socket.create_server(("127.0.0.1", 0))
print(confine([folder]))

def tried(name, action):
    try:
        action()
        print(name, "done")
    except (OSError, MemoryError):
        print(name, "refused")

tried("read", lambda: open("/etc/passwd").close())
tried("list", lambda: os.listdir("/etc"))
tried("write", lambda: (folder.parent / "other").write_text("x"))
tried("remove", lambda: (folder.parent / "kept").unlink())
tried("start", lambda: subprocess.run([sys.executable, "-c", ""], check=True))
tried("connect", lambda: socket.create_connection(server.getsockname()).close())
tried("signal", lambda: os.kill(os.getppid(), 0))
tried("memory", lambda: np.ones(1 << 44, np.uint8))
tried("cache", lambda: (folder / "entry").write_text("x"))
tried("import", lambda: __import__("xegpu_py.bisection"))
"""


def test_a_confined_process_reads_modules_and_writes_the_cache_only(tmp_path):
    folder = tmp_path / "cache"
    (tmp_path / "kept").write_text("x")
    found = subprocess.run([sys.executable, "-c", CONFINED, folder], capture_output=True, text=True, check=True)
    is_restricted, *lines = found.stdout.splitlines()
    outcomes = dict(line.split() for line in lines)
    assert {outcomes.pop("cache"), outcomes.pop("import")} == {"done"}
    assert outcomes.pop("memory") == "refused"
    if is_restricted == "False":
        pytest.skip("this system has no Landlock")
    assert set(outcomes.values()) == {"refused"}, outcomes
    assert (tmp_path / "kept").exists()
    assert not (tmp_path / "other").exists()


class Landlock:
    """The C library of a system whose Landlock has a version, and the rules that it got."""

    def __init__(self, version):
        self.version, self.ruleset, self.rules, self.is_restricted = version, b"", [], False
        self.fails = ""
        self.syscall = partial(self._syscall)  # takes attributes, as functions of ctypes do

    def prctl(self, *arguments):
        return int(arguments != (38, 1, 0, 0, 0) or self.fails == "prctl")

    def _syscall(self, number, *arguments):
        if number == 444 and arguments[0] is None:
            assert (arguments[1].value, arguments[2]) == (0, 1)
            return self.version
        if number == 444:
            self.ruleset = arguments[0]
            assert (arguments[1].value, arguments[2]) == (len(self.ruleset), 0)
            return -1 if self.fails == "ruleset" else os.open(os.devnull, os.O_RDONLY)
        if number == 445:
            access, descriptor = struct.unpack("=Qi", arguments[2])
            self.rules.append((os.readlink(f"/proc/self/fd/{descriptor}"), access))
            assert (arguments[1], arguments[3]) == (1, 0)
        self.is_restricted |= number == 446
        return int(number == 446 and self.fails == "restrict")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
@pytest.mark.parametrize(
    ("version", "words"),
    [
        (1, (0x1FFF,)),
        (2, (0x3FFF,)),
        (3, (0x7FFF,)),
        (4, (0x7FFF, 3)),
        (5, (0xFFFF, 3)),
        (6, (0xFFFF, 3, 3)),
        (7, (0xFFFF, 3, 3)),
        (0, None),
        (-1, None),
    ],
)
def test_rules_of_landlock(version, words, tmp_path, monkeypatch):
    """All that the system knows is refused, but reading modules, and reading and writing files of a folder."""
    system, module, folder = Landlock(version), tmp_path / "module", tmp_path / "made" / "cache"
    module.write_text("")
    monkeypatch.setattr(confinement.ctypes, "CDLL", lambda name, use_errno: system)
    monkeypatch.setattr(confinement.resource, "setrlimit", lambda *limit: None)
    monkeypatch.setattr(confinement.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(confinement, "_SYSTEM", (module, tmp_path / "missing"))
    before = descriptors()
    assert confinement.confine([folder]) == system.is_restricted == (words is not None)
    if words is None:
        assert not folder.exists() and system.rules == []
        return
    read_file, read_folder, write = 1 << 2, 1 << 3, 1 << 1 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 14
    assert system.ruleset == struct.pack(f"{len(words)}Q", *words)
    assert system.rules[0] == (str(module), read_file)
    assert {access for _, access in system.rules[1:-1]} <= {read_file, read_file | read_folder}
    assert system.rules[-1] == (str(folder), (read_file | read_folder | write) & words[0]) and folder.is_dir()
    confinement._allow(system, 3, module, words[0])
    assert system.rules[-1] == (str(module), (1 << 1 | read_file | 1 << 14) & words[0])
    assert descriptors() == before


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
@pytest.mark.parametrize(
    ("hard", "limit"), [(resource.RLIM_INFINITY, 1 << 32), (1 << 40, 1 << 32), (1 << 30, 1 << 30), (5, 5)]
)
def test_limits_of_host_code(hard, limit, monkeypatch):
    """No dump of its memory, and the memory of the machine, here 2^20 pages, or the limit that there is."""
    limits = []
    monkeypatch.setattr(confinement.os, "sysconf", {"SC_PAGE_SIZE": 1 << 12, "SC_PHYS_PAGES": 1 << 20}.__getitem__)
    monkeypatch.setattr(confinement.resource, "getrlimit", lambda which: (0, hard))
    monkeypatch.setattr(confinement.resource, "setrlimit", lambda *limit: limits.append(limit))
    monkeypatch.setattr(confinement.platform, "machine", lambda: "riscv64")
    assert not confinement.confine([])
    assert limits == [(resource.RLIMIT_CORE, (0, 0)), (resource.RLIMIT_DATA, (limit, limit))]


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
@pytest.mark.parametrize(
    ("machine", "fails", "asked"),
    [("x86_64", "", 1), ("aarch64", "", 1), ("riscv64", "", 0), ("x86_64", "prctl", 0), ("x86_64", "ruleset", 1),
     ("x86_64", "restrict", 1)],
)  # fmt: skip
def test_systems_that_do_not_confine(machine, fails, asked, monkeypatch):
    system = Landlock(4)
    system.fails = fails
    monkeypatch.setattr(confinement.ctypes, "CDLL", lambda name, use_errno: system)
    monkeypatch.setattr(confinement.resource, "setrlimit", lambda *limit: None)
    monkeypatch.setattr(confinement.platform, "machine", lambda: machine)
    monkeypatch.setattr(confinement, "_SYSTEM", ())
    assert confinement.confine([]) == (asked == 1 and not fails)
    assert bool(system.ruleset) == bool(asked) and system.is_restricted == (asked == 1 and fails != "ruleset")


def test_modules_of_the_working_directory_are_not_run(tmp_path):
    (tmp_path / "numpy.py").write_text("print('hijacked')")
    (tmp_path / "json.py").write_text("print('hijacked')")
    (tmp_path / "x.mlir").write_text(PROGRAM)
    tool = Path(sys.executable).with_name("xegpu-run")
    done = subprocess.run([tool, "x.mlir", "-e", "hello"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("hello\n", "")


NATIVE = {
    "system": "declares function 'system', which is neither of the runtime library nor of C's mathematics",
    "environ": "declares 'environ' of another library",
    "asm": "'llvm.inline_asm' op in host code is refused",
    "intrinsic": "'llvm.call_intrinsic' op in host code is refused",
    "module_asm": "has inline assembly, which is refused in host code",
    "pointer": "'llvm.call' op calls a pointer",
    "probe": "has the attribute 'passthrough'",
}

NATIVE_CODE = {
    "system": ("llvm.func @system(!llvm.ptr) -> i32", "%r = llvm.call @system(%p) : (!llvm.ptr) -> i32"),
    "environ": ("llvm.mlir.global external @environ() : !llvm.ptr", ""),
    "asm": ("", 'llvm.inline_asm has_side_effects "syscall", "" : () -> ()'),
    "intrinsic": ("", '%c = llvm.mlir.constant(3 : i8) : i8 llvm.call_intrinsic "llvm.x86.int"(%c) : (i8) -> ()'),
    "module_asm": ("", ""),
    "pointer": ("", "llvm.call %p() : !llvm.ptr, () -> ()"),
    "probe": ('llvm.func @f() attributes {passthrough = [["probe-stack", "system"]]} { llvm.return }', ""),
}


@pytest.mark.parametrize("name", NATIVE)
def test_native_code_is_refused(name):
    declared, body = NATIVE_CODE[name]
    attributes = 'attributes {llvm.module_asm = ["nop"]}' if name == "module_asm" else ""
    text = f"""module {attributes} {{
      {declared}
      func.func @main() {{
        %p = llvm.mlir.zero : !llvm.ptr
        {body}
        return
      }}
    }}"""
    with pytest.raises(xegpu_py.DiagnosticError, match=re.escape(NATIVE[name])) as caught:
        xegpu_py.load_program(text).main()
    assert "allow_native=True" in str(caught.value)


def test_trusted_programs_call_any_function(capfd):
    text = """
      func.func private @getpid() -> i32
      func.func private @putchar(i32) -> i32
      llvm.func @getppid() -> i32
      func.func @main() -> (i32, i32) {
        %letter = arith.constant 65 : i32
        %put = call @putchar(%letter) : (i32) -> i32
        %own = call @getpid() : () -> i32
        %parent = llvm.call @getppid() : () -> i32
        return %own, %parent : i32, i32
      }"""
    own, parent = xegpu_py.load_program(text, allow_native=True).main()
    assert own > 0
    assert parent == os.getpid()
    # A buffer of C's library is written before the process ends.
    assert capfd.readouterr().out == "A"


def test_mathematics_of_c_is_linked():
    one = " ".join(sorted(C_FUNCTIONS))
    functions = [name for name in one.split() if re.fullmatch(r"sin|expf|atan2|erf", name)]
    assert functions == ["atan2", "erf", "expf", "sin"]
    text = """
      llvm.func @atan2(f64, f64) -> f64
      func.func @main(%x: f64, %y: f32) -> (f64, f32, f64) {
        %a = llvm.call @atan2(%x, %x) : (f64, f64) -> f64
        %b = math.exp %y : f32
        %c = math.erf %x : f64
        return %a, %b, %c : f64, f32, f64
      }"""
    found = xegpu_py.load_program(text).main(2.0, 1.0)
    assert np.allclose([float(v) for v in found], [math.pi / 4, math.e, math.erf(2)])


LIBRARY = next(
    (p for d in sys.path if (p := Path(d, "mlir", "lib", "libmlir_runner_utils.so")).exists()),
    None,
)
PRINTERS = {"I8": "i1", "I32": "i4", "I64": "i8", "F32": "f4", "F64": "f8", "Ind": "u8"}


@pytest.mark.skipif(LIBRARY is None, reason="MLIR's library is not installed")
@pytest.mark.parametrize("name", PRINTERS)
def test_arrays_are_printed_as_by_mlir(name, tmp_path):
    rng = np.random.default_rng(5)
    for shape in [(), (1,), (5,), (3, 4), (1, 1), (2, 3, 2), (2, 1, 3, 2)]:
        array = rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 9, shape)
        if PRINTERS[name][0] == "f":
            special = rng.choice([np.inf, -np.inf, np.nan, -np.nan, -0.0, 1e30], shape)
            array = np.where(rng.random(shape) < 0.3, special, array)
        array = np.asarray(array.astype(f"<{PRINTERS[name]}") if PRINTERS[name][0] == "f" else
                           rng.integers(32, 127, shape).astype(PRINTERS[name]))  # fmt: skip
        memref = HostMemRef.of(array)
        inner = memref.descriptor()
        unranked = (ctypes.c_int64 * 2)(array.ndim, ctypes.addressof(inner))
        expected = _printed_by_mlir(name, unranked, tmp_path / "out")
        own, given = os.pipe()
        host_libraries.LIBRARY[f"printMemref{name}"].body(LibraryState(given), memref)
        os.close(given)
        with open(own) as file:
            assert file.read() == expected


def _printed_by_mlir(name, unranked, path):
    kept = os.dup(1)
    with open(path, "wb") as file:
        os.dup2(file.fileno(), 1)
    try:
        getattr(ctypes.CDLL(str(LIBRARY)), f"_mlir_ciface_printMemref{name}")(unranked)
        ctypes.CDLL(None).fflush(None)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    return path.read_text()


def test_host_products_round_each_step():
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((5, 300), (300, 261), (5, 261)))
    expected = c.copy()
    for k in range(300):
        expected += a[:, k : k + 1] * b[k]
    multiply(a, b, c)
    assert (c == expected).all()


@pytest.mark.parametrize("manager", [None, object])
def test_a_runner_changes_arrays_or_copies_of_them(manager):
    a, b, copied = np.arange(16, dtype=np.float32), np.full(16, 100, np.float32), np.zeros(16, np.float32)
    runner = Runner(PROGRAM, manager, engine="interpreter")
    callback = Runner.get_gpu_argument_access_callback(copied, 1) if manager else None
    runner.execute("add", [a, b], callback)
    changed, kept = (copied, b) if manager else (b, copied)
    assert (changed == np.arange(16) + 100).all()
    assert (kept == (100 if manager else 0)).all()


BENCHMARK = """
func.func @__benchmark(%a: memref<4xf32>, %times: memref<?xf64>, %runs: index, %warm: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = arith.index_cast %warm : index to i64
  %f = arith.sitofp %w : i64 to f64
  scf.for %i = %c0 to %runs step %c1 {
    memref.store %f, %times[%i] : memref<?xf64>
  }
  %x = arith.truncf %f : f64 to f32
  memref.store %x, %a[%c0] : memref<4xf32>
  return
}
"""


def test_a_runner_gives_the_times_that_a_benchmark_stores():
    a = np.zeros(4, np.float32)
    for options, times in (({}, [10.0] * 100), ({"nruns": 3, "nwarmup": 2}, [2.0] * 3)):
        found = Runner(BENCHMARK, engine="interpreter").benchmark([a], **options)
        assert found.dtype == np.float64 and found.tolist() == times and a[0] == times[0]


def test_functions_of_a_program_have_bodies():
    text = "func.func private @elsewhere(i32)\nfunc.func @here() {\n  return\n}\n"
    program = xegpu_py.load_program(text)
    assert program.functions == ("here",)
    with pytest.raises(AttributeError, match="no host function 'elsewhere'; it has here"):
        program.elsewhere(1)


LOOPS = """
func.func @product(%a: memref<8x48xf16>, %b: memref<48x32xf16>, %c: memref<8x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c48 = arith.constant 48 : index
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      %old = memref.load %c[%i, %j] : memref<8x32xf32>
      %new = scf.for %k = %c0 to %c48 step %c1 iter_args(%sum = %old) -> f32 {
        %x = memref.load %a[%i, %k] : memref<8x48xf16>
        %y = memref.load %b[%k, %j] : memref<48x32xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %t = arith.mulf %u, %v : f32
        %next = arith.addf %sum, %t : f32
        scf.yield %next : f32
      }
      memref.store %new, %c[%i, %j] : memref<8x32xf32>
    }
  }
  return
}
// Each element is the sum of all that were stored before it.
func.func @sums(%a: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant 1.0 : f32
  scf.for %j = %c0 to %c32 step %c1 {
    %new = scf.for %k = %c0 to %c32 step %c1 iter_args(%sum = %one) -> f32 {
      %x = memref.load %a[%k] : memref<32xf32>
      %next = arith.addf %sum, %x : f32
      scf.yield %next : f32
    }
    memref.store %new, %a[%j] : memref<32xf32>
  }
  return
}
"""


def test_iterations_done_together_change_no_bit():
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((8, 48), (48, 32)))
    c = rng.standard_normal((8, 32)).astype(np.float32)
    expected = c.copy()
    for k in range(48):
        expected += a[:, k : k + 1].astype(np.float32) * b[k].astype(np.float32)
    xegpu_py.load_program(LOOPS).product(a, b, c)
    assert (c == expected).all()


def test_iterations_that_need_each_other_are_not_done_together():
    a = np.zeros(32, np.float32)
    xegpu_py.load_program(LOOPS).sums(a)
    assert (a == 2.0 ** np.arange(32)).all()


def test_loops_over_columns_are_jammed():
    module = xegpu_py.parse(LOOPS).ir
    text = str(jam_loops(module))
    assert text.count("arith.mulf") == 32
    assert text.count("arith.addf") == 33


@pytest.mark.parametrize(
    ("a", "b", "second", "expected"),
    [("memref.alloc()", "memref.alloc()", "%b[%j]", 32), ("memref.get_global @g", "memref.alloc()", "%b[%j]", 32),
     ("memref.get_global @g", "memref.get_global @g", "%b[%j]", 1), ("memref.alloc()", "memref.alloc()", "%c[%j]", 32),
     ("memref.alloc()", "memref.alloc()", "%d[%j]", 1)],
)  # fmt: skip
def test_memrefs_that_may_share_memory_are_not_jammed(a, b, second, expected):
    text = f"""
    memref.global "private" @g : memref<32xf32>
    func.func @f(%d: memref<32xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %c = memref.alloc() : memref<32xf32>
      %one = arith.constant 1.0 : f32
      %a = {a} : memref<32xf32>
      %b = {b} : memref<32xf32>
      scf.for %j = %c0 to %c32 step %c1 {{
        %new = scf.for %k = %c0 to %c32 step %c1 iter_args(%sum = %one) -> f32 {{
          %x = memref.load %a[%k] : memref<32xf32>
          %next = arith.addf %sum, %x : f32
          scf.yield %next : f32
        }}
        memref.store %new, %b[%j] : memref<32xf32>
        memref.store %new, {second} : memref<32xf32>
      }}
      return
    }}
    """
    assert str(jam_loops(xegpu_py.parse(text).ir)).count("arith.addf") == expected


@pytest.mark.parametrize(
    ("source", "to", "expected"),
    [("%m", "%n", 32), ("%m", "%d", 1), ("%d", "%m", 1), ("%d", "%e", 1), ("%m", "%m", 1), ("%m", "%h", 32),
     ("%d", "%h", 32), ("%h", "%d", 32)],
)  # fmt: skip
def test_loads_from_memory_that_the_store_may_change(source, to, expected):
    """Arguments are memory that is not known; elements of another type are apart."""
    kinds = {name: "f16" if name == "%h" else "f32" for name in (source, to)}
    value = {"f32": "%next", "f16": "%half"}
    text = f"""
    func.func @f(%d: memref<32xf32>, %e: memref<32xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %m = memref.alloc() : memref<32xf32>
      %n = memref.alloc() : memref<32xf32>
      %h = memref.alloc() : memref<32xf16>
      %one = arith.constant 1.0 : {kinds[source]}
      scf.for %j = %c0 to %c32 step %c1 {{
        %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%s = %one) -> {kinds[source]} {{
          %x = memref.load {source}[%k] : memref<32x{kinds[source]}>
          %t = arith.addf %s, %x : {kinds[source]}
          scf.yield %t : {kinds[source]}
        }}
        %next = arith.{"extf %sum : f16 to f32" if kinds[source] == "f16" else "addf %sum, %sum : f32"}
        %half = arith.{"addf %sum, %sum : f16" if kinds[source] == "f16" else "truncf %sum : f32 to f16"}
        memref.store {value[kinds[to]]}, {to}[%j] : memref<32x{kinds[to]}>
      }}
      return
    }}
    """
    found = str(jam_loops(xegpu_py.parse(text).ir)).count("memref.store")
    assert found == expected


INNER = """%new = scf.for %k = %c0 to %c32 step %c1 iter_args(%sum = %one) -> f32 {{
  %next = arith.mulf %sum, %sum : f32
  {0}
  scf.yield %next : f32
}}"""
VIEW = "%v = memref.view %bytes[%c0][] : memref<128xi8> to memref<32xf32>"
STORE, CALL = "memref.store %one, %m[%j] : memref<32xf32>", "func.call @other() : () -> ()"


@pytest.mark.parametrize(
    ("body", "options", "factor"),
    [
        *((f"{INNER.format('')} {STORE}", {"end": f"%c{end}"}, factor)
          for end, factor in ((32, 32), (48, 16), (24, 8), (36, 4), (30, 1), (0, 1))),
        (f"{INNER.format('')} {STORE}", {"end": "%n"}, 1),
        (f"{INNER.format('')} {STORE} %z = arith.negf %one : f32", {}, 32),
        (f"%y = arith.mulf %one, %one : f32 {STORE}", {}, 1),
        (INNER.format(""), {}, 1),
        (INNER.format(STORE), {}, 1),
        (f"{INNER.format(STORE)} {STORE}", {}, 1),
        (f"{INNER.format(CALL)} {STORE}", {}, 1),
        (f"{INNER.format('')} {STORE} {CALL}", {}, 1),
        (f"{INNER.format('')} {STORE}", {"before": VIEW}, 1),
        (f"{INNER.format('')} {STORE}", {"before": "%p = llvm.mlir.zero : !llvm.ptr"}, 1),
    ],
)  # fmt: skip
def test_which_loops_are_jammed(body, options, factor):
    """Those of a known count that store at each iteration, and in which nothing else has an effect."""
    ends = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 24, 30, 32, 36, 48))
    text = f"""
    func.func private @other()
    func.func @f(%n: index, %bytes: memref<128xi8>) {{
      {ends}
      {options.get("before", "")}
      %m = memref.alloc() : memref<32xf32>
      %one = arith.constant 1.0 : f32
      scf.for %j = %c0 to {options.get("end", "%c32")} step %c1 {{
        {body}
      }}
      return
    }}
    """
    assert str(jam_loops(xegpu_py.parse(text).ir)).count("arith.mulf") == factor


@pytest.mark.parametrize("carried", [0, 1, 2])
def test_loops_that_carry_values_are_not_jammed(carried):
    """Iterations done together would each begin with the same values."""
    names = [f"%s{n}" for n in range(carried)]
    text = f"""
    func.func @f(%a: memref<32xf32>, %b: memref<32x2xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %m = memref.alloc() : memref<32xf32>
      %one = arith.constant 1.0 : f32
      {"%r:" + str(carried) + " = " if carried else ""}scf.for %j = %c0 to %c32 step %c1
          {"iter_args(" + ", ".join(f"{name} = %one" for name in names) + ")" if carried else ""}
          {"-> (" + ", ".join(["f32"] * carried) + ")" if carried else ""} {{
        %new = scf.for %k = %c0 to %c32 step %c1 iter_args(%sum = %one) -> f32 {{
          %x = arith.mulf %sum, %sum : f32
          scf.yield %x : f32
        }}
        memref.store %new, %m[%j] : memref<32xf32>
        {"scf.yield " + ", ".join(["%new", *names[1:]]) + " : " + ", ".join(["f32"] * carried) if carried else ""}
      }}
      return
    }}
    """
    assert str(jam_loops(xegpu_py.parse(text).ir)).count("arith.mulf") == (1 if carried else 32)


LANES_OF_SUBGROUPS = """
module attributes {gpu.container_module} {
  func.func @main(%m: memref<16x32xf32>) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @k::@f blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%m : memref<16x32xf32>)
    return
  }
  gpu.module @k {
    gpu.func @f(%C: memref<16x32xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c16 = arith.constant 16 : index
      %s = gpu.subgroup_id : index
      %o = arith.muli %s, %c16 : index
      %v = arith.constant dense<1.0> : vector<8x16xf32>
      %t = xegpu.create_nd_tdesc %C : memref<16x32xf32> -> !xegpu.tensor_desc<8x16xf32>
      xegpu.store_nd %v, %t[0, %o] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
      gpu.return
    }
  }
}
"""


@pytest.mark.parametrize("threads", [(16, 2, 1), (8, 4, 1), (16, 1, 2), (4, 4, 2)])
def test_launches_of_subgroups_in_all_dimensions(threads):
    """Work items are numbered along x first, also where the rows of a block do not consist of whole subgroups."""
    text = LANES_OF_SUBGROUPS.replace("%c32, %c1, %c1", "%x, %y, %z")
    text = text.replace(" attributes {known_block_size = array<i32: 32, 1, 1>}", "")
    sizes = "\n".join(f"%{name} = arith.constant {size} : index" for name, size in zip("xyz", threads))
    text = text.replace("%c32 = arith.constant 32 : index", sizes)
    array = np.zeros((16, 32), np.float32)
    xegpu_py.load_program(text, import_upstream=True, engine="interpreter").main(array)
    assert array[:8].all() and not array[8:].any()


def test_launches_of_subgroups_count_lanes_like_their_known_block(capfd):
    array = np.zeros((16, 32), np.float32)
    xegpu_py.load_program(LANES_OF_SUBGROUPS, import_upstream=True, engine="interpreter").main(array)
    assert array[:8].all() and not array[8:].any()
    assert capfd.readouterr().err == ""
    with_another = LANES_OF_SUBGROUPS.replace("i32: 32, 1, 1", "i32: 64, 1, 1")
    xegpu_py.load_program(with_another, import_upstream=True, engine="interpreter").main(array)
    assert "promises a known_block_size (64, 1, 1), but is launched with (32, 1, 1)" in capfd.readouterr().err
    with_grid = LANES_OF_SUBGROUPS.replace("{known_block", "{known_grid_size = array<i32: 16, 1, 1>, known_block")
    xegpu_py.load_program(with_grid, import_upstream=True, engine="interpreter").main(array)
    assert "promises a known_grid_size (16, 1, 1), but is launched with (1, 1, 1)" in capfd.readouterr().err


def test_subgroups_that_all_do_the_same_are_warned_of(capfd):
    text = LANES_OF_SUBGROUPS.replace("%s = gpu.subgroup_id : index", "%s = arith.constant 1 : index")
    array = np.zeros((16, 32), np.float32)
    xegpu_py.load_program(text, import_upstream=True, engine="interpreter").main(array)
    said = capfd.readouterr().err
    assert "kernel 'f' has neither layouts nor ids of subgroups, so that all 2 subgroups of a workgroup do" in said
    assert "--level=workgroup" in said
    text = text.replace(" attributes {known_block_size = array<i32: 32, 1, 1>}", "")
    xegpu_py.load_program(text, level="workgroup", engine="interpreter").main(array)
    assert "has layouts for 1 subgroups" in capfd.readouterr().err


def test_a_long_launch_that_changes_nothing_is_executed_once(monkeypatch):
    monkeypatch.setattr(device, "LONG", -1)
    gpu = device.Device({}, None, print, print)
    array, runs = np.zeros(4), []

    def launched(key="kernel", number=3):
        gpu.steadily(key, [array, number], lambda: (runs.append(key), array.fill(number)))
        return len(runs)

    # The first launch changes the array; the second one shows that another changes nothing.
    assert [launched() for _ in range(4)] == [1, 2, 2, 2]
    array[1] = 5
    assert launched() == 3
    assert array.tolist() == [3] * 4
    # Other kernels and other numbers are other launches.
    assert [launched(), launched(), launched("other"), launched(number=4)] == [4, 4, 5, 6]
    monkeypatch.setattr(device, "LONG", 60)
    assert [launched(number=7) for _ in range(3)] == [7, 8, 9]


@pytest.mark.parametrize(
    ("body", "message", "note"),
    [
        ("%c = func.constant @main : () -> ()", "makes a program with pointers to functions", "by its name"),
        ("%a = tensor.empty() : tensor<4xf32>", "op cannot be part of host code; its dialects are affine, ", ""),
        ("gpu.barrier", "op cannot be part of host code; of the gpu dialect there may be gpu.alloc, ", ""),
        ("%a = gpu.alloc()[%n] : memref<4xf32, affine_map<(d0)[s0] -> (d0 * s0)>>",
         "has symbols in the layout of its memref, which is refused", "allocate without a layout"),
        ("%a = gpu.alloc(%n) : memref<?x4xf32, strided<[8, 1]>>",
         "allocates memref<?x4xf32, strided<[8, 1]>>, whose layout is not known", "make a subview"),
        ("%a = gpu.alloc()[%n] : memref<4x4xf32, strided<[?, 1]>>", "has symbols in the layout of its memref", ""),
        ("%a = gpu.alloc() : memref<4xf32, affine_map<(d0) -> (d0 floordiv 2)>>", "whose layout has no strides", ""),
        ("gpu.launch_func @m::@none blocks in (%n, %n, %n) threads in (%n, %n, %n)",
         "launches @m::@none, which is not a kernel of this module|undefined|failed to verify|kernel", ""),
        ("gpu.launch_func @m::@k clusters in (%n, %n, %n) blocks in (%n, %n, %n) threads in (%n, %n, %n)",
         "launches clusters of workgroups, which is refused", "Xe GPUs have none"),
    ],
)  # fmt: skip
def test_host_code_that_is_refused(body, message, note):
    text = f"""module attributes {{gpu.container_module}} {{
      gpu.module @m {{ gpu.func @k() kernel {{ gpu.return }} }}
      func.func @main() {{
        %n = arith.constant 1 : index
        {body}
        return
      }}
    }}"""
    with pytest.raises(xegpu_py.DiagnosticError, match=message if "|" in message else re.escape(message)) as caught:
        xegpu_py.load_program(text).main()
    assert note in str(caught.value)


def test_allocations_with_strides():
    """Of all elements from the first to the last one, with zeros; a memory of its own for each."""
    text = """func.func @main() -> (memref<3x2xf32, strided<[8, 3], offset: 5>>, memref<4xf32>) {
      %a = gpu.alloc() : memref<3x2xf32, strided<[8, 3], offset: 5>>
      %b = gpu.alloc() : memref<4xf32>
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %x = arith.constant 7.0 : f32
      memref.store %x, %a[%c2, %c1] : memref<3x2xf32, strided<[8, 3], offset: 5>>
      return %a, %b : memref<3x2xf32, strided<[8, 3], offset: 5>>, memref<4xf32>
    }"""
    a, b = xegpu_py.load_program(text).main()
    assert a.tolist() == [[0, 0], [0, 0], [0, 7]] and b.tolist() == [0] * 4
