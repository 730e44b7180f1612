"""Trials on the workers of a Dask cluster: what travels, who may work, limits of time and memory, and what gets lost.

Each worker runs trials in a child process of its own, which a limit or a crash ends without loss of the worker.
Problems travel to a worker once, as a scattered value, and from there once to its child.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
import linecache
import marshal
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from xegpu_py.cache import digest, versions
from xegpu_py.child_process import module_command
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.plugins import MissingExtra

if TYPE_CHECKING:
    from distributed import Client, Future

EXTRA = "{} needs the extra 'tune': pip install 'xegpu-py[tune]'"

LIMIT = 300.0
"""The default limit of a trial, in seconds."""

_POLL = 0.05
"""Seconds between looks at the time and the memory of a child."""

_IDLE = 60.0
"""Seconds without a trial after which a child ends."""

_ATTEMPTS = 3
"""How often a trial is begun if its worker gets lost."""

_PATIENCE = 60.0
"""Seconds for which a scheduler, or the first worker, may be away."""


@contextlib.contextmanager
def needing(purpose: str) -> Iterator[None]:
    """Turn a missing library into a sentence that names the extra which installs it.

    Raises:
        MissingExtra: if an import in its block fails.
    """
    try:
        yield
    except ModuleNotFoundError as e:
        raise MissingExtra(f"{EXTRA.format(purpose)} (there is no '{e.name}')") from None


class WorkerTask(Protocol):
    """The work of a search or launch, which workers run."""

    def run(self, argument: Any) -> Any:
        """The result for an argument; it is pickled."""


# Problems as bytes, with the sources of functions that a worker cannot import.


def packed(problem: WorkerTask) -> bytes:
    """A problem as bytes.

    Functions and kernels of the main program, of notebooks and of functions travel by value, with the text of their
    files, which the compiler of tile kernels reads.
    """
    with needing("a search"):
        import cloudpickle

    sources: dict[str, str] = {}

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, FunctionType) and _by_value(obj):
                file = obj.__code__.co_filename
                sources[file] = "".join(linecache.getlines(file, obj.__globals__))
            elif isinstance(obj, CodeType):
                # cloudpickle leaves out the name of the file. Version 2 of the format has no references, which would
                # depend on other objects of the process.
                return marshal.loads, (marshal.dumps(obj, 2),)
            elif hasattr(obj, "__reduce_by_value__") and not isinstance(obj, type) and _by_value(obj):
                return obj.__reduce_by_value__()
            return super().reducer_override(obj)

    file = io.BytesIO()
    Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(problem)
    return pickle.dumps((sources, file.getvalue()), pickle.HIGHEST_PROTOCOL)


def _by_value(function: Any) -> bool:
    """Whether a function or kernel cannot be imported by its name elsewhere."""
    import cloudpickle

    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    # A decorator may have put another object in its place: the name of an autotuned kernel is the tuner's.
    named: Any = sys.modules.get(str(module))
    for part in name.split("."):
        named = getattr(named, part, None)
    if module == "__main__" or named is not function:
        return True
    return str(module).split(".")[0] in {m.split(".")[0] for m in cloudpickle.list_registry_pickle_by_value()}


def unpacked(data: bytes) -> WorkerTask:
    """The problem of `packed`."""
    sources, inner = pickle.loads(data)
    for file, text in sources.items():
        # Entries without a time are never checked against the file of that name, which may be another one here.
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    return pickle.loads(inner)


# Versions that a worker must have in common with the client.


class Identity(Struct, frozen=True):
    """A process's versions, and its machine.

    Attributes:
        package: xegpu-py's version and the digest of its files.
        python, llvm: the versions of Python, and of LLVM and MLIR.
        host: the machine's name.
        cpu: its processor.
    """

    package: str
    python: str
    llvm: str
    host: str
    cpu: str

    def difference(self, other: Identity) -> str | None:
        """The first difference from the other process that results may depend on, as a clause; None if there is none.

        Processors may differ: results do not depend on them.
        """
        for part in ("package", "python", "llvm"):
            own, theirs = getattr(self, part), getattr(other, part)
            if own != theirs:
                name = "xegpu-py" if part == "package" else part
                return f"it has {name} {theirs}, but this process has {own}"
        return None


@functools.lru_cache(1)
def identity() -> Identity:
    """This process's identity: that of its files when it was first asked."""
    package = sys.modules["xegpu_py"]
    roots = {*package.__path__, *(p for m in ("dialects", "passes") for p in sys.modules[f"xegpu_py.{m}"].__path__)}
    digest = hashlib.sha256()
    names = sorted(
        {(file.relative_to(root).as_posix(), file) for root in map(Path, roots) for file in root.rglob("*.py")}
    )
    for name, file in names:
        digest.update(name.encode() + b"\0" + file.read_bytes())
    from importlib.metadata import version

    python = platform.python_version()
    return Identity(
        f"{version('xegpu-py')} ({digest.hexdigest()[:12]})",
        ".".join(python.split(".")[:2]),
        versions(),
        platform.node(),
        _processor(),
    )


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


