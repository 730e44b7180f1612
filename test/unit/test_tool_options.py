"""Options of tools that exclude or need each other: each pair that is refused, and others that are not."""

import sys
from importlib.util import find_spec

import pytest

from xegpu_py.layout import LayoutError
from xegpu_py.tools import driver, xegpu_bisect, xegpu_opt, xegpu_run, xegpu_viz

NOTHING = "cannot open input file"
"""The error of a command whose options go together, as its file is missing."""

PROFILE = "--profile counts what a lowered kernel does, without --check and --trace"
FIDELITY = "--fidelity compares runs of a lowered kernel, without --check, --trace and --profile"
JSON = "--json is the form of --stats, --fidelity and --targets, none of which is given"
SCHEDULES = "--schedules runs other orders of threads for --check=races, which is not given"
STATS, CHECK = (f"--{name} needs a lowered kernel; --engine=reference lowers none" for name in ("stats", "check"))
TARGETS = "is for one target; --targets judges a kernel on several"
PAGE = NOTHING if find_spec("bokeh") else "--profile FILE.html needs 'bokeh'"
MLIR, OPENCL = "is for MLIR and vISA assembly", "is for OpenCL kernels: files .cl, .spv and .bin"

LINES = [
    ("--trace", NOTHING), ("--trace --engine=interpreter", NOTHING),
    ("--trace --engine=jit", "only the interpreter can trace, not --engine=jit"),
    ("--trace --engine=reference", "only the interpreter can trace, not --engine=reference"),
    ("--profile p.json", NOTHING), ("--profile p.json --engine=jit", NOTHING),
    ("--profile p.json --engine=reference", PROFILE), ("--profile p.json --trace", PROFILE),
    ("--profile p.json --check=memory", PROFILE), ("--engine=reference", NOTHING),
    ("--stats", NOTHING), ("--stats --engine=jit", NOTHING), ("--stats --engine=reference", STATS),
    ("--check=memory --engine=reference", NOTHING), ("--check=races --engine=reference", CHECK),
    ("--check=all --engine=reference", CHECK), ("--check=races --engine=jit", NOTHING),
    ("--fidelity", NOTHING), ("--fidelity --engine=jit", NOTHING), ("--fidelity --engine=reference", FIDELITY),
    ("--fidelity --trace", FIDELITY), ("--fidelity --check=memory", FIDELITY),
    ("--fidelity --profile p.json", FIDELITY),
    ("--json", JSON), ("--json --stats", NOTHING), ("--json --fidelity", NOTHING), ("--json --targets=pvc", NOTHING),
    ("--schedules=2", SCHEDULES), ("--schedules=2 --check=memory", SCHEDULES),
    ("--schedules=2 --check=races", NOTHING),
    ("--targets=pvc", NOTHING), ("--targets=pvc --engine=jit", NOTHING), ("--targets=pvc --profile p.html", PAGE),
    *((f"--targets=pvc {option}", f"{option} {TARGETS}") for option in ("--engine=reference", "--trace", "--fidelity")),
    ("--targets=pvc --entry main", f"--entry {TARGETS}"), ("--targets=pvc --stats", f"--stats {TARGETS}"),
    ("--targets=pvc --print 0", f"--print {TARGETS}"), ("--targets=pvc -o 0=x.npy", f"-o {TARGETS}"),
    ("--targets=pvc --profile p.json", f"--profile FILE.json {TARGETS}"),
    ("--targets=pvc --ocloc a --ocloc b", f"a second --ocloc or --build-options {TARGETS}"),
    ("--grid 4 --block 16 --import-upstream", NOTHING), ("--via=upstream", NOTHING), ("--level=lane", NOTHING),
    ("--global 64", f"--global {OPENCL}"), ("--local 64", f"--local {OPENCL}"), ("--ocloc x", f"--ocloc {OPENCL}"),
    ("--build-options=-DN", f"--build-options {OPENCL}"),
]  # fmt: skip

