"""Mistakes of beginners: each gives one error at its line of the user's file, with a caret."""

import linecache
import math  # noqa: F401, a name in the kernels below
import traceback
from types import SimpleNamespace

import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr

TABLE = [1, 2]
HOLDER = SimpleNamespace(table=[1])


def again(v):
    return again(v) + 1


def three(v):
    return v, v, v


# More than docs/tile-language.md lists: the statements of a kernel, of which the line with the mistake ends in "#!",
# the column and the message.
BODIES = [
    ("try: #!\n    x = x + 1\nexcept ValueError:\n    pass", 1, "'try' cannot be compiled"),
    ("with open('f') as f: #!\n    x = x + 1", 1, "'with' cannot be compiled"),
    ("yield x #!", 1, "'yield' cannot be compiled"),
    ("global TABLE #!\nTABLE = x", 1, "'global' cannot be compiled"),
    ("class A: #!\n    pass", 1, "a class cannot be compiled"),
    ("del x #!", 1, "'del' cannot be compiled"),
    ("match N: #!\n    case 64:\n        pass", 1, "'match' cannot be compiled"),
    ("import math #!", 1, "'import' cannot be compiled"),
    ("raise ValueError('x') #!", 1, "'raise' cannot be compiled"),
    ("s = {1, 2} #!", 5, "a set cannot be compiled"),
    ("x = x + nothing #!", 9, "name 'nothing' is not defined"),
    ("x = xl.expp(x) #!", 5, "the tile language has no 'expp'; did you mean 'exp'?"),
    ("x = x.foo() #!", 5, "has no attribute 'foo'"),
    ("x = x.summ() #!", 5, "has no attribute 'summ'; did you mean 'sum'?"),
    ("breakpoint() #!", 1, "a debugger cannot stop a kernel that runs(.|\n)*engine='eager' or XEGPU_PY_INTERPRET=1"),
    ("acc = 0\nfor k in range(3):\n    acc += x #!", 5, r"it can be xl.full\(\(64,\), ..., xl.float32\)"),
    ("x = x + xl.load(X + xl.arange(0, 32)) #!", 5, "shape mismatch: objects cannot be broadcast"),
    ("xl.store(Y + xl.arange(0, 32), x) #!", 1, "shape mismatch: objects cannot be broadcast"),
    ("x = x[1.0] #!", 5, "values are indexed by constants, slices, None"),
    ("x = again(x)", None, "a recursion must end at compile time"),
    ("for k in xrange(3): #!\n    x = x + k", 10, "name 'xrange' is not defined"),
    ("xl.static_print(f'{x}')", None, r"the text of float32\[64\], which is known only at run time"),
    ("k = bool(x.sum()) #!", 5, r"bool\(\) of float32, which is known only at run time"),
    ("if x > 0: #!\n    x = x + 1", 1, r"the truth value of bool\[64\] is ambiguous"),
    ("for v in x: #!\n    pass", 1, r"float32\[64\] cannot be iterated over"),
    ("d = {x: 1} #!", 5, "unhashable type"),
    ("for k in range(0.5): #!\n    pass", 1, "'range' needs integers, not 0.5"),
    ("x = math.exp(x) #!", 5, r"exp\(\) takes no value that is known only at run time"),
    ("x = x.to('float23') #!", 5, "no element type matches 'float23'"),
    ("x = x.to(None) #!", 5, "no element type matches None"),
    ("x = x.sum(axis=1) #!", 5, "axis 1 is out of bounds"),
    ("x = x.sum(axis=0.5) #!", 5, "an axis is an integer that is known at compile time, not 0.5"),
    ("x = x << 2 #!", 5, "'<<' needs integers, not float32"),
    ("x = x + 'a' #!", 5, r"cannot combine float32\[64\] and 'a'"),
    ("assert x.sum() > 0 #!", 1, "an assertion of a kernel must be known at compile time"),
    ("if n > 1:\n    z = x\nx = z #!", 5, "'z' is assigned in one branch only"),
    (
        "for k in range(n): #!\n    x = xl.cat(x, x)",
        1,
        r"'x' is float32\[64\] before the loop and float32\[128\]",
    ),
    ("parts = []\nfor k in range(n):\n    parts.append(x) #!", 5, r"list.append\(\) acts at compile time"),
    ("TABLE[0] = x #!", 1, r"an assignment of an element acts once, .* on a list that the kernel did not make"),
    (
        "TABLE[1] += 2 #!",
        1,
        "an assignment of an element acts once(.|\n)*copy the list in the kernel, and change the copy",
    ),
    ("t = TABLE\nt += [x] #!", 1, "an augmented assignment acts once, as the kernel is compiled"),
    ("for row in (TABLE,):\n    row.append(x) #!", 5, r"list.append\(\) acts once, as the kernel is compiled"),
    ("HOLDER.table.append(x) #!", 1, r"list.append\(\) acts once, as the kernel is compiled"),
    ("x = TABLE[n] #!", 5, "list is indexed by what is known at compile time"),
    ("a, b = three(x) #!", 1, r"too many values to unpack \(expected 2, got 3\)"),
    ("x = three(x, x) #!", 5, r"three\(\): too many positional arguments"),
    ("x = min(x) #!", 5, r"min\(\) compares several values"),
    ("x.foo = 3 #!", 1, "an attribute cannot be assigned"),
    ("x.foo, y = (x, x) #!", 1, "an attribute cannot be assigned"),
    ("for x.foo in range(3): #!\n    pass", None, "an attribute cannot be assigned"),
    ("x = N(3) #!", 5, "64 is not callable"),
    ("j = i // 0 #!", 5, "'//' by zero"),
    ("x[0] = 1.0 #!", 1, r"elements of float32\[64\] cannot be assigned(.|\n)*where\(mask, value, x\) replaces some"),
    ("x = x[n:] #!", 5, "slices of values have constant bounds"),
    ("x = xl.cat(x, 1.0) #!", 5, "zero-dimensional arrays cannot be concatenated"),
    ("x = xl.interleave(1.0, 2.0) #!", 5, "interleave needs values of at least one dimension"),
    ("x = x[::0] #!", 5, "slice step cannot be zero"),
    ("X[0] = x #!", 1, r"a single element cannot become float32\[64\]"),
    ("x = x @ x #!", 5, r"'@' multiplies matrices, but the left operand is float32\[64\]"),
    ("xl.philox_impl(x, 0, 0, 0, 0, 0) #!", 1, "Philox works on uint32 and uint64, not float32"),
    (
        "x = xl.zeros((64, 32), xl.float32)\nx -= x.sum(axis=1) #!",
        1,
        "leaves its axis out, unless it has keep_dims=True",
    ),
    ("while X: #!\n    x += 1", 1, "has no truth value"),
    ("xl.atomic_add(Z + i, i > 0) #!", 1, "atomic add needs numbers, not bool"),
    ("x = xl.load(X.tile(64, at=0), mask=x > 0) #!", 5, "a tile takes no mask: out-of-bounds elements are not acc"),
    ("x = x + X[0, 1] #!", 9, "an array of 1 dimensions is indexed by 1 integers, not 2"),
    ("x = X.view((4, 4), (4,)) #!", 5, "an array of 2 dimensions needs as many strides, not 1"),
    ("x = xl.make_block_ptr(X + 4, (4, 4), (4,), (0, 0), (4, 4)) #!", 5, "an array of 2 dimensions needs as many str"),
    ("x = X.tile((4, 4), at=0) #!", 5, "a tile of 2 dimensions at 1 indices does not fit an array of 1 dimensions"),
    ("x = X.tile((), at=0) #!", 5, "a tile of 0 dimensions at 1 indices does not fit an array of 1 dimensions"),
    ("t = X.view((32,), (2,)).tile(32, at=0)\nt.advance(1, 2) #!", 1, "a tile of 1 dimensions is advanced by 'by'"),
    ("t = X.view((32,), (2,)).tile(32, at=0)\nt.advance(rows=1) #!", 1, "a tile of 1 dimensions is advanced by 'by'"),
    ("t = X.view((4, 8), (16, 2)).tile((4, 8), at=(0, 0))\nt.advance(0, 8, 1) #!", 1, "by 'rows' and 'columns'"),
    ("t = xl.advance(X, (0,)) #!", 5, "advance moves a tile by a number for each dimension, but got"),
    ("t = xl.advance(X.tile(64, at=0), (0, 1)) #!", 5, r"for each dimension, but got .* and \(0, 1\)"),
    ("d = xl.make_tensor_descriptor(X, (64,), (1,), (64,), 'nan') #!", 5, "of a tensor descriptor are zero, not 'nan'"),
    ("d = xl.make_tensor_descriptor(X, (64,), (1,), (8, 8)) #!", 5, "blocks of 2 dimensions do not fit a tensor of 1"),
    (
        "p = xl.full((), 0, xl.int64).to(xl.pointer_type(xl.float32))\n"
        "d = xl.make_tensor_descriptor(p, (64,), (1,), (64,)) #!",
        5,
        "tiles are of an array, or of what follows a pointer to one of its elements, not of",
    ),
    ("d = xl.make_tensor_descriptor(X + i, (64,), (1,), (64,)) #!", 5, "a pointer to one of its elements, not of"),
    ("x = xl.where(x > 0, X, x) #!", 5, "chooses between two pointers or between two values, not between"),
    (
        "x = xl.load(xl.where(x > 0, X, Y) + i) #!",
        13,
        "chooses between pointers to two arrays by one condition, and only",
    ),
    ("x = xl.load(xl.where(n > 0, X, Z) + i) #!", 13, "only if the arrays have one type; load from both with a mask"),
    ("a, *b, c = (x,) #!", 1, r"not enough values to unpack \(expected at least 2, got 1\)"),
    ("a, b, c = (x, x) #!", 1, r"not enough values to unpack \(expected 3, got 2\)"),
    ("a, b = range(n) #!", 1, "a range that is known only at run time cannot be unpacked"),
    ("@three #!\ndef f(v):\n    return v", None, "a function in a kernel has no decorators"),
    ("s = [v for v in (x, x) if n > 0] #!", 5, "the condition of a comprehension must be known at compile time"),
    (
        "print(x) #!",
        1,
        r"print\(\) shows nothing while a kernel runs(.|\n)*device_print does, and static_print as it is",
    ),
    ("s = str(x) #!", 5, "known only at run time; device_print prints it, repr"),
    ("s = f'{n}' #!", 5, r'device_print\("x =", x\) prints the value, and \{x!r\} is its type'),
    ("x = math.exp(x) #!", 5, r"known only at run time(.|\n)*the functions of xegpu_py.language do"),
    ("def f(v):\n    if n > 0:\n        return v\nx = f(x)", None, "the function returns a value in some cases only"),
    ("for k in range(3, nothing=1): #!\n    x = x + 1", 10, r"range\(\) got an unexpected keyword argument 'nothing'"),
    ("for k in xl.range(3, num_stages=0): #!\n    x = x + 1", 10, "num_stages is a positive integer, not 0"),
    ("for k in xl.range(3, num_stages=1.5): #!\n    x = x + 1", 10, "num_stages is a positive integer, not 1.5"),
    (
        "s = []\nif n > 0:\n    s.append(x) #!",
        5,
        r"however often this loop or branch runs(.|\n)*make the list in the same",
    ),
]