# The child process of a worker.


class TrialLimits(Struct, frozen=True):
    """The limits of a trial.

    Attributes:
        seconds: from its start in the child.
        memory: bytes of the child; None for its share of 80 % of the machine's memory.
    """

    seconds: float = LIMIT
    memory: int | None = None


class ChildEnded(Exception):
    """A child ended, or was ended. The argument says why, as a clause."""


class Child:
    """A process that runs one trial at a time."""

    def __init__(self, share: tuple[int, int]) -> None:
        """Start it.

        Args:
            share: its number, and the number of children of the machine, among which the processors are divided.

        Raises:
            ChildEnded: if it does not start.
        """
        self._own, childs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        words = module_command("xegpu_py.extensions.tuning.cluster", str(childs.fileno()))
        self._process = subprocess.Popen(
            words, pass_fds=[childs.fileno()], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        childs.close()
        self._problems: set[str] = set()
        # The limits of a trial do not hold for the start.
        self._ask((sys.path, share), TrialLimits(_PATIENCE))

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet: idle children end by themselves."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def run(self, key: str, problem: bytes, argument: Any, limits: TrialLimits) -> tuple[str, Any]:
        """Run a problem: ("done", the result), or ("failed", a message).

        Raises:
            ChildEnded: if it crashed or exceeded a limit.
        """
        if key not in self._problems:
            answer: tuple[str, Any] = self._ask(("problem", key, problem), limits)
            if answer[0] != "done":
                return "failed", f"the worker cannot read the problem: {answer[1]}"
            self._problems.add(key)
        return self._ask(("run", key, argument), limits)

    def _ask(self, message: tuple[Any, ...], limits: TrialLimits) -> Any:
        import psutil

        try:
            self._own.send(message)
            begun = time.monotonic()
            process = psutil.Process(self.pid)
            while not self._own.poll(_POLL):
                if time.monotonic() - begun > limits.seconds:
                    raise self.end(f"it exceeded the limit of {limits.seconds:g} s")
                if limits.memory and process.memory_info().rss > limits.memory:
                    raise self.end(f"it exceeded the limit of {limits.memory / 2**20:.0f} MiB of memory")
            return self._own.recv()
        except (EOFError, OSError, psutil.Error):
            raise self.end("") from None

    def end(self, why: str) -> ChildEnded:
        """End the process; gives the error that says why."""
        crashed = not why
        if crashed:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
        self._process.kill()
        status = self._process.wait()
        self._own.close()
        if crashed:
            self._log.seek(0)
            last_lines = self._log.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            why = f"its process ended with {f'signal {-status}' if status < 0 else f'status {status}'}"
            why += f": {last_lines[0]}" if last_lines else ""
        self._log.close()
        return ChildEnded(why)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def child_main(pipe: Connection) -> None:
    """Run problems that a worker sends, until it ends."""
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()
    path, (number, count) = pipe.recv()
    sys.path[:] = path
    with contextlib.suppress(AttributeError, OSError):
        mine = sorted(os.sched_getaffinity(0))
        each = max(1, len(mine) // count)
        os.sched_setaffinity(0, mine[number * each % len(mine) :][:each])
    pipe.send(None)
    problems: dict[str, WorkerTask] = {}
    while pipe.poll(_IDLE):
        try:
            kind, key, payload = pipe.recv()
        except EOFError:
            return
        try:
            if kind == "problem":
                problems[key] = unpacked(payload)
                reply: tuple[str, Any] = ("done", None)
            else:
                reply = ("done", problems[key].run(payload))
        except Exception as e:
            reply = ("failed", _sentence(e))
        try:
            pipe.send(reply)
        except (TypeError, AttributeError, pickle.PicklingError) as e:
            pipe.send(("failed", f"its result cannot be sent: {e}"))


def _sentence(error: Exception) -> str:
    if isinstance(error, DiagnosticError):
        return str(error)
    where = traceback.extract_tb(error.__traceback__)[-1:]
    at = f" ({where[0].filename}:{where[0].lineno})" if where else ""
    return f"{type(error).__name__}: {error}{at}"


# On a worker.

_CHILDREN: dict[str, list[Child]] = {}
_LOCK = threading.Lock()


class TrialReport(Struct):
    """Outcome of a trial.

    Attributes:
        state: "done", "failed", "ended" (a limit, or a crash), or "lost" (with its worker).
        result: the result, or a message.
        seconds: its time on the worker.
        host: the machine.
        cpu: its processor.
        worker: the address of the worker.
    """

    state: str
    result: Any = None
    seconds: float = 0.0
    host: str = ""
    cpu: str = ""
    worker: str = ""


def on_worker(
    problem: bytes, key: str, argument: Any, limits: TrialLimits, shares: Mapping[str, tuple[int, int]]
) -> TrialReport:
    """Run a trial in a child of this worker; see `Cluster.submit`."""
    import psutil
    from distributed import get_worker

    address = get_worker().address
    share = shares.get(address, (0, 1))
    if limits.memory is None:
        limits = TrialLimits(limits.seconds, int(psutil.virtual_memory().total * 0.8 / share[1]))
    with _LOCK:
        idle = _CHILDREN.setdefault(address, [])
        child = idle.pop() if idle else None
    begun = time.monotonic()
    try:
        if child is None or not child.is_alive:
            child = Child(share)
        state, result = child.run(key, problem, argument, limits)
        with _LOCK:
            idle.append(child)
    except ChildEnded as e:
        state, result = "ended", str(e)
    return TrialReport(state, result, time.monotonic() - begun, platform.node(), _processor(), address)


def end_children(addresses: Sequence[str]) -> None:
    """End the idle children of workers of this process."""
    with _LOCK:
        for address in addresses:
            for child in _CHILDREN.pop(address, ()):
                child.end("the search ended")


# The client's side.


class _Job(Struct, dict=True):
    token: Any
    key: str
    argument: Any
    limits: TrialLimits
    workers: frozenset[str]
    attempts: int = 1
    future: Any = None


def _own_cluster(workers: int) -> Any:
    """A scheduler and its workers, which are threads of this process and answer nobody else.

    Dask starts a server of pages for the scheduler and for each worker. These have no pages, and listen on the loopback
    interface only; `LocalCluster` would let them listen on all interfaces.
    """
    import dask
    from distributed import Scheduler, SpecCluster, Worker

    pages = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    options = {"protocol": "inproc://", **pages}
    worker = {"cls": Worker, "options": {"nthreads": 1, "memory_limit": 0, "silence_logs": 50, **options}}
    with dask.config.set({"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}):
        return SpecCluster(
            scheduler={"cls": Scheduler, "options": options},
            workers=dict.fromkeys(range(workers), worker),
            silence_logs=50,
        )


class Cluster(Struct, dict=True):
    """The workers of a cluster, as long as a `with` block lasts.

    Attributes:
        scheduler: None for a cluster of this machine's processors, the address of a scheduler, or a client.
        workers: the number of workers of a cluster of this machine; by default one for each processor.
        refused: the sentences about workers that may not work, by their addresses.
    """

    scheduler: Client | str | None = None
    workers: int | None = None
    refused: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Cluster:
        with needing("a search"):
            import distributed  # noqa: F401
            import psutil  # noqa: F401

        self._own = identity()
        self._stack = contextlib.ExitStack()
        self._allowed: dict[str, int] = {}
        self._shares: dict[str, tuple[int, int]] = {}
        self._problems: dict[str, bytes] = {}
        self._scattered: dict[str, Future] = {}
        self._jobs: dict[Any, _Job] = {}
        self._looked = 0.0
        self._ended = threading.Event()
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        for job in self._jobs.values():
            with contextlib.suppress(Exception):
                job.future.cancel()
        if self.scheduler is None:
            end_children(list(self._allowed))
        self._stack.close()

    def _connect(self) -> None:
        from distributed import Client

        if isinstance(self.scheduler, Client):
            self.client = self.scheduler
        elif self.scheduler is None:
            processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
            cluster = _own_cluster(self.workers or processors or 1)
            self._stack.callback(cluster.close, timeout=5)
            self.client = self._stack.enter_context(Client(cluster, set_as_default=False))
        elif not isinstance(self.scheduler, str):
            raise TypeError(f"'scheduler' must be the address of a scheduler or a Client, but got {self.scheduler!r}")
        else:
            try:
                self.client = Client(self.scheduler, timeout=10, set_as_default=False)
            except (OSError, TimeoutError) as e:
                raise ConnectionError(f"there is no scheduler at {self.scheduler}: {e}") from None
            except ValueError as e:
                raise ValueError(f"'scheduler' must be an address such as tcp://host:8786: {e}") from None
            self._stack.callback(self._leave, self.client)
        self._look(wait=True)

    @staticmethod
    def _leave(client: Client) -> None:
        with contextlib.suppress(Exception):
            client.close(timeout=2)

    @property
    def capacity(self) -> int:
        """How many trials run at once."""
        return sum(self._allowed.values())

    def _look(self, wait: bool = False) -> None:
        """See which workers there are; those that are new must have this process's versions.

        Raises:
            RuntimeError: if none may work, and none comes for a while.
        """
        end = time.monotonic() + _PATIENCE
        while True:
            there = self.client.scheduler_info(n_workers=-1)["workers"]
            new = [a for a in there if a not in self._allowed and a not in self.refused]
            answers = self.client.run(identity, workers=new, on_error="return") if new else {}
            for address, answer in answers.items():
                clause = (
                    f"it cannot say its version: {answer}"
                    if isinstance(answer, BaseException)
                    else self._own.difference(answer)
                )
                if clause:
                    self.refused[address] = f"worker {address} is refused: {clause}"
                    warnings.warn(self.refused[address], stacklevel=2)
            self._allowed = {
                a: there[a]["nthreads"] for a in there if a not in self.refused and a in {*answers, *self._allowed}
            }
            if self._allowed or not wait:
                break
            if self.refused or time.monotonic() > end:
                why = "; ".join(self.refused.values()) or f"none came in {_PATIENCE:g} s"
                raise RuntimeError(f"there is no worker for trials: {why}")
            time.sleep(0.2)
        hosts: dict[str, list[str]] = {}
        for address in sorted(self._allowed):
            hosts.setdefault(there[address]["host"], []).append(address)
        self._shares = {a: (i, len(same)) for same in hosts.values() for i, a in enumerate(same)}
        self._looked = time.monotonic()

    def load(self, problem: WorkerTask) -> str:
        """Make a problem known to the workers; gives its key."""
        data = packed(problem)
        key = hashlib.sha256(data).hexdigest()
        self._problems[key] = data
        return key

    def submit(self, token: Any, key: str, argument: Any, limits: TrialLimits) -> None:
        """Let a worker run a problem.

        Args:
            token: by which `finished` tells it.
        """
        self._start(_Job(token, key, argument, limits, frozenset()))

    def _start(self, job: _Job) -> None:
        """Begin a job; without a future if the scheduler is away, which `finished` sees to."""
        self._jobs[job.token], job.future = job, None
        with contextlib.suppress(*_AWAY):
            if job.key not in self._scattered or self._scattered[job.key].status != "finished":
                self._scattered[job.key] = self.client.scatter(self._problems[job.key], broadcast=True, hash=False)
            job.workers = frozenset(self._allowed)
            name = f"trial-{digest(job.key, repr(job.token))[:12]}-{next(_NUMBERS)}"
            job.future = self.client.submit(
                on_worker, self._scattered[job.key], job.key, job.argument, job.limits, self._shares,
                key=name, pure=False, workers=list(job.workers), allow_other_workers=False,
            )  # fmt: skip
            job.future.add_done_callback(lambda _: self._ended.set())

    def map(
        self, problem: WorkerTask, arguments: Iterable[Any], limits: TrialLimits
    ) -> Iterator[tuple[int, TrialReport]]:
        """Run a problem for each argument; gives its number and what became of it, as each one ends."""
        key, pending, running = self.load(problem), iter(enumerate(arguments)), 0
        while True:
            # As many as run at once wait on the workers, so that none is idle while results travel.
            for number, argument in itertools.islice(pending, max(2 * self.capacity - running, 0)):
                self.submit(number, key, argument, limits)
                running += 1
            if not running:
                return
            for number, report in self.finished():
                running -= 1
                yield number, report

    def finished(self, timeout: float = 0.5) -> Iterator[tuple[Any, TrialReport]]:
        """The trials that ended; waits for the first one for some seconds.

        Raises:
            ConnectionError: if the scheduler is away for longer than a minute.
        """
        try:
            if self._jobs and not any(j.future is None or j.future.done() for j in self._jobs.values()):
                self._ended.wait(timeout)
            self._ended.clear()
            if self.client.status != "running" or any(j.future is None for j in self._jobs.values()):
                raise ConnectionError(f"the scheduler at {self.client.scheduler.address} is away")
            if time.monotonic() - self._looked > 1:
                self._look()
                if not self._allowed:
                    self._look(wait=True)
        except _AWAY as e:
            if not isinstance(self.scheduler, str) or "no worker for trials" in str(e):
                raise
            self._again()
            return
        for job in list(self._jobs.values()):
            if job.future.done():
                del self._jobs[job.token]
                report = self._report(job)
                if report:
                    yield job.token, report
            elif not job.workers & self._allowed.keys():
                job.future.cancel()
                self._retry(job, "its worker left")

    def _report(self, job: _Job) -> TrialReport | None:
        """Outcome of a job; None if it starts again."""
        from distributed import KilledWorker

        future, self_lost = job.future, False
        if future.status == "finished":
            report: TrialReport = future.result()
            crashed = report.state == "ended" and "signal 9" in str(report.result)
            if not crashed or job.attempts >= 2:
                return report
            # The system, or a user, ended the child: one more attempt shows whether the trial is the reason.
            return self._retry(job, str(report.result))
        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                return TrialReport("ended", f"its workers ended: {error}")
            self_lost = "scattered" in str(error) or type(error).__name__.startswith("Future")
            if not self_lost:
                return TrialReport("failed", f"{type(error).__name__}: {error}")
        return self._retry(job, "its worker was lost")

    def _retry(self, job: _Job, why: str) -> TrialReport | None:
        if job.attempts >= _ATTEMPTS:
            self._jobs.pop(job.token, None)
            return TrialReport("ended", f"{why}, {job.attempts} times")
        job.attempts += 1
        self._start(job)
        return None

    def _again(self) -> None:
        """Connect to a scheduler that was away, and begin all trials again that ran.

        Raises:
            ConnectionError: if it is away for longer than `_PATIENCE`.
        """
        warnings.warn(f"the scheduler at {self.scheduler} is away; waiting for it", stacklevel=2)
        self._leave(self.client)
        end = time.monotonic() + _PATIENCE
        while True:
            self._allowed, self._scattered = {}, {}
            try:
                self._connect()
                break
            except _AWAY:
                if time.monotonic() > end:
                    raise
                time.sleep(1)
        for job in list(self._jobs.values()):
            self._start(job)


_AWAY = (OSError, RuntimeError)
"""Errors of Dask's calls if the scheduler is away."""

_NUMBERS = itertools.count()

if __name__ == "__main__":
    child_main(Connection(int(sys.argv[1])))