OPENCL_LINES = [
    ("--global 64 --local 64", NOTHING), ("", "an OpenCL kernel needs --global, the number of its work items"),
    ("--grid 4", f"--grid {MLIR}; OpenCL kernels have --global and --local"),
    ("--block 4", f"--block {MLIR}; OpenCL kernels have --global and --local"),
    ("--entry main", f"--entry {MLIR}"), ("--allow-native", f"--allow-native {MLIR}"),
    ("--via=upstream", f"--via {MLIR}"),
    ("--import-upstream", f"--import-upstream {MLIR}"), ("--level=lane", f"--level {MLIR}"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("#xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 8]>", True),
        ("wg_map<sg_layout = [2, 2], sg_data = [8, 8]>", None),
        ("#xetile.wg_map<sg_layout = [2, 2]>", False),
        ("#xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 8], more = 3>", False),
        ("#xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 8], sg_data = x>", False),
        ("#xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>", True),
    ],
)
def test_maps_of_the_command_line(text, kind):
    if kind is False:
        with pytest.raises(
            LayoutError, match=r"is written as <sg_layout = \[..\], sg_data = \[..\]>, not as 'sg_layout"
        ):
            xegpu_viz._map_of(text)
        return
    found = xegpu_viz._map_of(text)
    assert (found is not None) == bool(kind)
    if found:
        assert found[1] in (((2, 2), (8, 8)), ((1, 16), (1, 1)))


TWO, COMPARED = (
    "--build-options=-DA --build-options=-DB",
    "is for one compilation; two --ocloc or --build-options compare",
)
STATED = "a comparison without --global runs the kernels that comments RUN of the program state"
OPENCL_LINES += [
    (TWO, NOTHING), (f"{TWO} --global 64 --kernel k", NOTHING), ("--ocloc a --ocloc b", NOTHING),
    (f"{TWO} --global 64", "a comparison with --global needs --kernel, the kernel that runs"),
    (f"{TWO} --local 64", STATED), (f"{TWO} --kernel k", STATED), (f"i32:1 {TWO}", STATED),
    *((f"{TWO} {option}", f"{option.split()[0]} {COMPARED}")
      for option in ("--trace", "--profile p.json", "--stats", "--fidelity", "--print 0", "-o 0=x.npy")),
]  # fmt: skip

ASSEMBLY_LINES = [
    ("--via=upstream", "--via=upstream is for MLIR; vISA assembly is already lowered"),
    ("--via=upstream --level=lane", "--level is for kernels that are imported as they are, not --via=upstream"),
    ("--engine=reference", "--engine=reference evaluates MLIR; vISA assembly is run by --engine=interpreter"),
    ("--allow-native", "--allow-native is for host code, which --entry runs"),
    *((f"--entry main {option}", f"{option.split()[0]} is for kernels; with --entry the host code launches them")
      for option in ("--kernel k", "--grid 4", "--block 16", "-o 0=x.npy", "--print 0", "--profile p.json",
                     "--fidelity")),
    ("--entry main", "vISA assembly has no host code for --entry to run"),
]  # fmt: skip