@pytest.mark.parametrize(("body", "column", "message"), BODIES, ids=[body.split(" #!")[0] for body, _, _ in BODIES])
def test_mistake(body, column, message):
    head = "def kernel(X, Y, Z, n, N):\n    i = xl.arange(0, N)\n    x = xl.load(X + i)\n"
    text = head + "".join(f"    {line}\n" for line in (*body.split("\n"), "xl.store(Y + i, x)"))
    name = f"<mistake {abs(hash(body))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    # Functions of a text have this file's globals, so that they are the user's.
    found = dict(globals())
    exec(compile(text, name, "exec"), found)
    found["kernel"].__annotations__["N"] = Constexpr
    x = np.zeros(64, np.float32)
    with pytest.raises(xegpu_py.DiagnosticError, match=message) as caught:
        xegpu_py.jit(found["kernel"]).compile(x, x, x.astype(bool), 5, N=64)
    (error,) = caught.value.diagnostics
    shown = str(caught.value).splitlines()
    assert error.severity == "error" and shown[2].strip() == "^"
    if column is not None:
        line = next(k for k, line in enumerate(text.splitlines(), 1) if line.endswith("#!"))
        assert (error.position.file, error.position.line, error.position.column) == (name, line, column + 4)
        assert shown[1] == text.splitlines()[line - 1] and shown[2].index("^") == column + 3


