"""`make check` chooses the tests that execute what changed, from the record that `make test` leaves."""

import subprocess
import sys
from pathlib import Path

import check
import numpy as np
import recorder

CODE = """
import os, pathlib, sys
sys.path.insert(0, {test!r})
import recorder
recorder.FILE = pathlib.Path({file!r})
from xegpu_py import layout
from xegpu_py.cache import digest, folder_of
one = recorder.Recorder()
with one.test("a"):
    digest("x")
one.write()
with one.test("a"):
    folder_of("off")
with one.test("b"):
    use = recorder.marks_of_fork()
    if not os.fork():
        use()
        digest("x")
        os._exit(0)
    os.wait()
with one.test("c"):
    pass
one.write()
"""


def test_the_record_has_what_a_test_executes(tmp_path, monkeypatch):
    file = tmp_path / "tests.db"
    code = CODE.format(test=str(Path(recorder.__file__).parent), file=str(file))
    monkeypatch.setenv(recorder.RUN, "one")
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setattr(recorder, "FILE", file)
    numbers, tests = recorder.read()
    # Within one run what a test executes is added up, as by the tools of several RUN lines.
    names = {number: name for name, number in numbers.items()}
    assert {name: {names[n] for n in found} for name, (_, found) in tests.items()} == {
        "a": {"xegpu_py/cache.py:digest", "xegpu_py/cache.py:folder_of"},
        "b": {"xegpu_py/cache.py:digest"},
        "c": set(),
    }
    monkeypatch.setenv(recorder.RUN, "another")
    again = recorder.Recorder()
    monkeypatch.setattr(recorder, "_modules", {"xegpu_py/cache.py": (bytearray(1), ["xegpu_py/cache.py:other"])})
    with again.test("a"):
        recorder._modules["xegpu_py/cache.py"][0][0] = 1
    again.write()
    numbers, tests = recorder.read()
    assert [*tests["a"][1]] == [numbers["xegpu_py/cache.py:other"]]


def test_the_most_specific_tests_come_first(monkeypatch):
    file = "xegpu_py/cache.py"
    functions = {f"{file}:digest": 1, f"{file}:Cache.get": 2, f"{file}:Cache.kept": 3, "xegpu_py/plugins.py:f": 4}
    tests = {"far": (1.0, [1, 4, 4, 4]), "near": (5.0, [1, 2]), "other": (1.0, [2, 3]), "slow": (50.0, [1, 4, 4, 4])}
    read = {name: (seconds, np.array(found, np.uint32)) for name, (seconds, found) in tests.items()}
    monkeypatch.setattr(recorder, "read", lambda: (functions, read))
    text = (check.ROOT / file).read_text().splitlines()

    def lines(start):
        return {next(n for n, line in enumerate(text, 1) if line.startswith(start)) + 1}

    assert check.scopes(file, lines("def digest")) == {"digest"}
    assert check.chosen({file: lines("def digest")}, 20) == (["near", "far"], ["slow"])
    assert check.chosen({file: lines("def digest")}, 0) == (["near", "far", "slow"], [])
    # Of a class that has no record of its own line, the tests of its functions.
    assert check.scopes(file, lines("class Cache")) == {"Cache"}
    assert check.chosen({file: lines("class Cache")}, 0) == (["other", "near"], [])
    # The module's own lines, and functions of which there is no record, are those of all its tests.
    assert check.chosen({file: lines("import hashlib")}, 0)[0] == ["other", "near", "far", "slow"]
    assert check.chosen({file: lines("def versions")}, 0)[0] == ["other", "near", "far", "slow"]


def test_without_a_record_tests_that_name_the_module_are_chosen(monkeypatch):
    monkeypatch.setattr(recorder, "read", lambda: ({}, {}))
    tests, left_out = check.chosen({"passes/xegpu_join_blocks.py": {1}}, 60)
    assert (
        tests[0] == "test/passes/xegpu-join-blocks.mlir" or "xegpu-join-blocks" in (check.ROOT / tests[0]).read_text()
    )
    assert len(tests) <= check.UNRECORDED and left_out == []
    tests, _ = check.chosen({"test/run/gemm.mlir": {1}, "docs/simt.md": {3}, "test/unit/markdown.py": {1}}, 60)
    assert tests[:2] == ["test/run/gemm.mlir", "test/repository/test_pages.py::test_outputs_are_true[docs/simt.md-2]"]
    assert "test/unit/test_examples.py" not in tests and len(tests) > 2