@pytest.mark.parametrize(
    "suffix, lines", [(".mlir", LINES), (".cl", OPENCL_LINES), (".visaasm", ASSEMBLY_LINES)], ids=["mlir", "cl", "asm"]
)
def test_options_that_exclude_each_other(suffix, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if suffix == ".visaasm":
        (tmp_path / "k.visaasm").write_text(".version 3.8\n")
    for line, message in lines:
        with pytest.raises(SystemExit) as ended:
            xegpu_run.run([f"k{suffix}", *line.split()])
        said = capsys.readouterr().err
        assert ended.value.code == 2 and message in said, (line, said)


OTHERS = [
    (xegpu_bisect, "--level=lane", "--level is for --upstream, which is not given"),
    (xegpu_bisect, "--mlir-opt=x", "--mlir-opt is for --upstream, which is not given"),
    (xegpu_bisect, "--reduce=x.mlir", "--reduce is for --upstream, which is not given"),
    (xegpu_bisect, "--upstream", "--upstream needs --pass-pipeline, or --level, which chooses the passes"),
    (
        xegpu_opt,
        "--run-reproducer --cse",
        "--run-reproducer runs the pipeline of its input; no other passes",
    ),
    (xegpu_opt, "--emit-bytecode --split-input-file", "--emit-bytecode writes one module; --split-input-file reads"),
    (xegpu_viz, "-o x.png", "'x.png' is neither .svg nor .html"),
    *(
        (xegpu_viz, f"--shape={text}", f"'{text}' is not a shape, such as 8x16")
        for text in ("8x", "x8", "8,16", "-8", "")
    ),
    (xegpu_viz, "--shape=8x16", "there is no layout in 'k.mlir'"),
    *((xegpu_viz, f"--subgroups={text}", f"'{text}' is not a positive number") for text in ("0", "-1", "1.5", "x")),
    (xegpu_viz, "--subgroups=1", "there is no layout in 'k.mlir'"),
    *(
        (xegpu_run, f"--grid={text}", f"'{text}' is not one to three positive numbers, such as 4,4,1")
        for text in ("0", "1,0", "1,2,3,4", "x", "1,", "-1", "")
    ),
    (xegpu_run, "--grid=1,2,3 --trace --engine=jit", "only the interpreter can trace"),
]


@pytest.mark.parametrize("tool, line, message", OTHERS)
def test_options_of_other_tools(tool, line, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.mlir").write_text("module {}")
    with pytest.raises(SystemExit) as ended:
        tool.run(["k.mlir", *line.split()])
    assert ended.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize("terminal", [True, False])
def test_bytecode_is_not_written_to_a_terminal(terminal, tmp_path, monkeypatch, capsysbinary):
    (tmp_path / "k.mlir").write_text("module {}")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    line = [str(tmp_path / "k.mlir"), "--emit-bytecode"]
    if terminal:
        with pytest.raises(SystemExit):
            xegpu_opt.run(line)
        assert b"bytecode is not written to a terminal; name a file with -o" in capsysbinary.readouterr().err
        line += ["-o", str(tmp_path / "k.mlirbc")]
    assert xegpu_opt.run(line) == 0
    written = (tmp_path / "k.mlirbc").read_bytes() if terminal else capsysbinary.readouterr().out
    assert written.startswith(b"ML\xefR")


class Called(BaseException):
    """Ends a tool where it calls the API."""


KERNEL = "gpu.module @m { gpu.func @k(%out: memref<16xi32>) kernel { gpu.return } }"

GIVEN = {
    xegpu_bisect: (
        ("bisect", "grid block target model registers optimize prefetch load_ahead pipeline ulps"),
        (1, 1, "pvcxt", "fma", None, True, 0, False, None, 0),
        [
            ("--grid=2,3", "grid", (2, 3)), ("--block=4", "block", (4,)), ("--target=pvc", "target", "pvc"),
            ("--model=stage", "model", "stage"), ("--registers=256", "registers", 256),
            ("--no-optimize", "optimize", False), ("--prefetch=2", "prefetch", 2), ("--load-ahead", "load_ahead", True),
            ("--pass-pipeline=builtin.module(cse)", "pipeline", "builtin.module(cse)"), ("--ulps=3", "ulps", 3),
        ],
    ),
    xegpu_run: (
        ("compile_kernel",
         "target model dpas_denormals choices check schedules registers strict_grf engine threads cache"),
        ("pvcxt", "fma", "keep", [], [], 0, None, False, None, None, None),
        [
            ("--target=bmg", "target", "bmg"), ("--model=exact", "model", "exact"),
            ("--dpas-denormals=flush", "dpas_denormals", "flush"), ("--choice=a=b", "choices", ["a=b"]),
            ("--check=uninit", "check", ["uninit"]), ("--registers=128", "registers", 128),
            ("--strict-grf", "strict_grf", True), ("--engine=both", "engine", "both"),
            ("--trace", "engine", "interpreter"), ("--threads=3", "threads", 3), ("--deterministic", "threads", 1),
            ("--threads=3 --deterministic", "threads", 1), ("--cache=off", "cache", "off"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("tool", GIVEN)
def test_options_reach_the_api(tool, tmp_path, monkeypatch):
    """Each changes its own option, and no other."""
    (function, names), values, lines = GIVEN[tool]
    calls = []

    def called(module, kernel, *arguments, **options):
        calls.append((kernel, options))
        raise Called

    monkeypatch.setattr(tool, function, called)
    (tmp_path / "k.mlir").write_text(KERNEL)
    usual = dict(zip(names.split(), values))
    for line, name, value in [("", "", None), *lines]:
        with pytest.raises(Called):
            tool.run([str(tmp_path / "k.mlir"), "--kernel=k", *line.split()])
        assert calls.pop() == ("k", usual | ({name: value} if name else {})), line


def test_words_in_spellings_of_llvm():
    parser = driver.Parser("tool", "FILE", "Test.", [])
    parser.add_text_arguments()
    parser.add_argument("--off", "--no-off", action="store_true")
    for given, words in (
        ("-version", ["--version"]), ("-o x", ["-o", "x"]), ("-ofile", ["-ofile"]), ("-o=file", ["-o", "file"]),
        ("a -o=f b", ["a", "-o", "f", "b"]), ("-color=never", ["--color=never"]), ("-e", ["-e"]), ("-", ["-"]),
        ("--verify-diagnostics=TRUE", ["--verify-diagnostics"]), ("-verify-diagnostics=1", ["--verify-diagnostics"]),
        ("-verify-diagnostics=0 x", ["x"]), ("--verify-diagnostics=false", []), ("--off=0", ["--no-off"]),
        ("--off=1", ["--off"]), ("--color=1", ["--color=1"]), ("--split-input-file", ["--split-input-file"]),
        ("-split-input-file=//", ["--split-input-file", "--input-split-marker=//"]), ("--split-input-file=0", []),
        ("-5", ["-5"]), ("-1.mlir", ["-1.mlir"]),
    ):  # fmt: skip
        assert parser.normalized(given.split()) == words


@pytest.mark.parametrize("color", ["auto", "always", "never"])
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("name, value, plain", [("A", "", False), ("NO_COLOR", "1", True), ("NO_COLOR", "", False),
                                                ("TERM", "dumb", True), ("TERM", "xterm", False)])  # fmt: skip
def test_when_output_is_in_colour(color, terminal, name, value, plain, monkeypatch):
    for variable in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    token = driver._COLOR.set(color)
    assert driver.in_color(sys.stdout) == {"auto": terminal and not plain, "always": True, "never": False}[color]
    driver._COLOR.reset(token)


@pytest.mark.parametrize("block, threads", [("3", 3), ("1", 1), ("2,2", 4)])
def test_the_thread_of_a_trace_exists(block, threads, tmp_path, capsys):
    """Both ends of each range, for a grid whose last extent is left out."""
    (tmp_path / "k.mlir").write_text(KERNEL)
    line = [str(tmp_path / "k.mlir"), "zeros:i32:16", "--grid=2,3", f"--block={block}"]
    some = f"grid is (2, 3, 1), with {threads} subgroup{'s' * (threads > 1)} in a workgroup"
    for x, y, z, thread in (
        (1, 2, 0, 0), (0, 0, 0, threads - 1), (1, 0, 0, 0), (0, 0, 0, threads), (2, 0, 0, 0), (0, 3, 0, 0),
        (0, 0, 1, 0), (-1, 0, 0, 0), (0, -1, 0, 0), (0, 0, -1, 0), (0, 0, 0, -1),
    ):  # fmt: skip
        traced = [*line, f"--trace={x},{y},{z}:{thread}"]
        if 0 <= x < 2 and 0 <= y < 3 and z == 0 and 0 <= thread < threads:
            assert xegpu_run.run(traced) == 0
        else:
            with pytest.raises(SystemExit):
                xegpu_run.run(traced)
            missing = f"there is no subgroup {thread} of workgroup {(x, y, z)}; the {some}"
            assert missing in capsys.readouterr().err