@xegpu_py.jit
def scaled(X, Y, factor: xl.float32, N: Constexpr):
    i = xl.arange(0, N)
    xl.store(Y + i, xl.load(X + i) * factor)


LINE = np.zeros(64, np.float32)


@pytest.mark.parametrize("engine", ["eager", "both"])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: k(LINE, N=64), r"scaled\(\): missing a required argument: 'Y'"),
        (lambda k: k(LINE, LINE, 1.0, 64, 3), r"scaled\(\): too many positional arguments"),
        (lambda k: k(LINE, LINE, 1.0, M=3, N=64), r"scaled\(\): got an unexpected keyword argument 'M'"),
        (
            lambda k: k([1.0], LINE, 1.0, N=64),
            "argument 'X' of kernel 'scaled' must be an array or a number, but got list",
        ),
        (
            lambda k: k(LINE.astype(object), LINE, 1.0, N=64),
            "argument 'X' of kernel 'scaled' must be an array of numbers in native byte order, but got an array of obj",
        ),
        (
            lambda k: k(LINE, LINE, LINE, N=64),
            "'factor' of kernel 'scaled' must be a number of float32, but got an array",
        ),
        (lambda k: k(LINE, LINE, 1e60, N=64), "argument 'factor': 1e.60 does not fit float32"),
        (lambda k: k(LINE, LINE, 1.0, N=[64]), "argument 'N' of kernel 'scaled' must be hashable, unlike list"),
    ],
)
def test_mistakes_in_calls_show_the_callers_line(engine, call, message):
    with pytest.raises((TypeError, OverflowError), match=message) as caught:
        call(scaled.with_options(engine=engine))
    # After the line of the call, the traceback has no function of this package but the call of the kernel.
    assert [entry.name for entry in caught.traceback][1:] == ["<lambda>", "__call__"]


