"""Faults of searches, with real processes: workers and schedulers that die, other versions, full disks."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from pathlib import Path

import numpy as np
import pytest
from effort import SHARE

import xegpu_py
from xegpu_py.extensions.tuning.space import Space

heavy = pytest.mark.skipif(SHARE < 1, reason="only `make sweep` starts clusters of processes")


def listening(process):
    """The addresses at which a process and its children accept connections."""
    found = (c for p in (process, *process.children(recursive=True)) for c in p.net_connections(kind="inet"))
    return {c.laddr for c in found if c.status == "LISTEN"}


def test_a_cluster_of_this_machine_answers_nobody_else():
    pytest.importorskip("distributed", reason="the extra 'tune' is not installed")
    import psutil

    from xegpu_py.extensions.tuning.cluster import Cluster

    this = psutil.Process()
    before = listening(this)
    with Cluster(None, 2) as cluster:
        assert cluster.capacity == 2
        new = listening(this) - before
        assert {address.ip for address in new} <= {"127.0.0.1", "::1"}
        for address in new:
            for page in ("status", "info/main/workers.html", "json/identity.json", "metrics"):
                with pytest.raises(urllib.error.HTTPError, match="404"):
                    urllib.request.urlopen(f"http://127.0.0.1:{address.port}/{page}", timeout=5)


def launch(number, marker=""):
    """A launch that takes a while; one of them ends its worker, the first time."""

    def run(y):
        if marker and number == 3 and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(0.2)
        y[:] = 1

    return run


def numbers(count):
    return Space({"number": range(count)})


class Processes:
    """A scheduler and workers, one process each."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.running = []

    def start(self, *words, **environment):
        command = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]]
        # Workers import this file by the path of the tests.
        path = os.pathsep.join([environment.pop("PYTHONPATH", ""), *sys.path]).strip(os.pathsep)
        env = {**os.environ, "PYTHONPATH": path, **environment}
        # With -m, Python looks for modules in the current folder first, which may have this package.
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.running.append(subprocess.Popen(command, env=env, cwd=Path(sys.executable).parent, **streams))
        return self.running[-1]

    def scheduler(self):
        return self.start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")

    def worker(self, **environment):
        return self.start("dask_worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard", **environment)

    def end(self):
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()


@pytest.fixture
def processes():
    pytest.importorskip("optuna", reason="the extra 'tune' is not installed")
    pytest.importorskip("distributed", reason="the extra 'tune' is not installed")
    found = Processes()
    found.scheduler()
    yield found
    found.end()


def search(processes, make, count, **options):
    y = np.zeros(4, np.int32)
    options = {"scheduler": processes.address, "sampler": "grid", "budget": count, "limit": 60.0, **options}
    return xegpu_py.tune(make, numbers(count), (y,), lambda run: 1.0, **options)


@heavy
def test_a_worker_that_is_killed_loses_no_trial(processes, tmp_path):
    workers = [processes.worker(), processes.worker()]
    marker = str(tmp_path / "killed")
    found = search(processes, lambda number: launch(number, marker), 8)
    assert os.path.exists(marker) and sum(w.poll() is not None for w in workers) == 1
    assert [t.state for t in found.trials] == ["done"] * 8


@heavy
def test_a_scheduler_that_is_started_again_loses_no_trial(processes, tmp_path):
    first = [processes.running[0], processes.worker()]

    def again(trial):
        if len(ended) == 2:
            for process in first:
                process.kill()
                process.wait()
            processes.scheduler()
            processes.worker()
        ended.append(trial)

    ended = []
    with pytest.warns(UserWarning, match="the scheduler at tcp://.* is away; waiting for it"):
        found = search(processes, launch, 6, each=again, journal=tmp_path / "journal.db")
    assert sorted(t.configuration["number"] for t in found.done) == list(range(6)) and len(ended) == 6


@heavy
def test_a_worker_with_another_version_is_refused(processes, tmp_path):
    package = Path(xegpu_py.__file__).parent
    shutil.copytree(package, tmp_path / "xegpu_py", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "xegpu_py/extensions/profile/gpus.py").open("a") as file:
        file.write("# Another version.\n")
    processes.worker(PYTHONPATH=str(tmp_path))
    with (
        pytest.warns(UserWarning, match=r"worker tcp://.* is refused: it has xegpu-py .*, but this process has"),
        pytest.raises(RuntimeError, match="there is no worker for trials: worker tcp://.* is refused"),
    ):
        search(processes, launch, 2)
    processes.worker()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        deadline = time.monotonic() + 60
        while True:
            try:
                found = search(processes, launch, 2)
                break
            except RuntimeError:
                assert time.monotonic() < deadline, "the second worker does not come"
    assert len(found.done) == 2 and len(found.refused) == 1


def quick(number):
    return lambda y: None


def test_a_full_disk_at_the_journal_loses_no_trial(client, tmp_path):
    """The system refuses to make files larger, as it does where a disk is full."""
    path = tmp_path / "journal.db"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(trial):
        if trial.number == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, before[1]))

    y = np.zeros(4, np.int32)
    options = {"scheduler": client, "sampler": "grid", "budget": 40, "journal": path}
    try:
        with pytest.warns(UserWarning, match=r"the journal '.*' cannot be written: .*; the search goes on"):
            found = xegpu_py.tune(quick, numbers(40), (y,), lambda run: 1.0, each=fill, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sorted(t.configuration["number"] for t in found.done) == list(range(40))
    # What the journal has is read again, and the rest is tried.
    again = xegpu_py.tune(quick, numbers(40), (y,), lambda run: 1.0, **options)
    assert len(again.done) == 40 and len({t.number for t in again.trials}) == 40
