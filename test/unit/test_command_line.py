"""Tools in environments that lit does not have: terminals, shells' completion, closed streams, other locales."""

import argparse
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import forked_tools
import pytest
from markdown import ROOT

from xegpu_py import __main__ as report
from xegpu_py import external_tools
from xegpu_py.tools import driver, xegpu_opt, xegpu_run

TOOLS = Path(sys.executable).parent


def forked(tool):
    """A program that runs a tool in a fork of a process which has imported it, if there is such a process."""
    return (forked_tools.folder() if tool in forked_tools.TOOLS else TOOLS) / tool


def completions(line, tmp_path):
    out = tmp_path / "completions"
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([forked(line.split()[0])], env={**os.environ, **environment}, check=True)
    return {word.rstrip() for word in out.read_text().splitlines()}


def test_help_of_xegpu_run_has_each_option_in_a_group():
    parser = xegpu_run.argument_parser()
    groups = {group.title: group._group_actions for group in parser._action_groups}
    shown = [option for actions in groups.values() for action in actions for option in action.option_strings]
    assert sorted(shown) == sorted(option for action in parser._actions for option in action.option_strings)
    general = {option for action in groups["options"] for option in action.option_strings}
    assert general == {"-h", "--help", "--version", "--color", "--diagnostics-format"}
    assert list(groups)[2:] == [*xegpu_run._GROUPS]
    assert all(groups.values())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("xegpu-opt --xegpu-leg", {"--xegpu-legalize"}),
        ("xegpu-opt --mlir-tim", {"--mlir-timing"}),
        ("xegpu-opt --help-pass=xegpu-em", {"--help-pass=xegpu-emulate-narrow-types"}),
        ("xegpu-opt --mlir-print-ir-after xegpu-leg", {"xegpu-legalize"}),
        ("xegpu-opt --xegpu-dce=", {"--xegpu-dce=keep-loads="}),
        ("xegpu-run kernel.mlir --engine ", {"jit", "interpreter", "both", "reference"}),
        ("xegpu-translate --mlir-to-g", {"--mlir-to-gen"}),
        ("xegpu-bisect --load", {"--load-ahead", "--load-pass-plugin"}),
        ("xegpu-tune --samp", {"--sampler"}),
        ("xegpu-viz --sub", {"--subgroups"}),
    ],
)
def test_completion(line, expected, tmp_path):
    assert completions(line, tmp_path) == expected


def test_a_file_is_completed_after_a_pass(tmp_path, monkeypatch):
    (tmp_path / "kernel.mlir").touch()
    monkeypatch.chdir(tmp_path)
    assert completions("xegpu-opt --xegpu-dce ker", tmp_path) == {"kernel.mlir"}


def test_files_and_options_with_spaces():
    """The options of a pass have spaces between them, and so may the name of a file."""
    args, flags = xegpu_opt._parse(xegpu_opt.argument_parser(), ["my file.mlir", "--xegpu-x=a=1 b=2", "-o", "x y"])
    assert (args.file, args.output, flags) == ("my file.mlir", "x y", ["--xegpu-x=a=1 b=2"])


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


@pytest.mark.parametrize("tool", ["opt", "translate", "run", "bisect", "viz", "lsp"])
def test_help_fits_80_columns(tool):
    found = at_a_terminal(forked(f"xegpu-{tool}"), "--help", COLUMNS="80")
    assert found.index("examples:") < found.index("options:")
    assert [line for line in found.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("columns", [40, 61, 120])
def test_descriptions_fit_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    for letters in range(1, 8):
        text = driver.Parser("tool", "", "x" * letters + " y" * columns, []).description.partition("\n\nexamples")[0]
        assert max(map(len, text.splitlines())) in (columns - 3, columns - 2)


def test_ir_is_coloured_at_a_terminal_alone():
    command = (forked("xegpu-opt"), "gemm.mlir")
    coloured = at_a_terminal(*command)
    assert "\x1b[36mgpu.module\x1b" in coloured
    assert not re.search(r"\x1b\[\d+m\s", coloured), "spaces have no colour"
    assert "\x1b" not in at_a_terminal(*command, NO_COLOR="1")
    assert "\x1b" not in at_a_terminal(*command, "--color=never")
    assert "\x1b" not in at_a_terminal(*command, TERM="dumb")


def test_no_binary_is_written_to_a_terminal(tmp_path):
    (tmp_path / "bad.mlir").write_text("no module")
    command = (forked("xegpu-translate"), "--mlir-to-zebin", str(tmp_path / "bad.mlir"))
    assert "error: --mlir-to-zebin makes a binary file; -o names it" in at_a_terminal(*command)
    for named in (
        at_a_terminal(*command, "-o", str(tmp_path / "binary"), NO_COLOR="1"),
        in_shell(" ".join(map(str, command))),
    ):
        assert "-o names it" not in str(named) and "bad.mlir:1:1: error" in str(named)


def test_run_ends_with_a_summary_at_a_terminal():
    arrays = ("rand:bf16:1024x1024", "rand:bf16:1024x1024", "zeros:f32:1024x1024")
    command = (forked("xegpu-run"), "gemm.mlir", *arrays, "--grid", "2,2")
    out = at_a_terminal(*command)
    assert "gemm: 4 hardware threads in " in out
    assert " s on the jit engine, " in out and "GFLOP/s in dpas" in out
    assert "; --print C prints an array" in out
    assert "prints an array" not in at_a_terminal(*command, "--print", "C")
    ran = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=True)
    assert ran.stdout + ran.stderr == ""