@pytest.mark.parametrize("engine", ["eager", "both"])
@pytest.mark.parametrize("grid", [2.5, "a", -1, (1, 1, 1, 1), (), None, lambda arguments: None])
def test_wrong_grids(engine, grid):
    with pytest.raises((TypeError, ValueError), match="'grid' must be one to three positive integers"):
        scaled.with_options(engine=engine)[grid](LINE, LINE, 1.0, N=64)


class Holder:
    @xegpu_py.jit
    def method(self, X):
        X[0] = 1


@xegpu_py.jit
def launching(X):
    scaled[1](X, X, 1.0, 64)


MISUSES = [
    (lambda: scaled["a"](LINE, LINE, 1.0, N=64), "'grid' must be one to three positive integers, but got 'a'"),
    (lambda: scaled[lambda given: given["Q"]](LINE, LINE, 1.0, N=64), "'scaled' gives .*N, but not 'Q'"),
    (lambda: scaled[1](LINE, LINE, N=64), r"scaled\(\): missing a required argument"),
    (lambda: scaled[1](LINE, LINE, 1.0, N=64, M=3), "unexpected keyword argument 'M'"),
    (lambda: scaled[1](LINE, [1, 2], 1.0, N=64), "argument 'Y' of kernel 'scaled' must be an array or a number"),
    (lambda: scaled[1](LINE, LINE[::-1], 1.0, N=64), "an array with a negative stride overlaps another argument"),
    (lambda: scaled[1](LINE, LINE, 1.0, N=64, num_warps=0), "'num_warps' must be a positive integer, but got 0"),
    (lambda: scaled[1](LINE, LINE, 1.0, N=64, num_warps=99), "num_warps, must be 0 to 64, but got 99"),
    (lambda: launching[1](LINE), "kernel 'scaled' cannot be launched in a kernel"),
    (lambda: Holder().method[1](LINE), "'jit' makes no methods: a kernel gets no object"),
    (lambda: xegpu_py.jit(do_not_specialize=["q"])(far), "do_not_specialize names 'q', but kernel 'far'"),
    (lambda: TUNED[1](LINE, LINE, 1.0, N=32), "autotune of kernel 'scaled' chooses 'N', which the call gives too"),
    (lambda: xegpu_py.autotune([xegpu_py.Config({"N": 64})], key="n")(scaled), "'key' must be a list of names"),
    (lambda: xegpu_py.Config("N"), "Config takes dictionaries of arguments and of options by name, but got 'N'"),
    (lambda: xegpu_py.testing.do_bench(3), "'fn' must be a function, but got 3"),
]
"""Calls that are wrong, and what is said."""

