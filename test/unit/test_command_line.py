"""What lit cannot see of the tools: terminals and shells' completion."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from markdown import ROOT

TOOLS = Path(sys.executable).parent


def completions(line, tmp_path):
    out = tmp_path / "completions"
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([TOOLS / line.split()[0]], env={**os.environ, **environment}, check=True)
    return {word.rstrip() for word in out.read_text().splitlines()}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("xegpu-opt --xegpu-leg", {"--xegpu-legalize"}),
        ("xegpu-opt --mlir-tim", {"--mlir-timing"}),
        ("xegpu-run kernel.mlir --engine ", {"jit", "interpreter", "both", "reference"}),
        ("xegpu-translate --mlir-to-g", {"--mlir-to-gen"}),
        ("xegpu-bisect --load", {"--load-ahead"}),
        ("xegpu-viz --sub", {"--subgroups"}),
    ],
)
def test_completion(line, expected, tmp_path):
    assert completions(line, tmp_path) == expected


def at_a_terminal(*command, **environment):
    """What a command prints at a terminal."""
    reader, writer = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | environment
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, env=env, cwd=ROOT / "examples"
    )
    os.close(writer)
    out = b""
    while True:
        try:
            data = os.read(reader, 4096)
        except OSError:  # Linux's answer once the other side is closed.
            break
        if not data:
            break
        out += data
    os.close(reader)
    process.wait()
    return out.decode().replace("\r\n", "\n")


def test_ir_is_coloured_at_a_terminal_alone():
    command = (TOOLS / "xegpu-opt", "gemm.mlir")
    assert "\x1b[36mgpu.module\x1b" in at_a_terminal(*command)
    assert "\x1b" not in at_a_terminal(*command, NO_COLOR="1")
    assert "\x1b" not in at_a_terminal(*command, "--color=never")
    assert "\x1b" not in at_a_terminal(*command, TERM="dumb")


def test_run_ends_with_a_summary_at_a_terminal():
    arrays = ("rand:bf16:1024x1024", "rand:bf16:1024x1024", "zeros:f32:1024x1024")
    command = (TOOLS / "xegpu-run", "gemm.mlir", *arrays, "--grid", "2,2")
    out = at_a_terminal(*command)
    assert "gemm: 4 hardware threads in " in out
    assert " s on the jit engine, " in out and "GFLOP/s in dpas" in out
    ran = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=True)
    assert ran.stdout + ran.stderr == ""


def test_the_report_for_bugs_names_what_matters():
    out = subprocess.run([sys.executable, "-m", "xegpu_py"], capture_output=True, text=True, check=True).stdout
    found = dict(line.split(": ", 1) for line in out.splitlines())
    assert {"xegpu-py", "Python", "MLIR bindings", "native code", "cache", "engines", "targets"} <= set(found)
    assert "mlir" in found["MLIR bindings"].lower() and "LLVM" in found["native code"]
    assert any(name.startswith("GenX_IR") for name in found)