def test_the_report_for_bugs_names_what_matters():
    out = subprocess.run([sys.executable, "-m", "xegpu_py"], capture_output=True, text=True, check=True).stdout
    found = dict(line.split(": ", 1) for line in out.splitlines())
    assert {"xegpu-py", "Python", "MLIR bindings", "native code", "cache", "engines", "targets"} <= set(found)
    assert "mlir" in found["MLIR bindings"].lower() and "LLVM" in found["native code"]
    assert any(name.startswith("GenX_IR") for name in found)


def test_one_variable_hides_the_programs_of_others(monkeypatch, tmp_path):
    for name in external_tools.ORACLES:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(external_tools.VARIABLE, raising=False)
    assert all(external_tools.find(name) for name in external_tools.ORACLES)
    monkeypatch.setenv(external_tools.VARIABLE, "off")
    assert not any(external_tools.find(name) for name in external_tools.ORACLES)
    assert sum(name.endswith(")") and text == "not found" for name, text in report.rows()) == len(
        external_tools.ORACLES
    )


def in_shell(line, **environment):
    """The exit status and standard error of a line of shell, with the tools on the path."""
    env = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}", **environment}
    done = subprocess.run(["bash", "-c", line], env=env, cwd=ROOT / "examples", capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("set -o pipefail; xegpu-opt gemm.mlir | true", 1, ""),
        ("set -o pipefail; python -m xegpu_py | true", 1, ""),
        ("xegpu-opt gemm.mlir >&-", 1, "error: cannot write to standard output: Bad file descriptor\n"),
        ("xegpu-opt gemm.mlir >/dev/full", 1, "error: cannot write to standard output: No space left on device\n"),
        ("xegpu-opt - <&-", 2, "xegpu-opt: error: cannot open input file '-': Bad file descriptor\n"),
        ("xegpu-opt missing.mlir 2>&-", 2, ""),
        ("xegpu-opt $'\\xff.mlir'", 2, r"error: argument '\udcff.mlir' is not valid UTF-8" + "\n"),
        ("python -m xegpu_py fast", 2, "python -m xegpu_py: error: unrecognized arguments: fast\n"),
        ("xegpu-lsp --tcp 99999", 2, "xegpu-lsp: error: cannot listen on port 99999: bind(): port must be 0-65535.\n"),
    ],
)
def test_errors_of_streams_and_arguments_are_one_line(line, status, message):
    assert in_shell(line) == (status, message)


@pytest.mark.parametrize(
    ("convert", "text", "value"),
    [
        (driver.positive, "1", 1),
        (driver.positive, "250", 250),
        (driver.dimensions, "4", (4,)),
        (driver.dimensions, "1,2,3", (1, 2, 3)),
        *((driver.positive, text, "is not a positive number") for text in ("0", "-1", "", "x", "1.5", "1_0", "4,4")),
        *(
            (driver.dimensions, text, "is not one to three positive numbers, such as 4,4,1")
            for text in ("0", "4,0", "1,2,3,4", "", "4,", "x,1", "1.5", "-4,4,1")
        ),
    ],
)
def test_numbers_of_options(convert, text, value):
    if not isinstance(value, str):
        assert convert(text) == value
        return
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        convert(text)
    assert str(refused.value) == f"'{text}' {value}"


def test_text_is_utf8_in_every_locale():
    assembly = '.version 3.8\n.kernel "kä"\nret (M1, 1)\n'
    line = f"printf '{assembly}' | xegpu-translate --visaasm-to-mlir | grep -q 'k.C3.A4' && xegpu-opt größe.mlir"
    expected = (2, "xegpu-opt: error: cannot open input file 'größe.mlir': No such file or directory\n")
    assert in_shell(line, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0") == expected


def test_a_cache_that_cannot_be_written_is_a_warning():
    kernel = "../test/tools/xegpu-run/Inputs/add.visaasm"
    status, error = in_shell(
        f"xegpu-run {kernel} zeros:f32:16 zeros:f32:16 i32:16 --grid 1", XEGPU_PY_CACHE="/dev/null"
    )
    assert (status, error.count("\n")) == (0, 1)
    assert error.startswith("warning: cannot write to the cache in '/dev/null': File exists; compiled kernels are not")