TUNED = xegpu_py.autotune([xegpu_py.Config({"N": 64})])(scaled)


@pytest.mark.parametrize("call, message", MISUSES, ids=[message for _, message in MISUSES])
def test_misuse(call, message):
    """One sentence, without the frames of what calls of kernels do inside."""
    with pytest.raises(
        (TypeError, ValueError, KeyError, OverflowError, xegpu_py.DiagnosticError), match=message
    ) as caught:
        call()
    inner = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if "language/jit" in frame.filename]
    assert len([frame for frame in inner if frame.name not in ("__missing__", "__init__")]) <= 1


def far(X, Y):
    xl.store(Y + xl.arange(0, 64), xl.load(X + xl.arange(0, 64)))


@pytest.mark.parametrize("engine", ["eager", "reference", "jit", "interpreter"])
def test_errors_name_the_arguments(engine):
    kernel, read_only = xegpu_py.jit(far, engine=engine), LINE.copy()
    read_only.flags.writeable = False
    for x, y, message in (
        (LINE[:60], np.zeros(64, np.float32), "over the end of 'X', which has 240 bytes"),
        (LINE, np.zeros(60, np.float32), "over the end of 'Y', which has 240 bytes"),
        (LINE + 1, read_only, "(argument 'Y' of kernel 'far' is|writes to 'Y', which is) read-only"),
    ):
        with pytest.raises((ValueError, xegpu_py.DiagnosticError), match=message) as caught:
            kernel(x, y)
        # A note may show the instruction, whose operands are those of vISA.
        told = str(caught.value).partition("note: instruction")[0]
        assert "in0" not in told and "in1" not in told


@pytest.mark.parametrize("engine", ["eager", "jit"])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: k[0.5](LINE, LINE, 1.0, 64), "'grid' must be one to three positive integers, but got 0.5"),
        (lambda k: k[-1](LINE, LINE, 1.0, 64), "'grid' must be one to three positive integers of 32 bits, but got -1"),
        (lambda k: k(LINE, LINE, 1.0, 64, block=0), "'block' must be one to three positive integers of 32 bits"),
        (lambda k: Holder().method(LINE), "method.*missing a required argument: 'X'; 'jit' makes no methods"),
    ],
)
def test_mistakes_in_launches_show_the_callers_line(engine, call, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        call(scaled.with_options(engine=engine))
    assert [entry.name for entry in caught.traceback][1:] == ["<lambda>", "__call__"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: xegpu_py.Config(64), "Config takes dictionaries of arguments and of options by name, but got 64"),
        (lambda: xegpu_py.Config({}, num_warps=0), "'num_warps' must be a positive integer, but got 0"),
    ],
)
def test_mistakes_in_configs_show_the_callers_line(make, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        make()
    assert [entry.name for entry in caught.traceback][1:] == ["<lambda>", "__post_init__"]


@pytest.mark.parametrize("engine", ["eager", "jit"])
def test_mistakes_of_kernels(engine):
    with pytest.raises((TypeError, xegpu_py.DiagnosticError), match="'scaled' cannot be launched in a kernel; a call"):
        launching.with_options(engine=engine)(LINE)
    with pytest.raises(TypeError, match=r"jit\(\) got an unexpected keyword argument 'stages'\. The options are in "):
        xegpu_py.jit(far, engine=engine, stages=3)
    with pytest.raises(TypeError, match=r"scaled\(\): .*'target'; 'target' is an option of 'jit': jit\(target="):
        scaled[1](LINE, LINE, 1.0, N=64, target="bmg")
    if engine == "jit":
        x = np.zeros(80, np.float32)
        with pytest.raises(
            ValueError, match="argument 'Y' of kernel 'far' overlaps argument 'X' of kernel 'far'; give"
        ):
            xegpu_py.jit(far)(x[:64], x[8:72])
