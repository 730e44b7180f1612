"""Passes, the pipelines that they form with upstream's, and the running of a pipeline."""

from __future__ import annotations

import dataclasses
import re
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, ClassVar, NoReturn, TypeVar, get_type_hints

from mlir import ir
from mlir.passmanager import PassManager
from msgspec import Struct, field, structs

from xegpu_py.argument_types import checked
from xegpu_py.collector import collector_paused
from xegpu_py.did_you_mean import did_you_mean
from xegpu_py.ir.bindings import import_views
from xegpu_py.ir.codecs import Cursor, SyntaxFault
from xegpu_py.ir.definition import dataclass_transform
from xegpu_py.ir.diagnostics import (
    Diagnostic,
    DiagnosticError,
    Position,
    Source,
    collecting,
    emit_error,
    enter,
    position_of,
)
from xegpu_py.ir.module import Module, from_diagnostic, kernels, problems, walk
from xegpu_py.ir.pending_functions import PendingFunctions
from xegpu_py.ir.upstream_pass_guards import prepare, show
from xegpu_py.ir.upstream_pass_names import UPSTREAM_PASSES
from xegpu_py.plugins import plugin_passes

ROOT = "builtin.module"

_NAME = re.compile(r"[A-Za-z_][\w.-]*")

_FOR_UPSTREAM_XEGPU = re.compile(r"xegpu|to-xevm-pipeline")

_DOES_NOT_CONVERGE = "int-range-optimizations"
"""A pass that fails after its last iteration where a known number has a type without constants, such as ui32 (MLIR 22's
`MaterializeKnownConstantValues`). The ops rewritten by then are valid."""

_IMPLICIT_NESTS = ("{}", "func.func({})", "gpu.module({})", "gpu.module(gpu.func({}))")


@dataclass_transform(kw_only_default=True)
class Registered(ABC):
    """The passes, by their names in pipelines. The fields of a class are the options; `register_pass` registers it.

    The docstring is what `--help` shows: its first line says what the pass does, and it shows IR before and after. An
    option `kernel` is the name of the only kernel to change; a run warns if it does not exist.
    """

    name: ClassVar[str]

    def __init__(self, **options: Any) -> None:
        """Make a pass of some of its options; the others have their defaults."""
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            setattr(self, f.name, options.pop(f.name, f.default))
        if options:
            raise TypeError(f"pass '{self.name}' has no option '{next(iter(options))}'")

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field[Any]]:
        """The options by the name that a pipeline gives them."""
        return {f.name.replace("_", "-"): f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]


class Contents:
    """The ops in an op, for as long as nothing changes them.

    Attributes:
        root: the op.
        ops: all ops in it, outer before inner, itself first.
        names: their names.
    """

    def __init__(self, root: ir.Operation) -> None:
        self.root = root
        self.ops = walk(root)
        self.names = frozenset([op.name for op in self.ops])

    def drop(self) -> None:
        """Forget the ops before they change. MLIR's passes first visit all ops that Python knows."""
        self.ops = []


class BodyPass(Registered):
    """A pass that knows functions which are lowered below the IR; see `Registered`."""

    def concerns(self, contents: Contents) -> bool:
        """Whether the pass may change these ops or refuse them; a pipeline leaves it out where it does not."""
        return True

    @abstractmethod
    def run_with(self, op: ir.Operation, bodies: PendingFunctions) -> None:
        """Transform `op` and its regions. `bodies` holds the functions in them that are lowered below the IR.

        Raises:
            DiagnosticError: if it cannot be done; see `fail`.
        """

    def fail(self, op: ir.Operation | ir.OpView, message: str, *notes: str) -> NoReturn:
        """Raise a diagnostic at `op`."""
        emit_error(op, message, *notes)


class Pass(BodyPass):
    """A pass on the IR; see `Registered`. Functions that are lowered below it get their ops first."""

    @abstractmethod
    def run(self, op: ir.Operation) -> None:
        """Transform `op` and what is in it.

        Raises:
            DiagnosticError: if it cannot be done; see `fail`.
        """

    def run_with(self, op: ir.Operation, bodies: PendingFunctions) -> None:
        bodies.forget()
        self.run(op)


class Pipeline(Registered):
    """A name for several passes; see `Registered`."""

    @abstractmethod
    def steps(self) -> str:
        """The passes, as the inside of a textual pipeline."""


_REGISTRY: dict[str, type[Registered]] = {}
"""The passes that are imported, by name and alias."""

_PACKAGE = "xegpu_py.passes"

_MODULES: dict[str, str] = {}
"""The modules that register passes, by the names of these, also of those that are not imported yet."""

P = TypeVar("P", bound=type[Registered])


@checked
def register_pass(name: str, *aliases: str) -> Callable[[P], P]:
    """Register a pass class under the name that pipelines and command lines give it; docs/python.md has an example.

    The class is derived from `Pass`, and its method `run` transforms an op. Its fields of type bool, int, float or str,
    which have defaults, are the options; a pipeline writes `_` as `-`. The docstring is what `--help-pass` prints. The
    class may be a dataclass.

    Args:
        name: the pass's name.
        aliases: names that it has had before.
    """

    def register(cls: P) -> P:
        cls.name = name
        if not cls.__module__.startswith("xegpu_py."):
            import_views()
        if "__dataclass_fields__" not in vars(cls):
            # `Registered.__init__` serves all: methods of each class would take most of the time of its import.
            dataclass(init=False, repr=False, eq=False, match_args=False)(cls)
        _REGISTRY.update(dict.fromkeys((name, *aliases), cls))
        parse_pipeline.cache_clear()
        return cls

    return register


def declare_passes(modules: Mapping[str, str]) -> None:
    """Name the modules that register passes; each is imported when one of its passes is asked for.

    Args:
        modules: the module of each name or alias of a pass.
    """
    _MODULES.update(modules)


@cache
def _declared() -> dict[str, str]:
    """The modules of passes, with those of this project, whose package declares them."""
    import_module(_PACKAGE)
    return _MODULES


def pass_names() -> list[str]:
    """The names and aliases of our passes and of those of extensions, sorted."""
    return sorted({*_REGISTRY, *_declared(), *plugin_passes()})


def registered() -> dict[str, type[Registered]]:
    """Our passes by name, without aliases. All of their modules are imported; one of another distribution that cannot
    be is left out with a warning."""
    classes: dict[str, type[Registered] | None] = {}
    for name in pass_names():
        try:
            classes[name] = pass_named(name)
        except DiagnosticError as e:
            warnings.warn(f"{e.diagnostics[0].position}: {e.diagnostics[0].message}", stacklevel=2)
    return {name: cls for name, cls in classes.items() if cls is not None and name == cls.name}


def pass_named(name: str) -> type[Registered] | None:
    """Our pass of a name or alias, whose module is imported now; None if there is none.

    Passes of extensions are entry points of the group `xegpu_py.passes`, whose values are modules.
    """
    if name not in _REGISTRY:
        module = _declared().get(name)
        # MLIR's passes are asked for more often than those of extensions, whose metadata takes long to read.
        if module is None and not _is_upstream(name):
            module = plugin_passes().get(name)
        if module is None:
            return None
        try:
            with collector_paused():
                import_module(module)
        except Exception as e:
            # A module of this project that cannot be imported is a bug, whose traceback is wanted.
            if name not in plugin_passes():
                raise
            problem = f"pass '{name}': {type(e).__name__}: {e}"
            raise DiagnosticError([Diagnostic("error", problem, Position(module))]) from None
        if name not in _REGISTRY:
            problem = f"the module registers no pass '{name}', for which an entry point of a distribution names it"
            raise DiagnosticError([Diagnostic("error", problem, Position(module))])
    return _REGISTRY[name]


def upstream_pass_names() -> list[str]:
    """The names of the passes of MLIR that the bindings have, without those of its C++ dialect xegpu, sorted."""
    return [name for name in UPSTREAM_PASSES if _is_upstream(name)]


def upstream_options(name: str) -> str | None:
    """The options of a pass of MLIR with their defaults, as its parser prints them; None if there is no such pass."""
    if not _NAME.fullmatch(name) or _FOR_UPSTREAM_XEGPU.search(name) or _refusal(f"any({name})"):
        return None
    with ir.Context(load_on_create_dialects=[]):
        return " ".join(str(PassManager.parse(f"any({name})")).partition("{")[2].rpartition("}")[0].split())


class Step(Struct, frozen=True):
    """A pass in a pipeline: its name and the text of its options."""

    name: str
    options: str = ""

    def __str__(self) -> str:
        return f"{self.name}{{{self.options}}}" if self.options else self.name


def step(name: str, **options: bool | int | str) -> str:
    """The text of a pass of ours in a pipeline.

    Args:
        options: its options by the names of their fields; those that have their default values are left out.
    """
    cls = pass_named(name)
    if cls is None:
        raise ValueError(f"there is no pass '{name}'")
    option_fields = cls.options()
    settings = []
    for option, spec in option_fields.items():
        value = options.get(spec.name, spec.default)
        if value != spec.default:
            settings.append(f"{option}={str(value).lower() if isinstance(value, bool) else value}")
    return str(Step(name, " ".join(settings)))


class Nest(Struct, frozen=True):
    """Passes that run on each op of a name directly within the op at hand; `any` stands for every op."""

    anchor: str
    items: tuple[Step | Nest, ...]

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.items))})"


@lru_cache(maxsize=256)
def parse_pipeline(text: str) -> Nest:
    """Read a textual pipeline such as `builtin.module(cse,gpu.module(xegpu-dce))`.

    Raises:
        DiagnosticError: where the text does not read, or names no pass.
    """
    source = Source(text, "<pass-pipeline>")
    try:
        cursor = Cursor(text)
        pipeline = _read_item(cursor)
        if not isinstance(pipeline, Nest) or pipeline.anchor not in (ROOT, "any"):
            raise cursor.fault(f"a pipeline must start with '{ROOT}(...)'", 0)
        if not cursor.at_end():
            raise cursor.expected("the end of the pipeline")
    except SyntaxFault as fault:
        raise source.error(fault.offset, fault.message) from None
    return pipeline


def _read_item(cursor: Cursor) -> Step | Nest:
    start = cursor.skip()
    m = cursor.match(_NAME)
    if not m:
        raise cursor.expected("a pass")
    if cursor.accept("("):
        return Nest(m[0], tuple(_read_item(cursor) for _ in cursor.entries(")")))
    step = Step(m[0], cursor.balanced()[1:-1].strip() if cursor.at("{") else "")
    problem = step_problem(step)
    if problem:
        raise SyntaxFault(start, problem)
    return step


def flag_step(name: str, options: str = "") -> Step | Nest:
    """The pipeline element of a command-line flag, nested where upstream's pass runs only on functions or kernels.

    Raises:
        ValueError: if there is no such pass, or it has no such option.
    """
    step = Step(name, options)
    problem = step_problem(step)
    if problem:
        raise ValueError(problem)
    if pass_named(name) is None:
        for nest in _IMPLICIT_NESTS:
            if not _refusal(f"{ROOT}({nest.format(step)})"):
                return _read_item(Cursor(nest.format(step)))
    return step


@cache
def _refusal(pipeline: str) -> str:
    """Why MLIR does not read a pipeline; empty if it does."""
    try:
        with ir.Context(load_on_create_dialects=[]):
            PassManager.parse(pipeline)
    except ValueError as e:
        return str(e)
    return ""


def step_problem(step: Step) -> str | None:
    """Why this is no step of a pipeline, or None."""
    pass_class = pass_named(step.name)
    if pass_class:
        try:
            make_pass(pass_class, step.options)
        except ValueError as e:
            return str(e)
        return None
    if _FOR_UPSTREAM_XEGPU.search(step.name):
        return (
            f"pass '{step.name}' requires the upstream C++ xegpu dialect, which is not loaded; "
            "xegpu-run --via=upstream and xegpu-bisect --upstream run such passes in mlir-opt"
            if _is_upstream(step.name)
            else f"unknown pass '{step.name}'{near(step.name)}"
        )
    if not _is_upstream(step.name):
        return f"unknown pass '{step.name}'{near(step.name)}"
    return None


def near(name: str) -> str:
    """A suggestion of the pass whose name is most like `name`, as the end of a message; empty if none is."""
    return did_you_mean(name, [*pass_names(), *UPSTREAM_PASSES])


def expanded(pipeline: Nest) -> Nest:
    """A pipeline with the passes of those passes that are pipelines."""
    items: list[Step | Nest] = []
    for item in pipeline.items:
        pass_class = pass_named(item.name) if isinstance(item, Step) else None
        instance = make_pass(pass_class, item.options) if pass_class and isinstance(item, Step) else None
        if isinstance(instance, Pipeline):
            items += expanded(parse_pipeline(f"{ROOT}({instance.steps()})")).items
        else:
            items.append(expanded(item) if isinstance(item, Nest) else item)
    return Nest(pipeline.anchor, tuple(items))


def _is_upstream(name: str) -> bool:
    return "does not refer to a registered pass" not in _refusal(f"any({name})")


def make_pass(cls: type[Registered], options: str) -> Registered:
    """An instance of a pass from option text such as `depth=2 keep-loads`.

    Raises:
        ValueError: if the pass has no such option, or the value does not fit.
    """
    option_fields = cls.options()
    arguments: dict[str, Any] = {}
    for setting in options.split():
        name, has_value, value = setting.partition("=")
        second = re.search(r",([\w-]+)=", value)
        if second and second[1] in option_fields:
            raise ValueError(f"options of pass '{cls.name}' are separated by spaces, not by the comma in '{setting}'")
        if name not in option_fields:
            options_text = f"its options are {', '.join(option_fields)}" if option_fields else "it has none"
            raise ValueError(f"pass '{cls.name}' has no option '{name}'; {options_text}")
        arguments[option_fields[name].name] = _option(cls, name, option_fields[name], value if has_value else "true")
    return cls(**arguments)


_OPTION_TYPES: dict[Any, type] = {spelling: kind for kind in (bool, int, str) for spelling in (kind, kind.__name__)}
"""The types of most options, by annotations as types or text; `get_type_hints` takes 0.05 to 1 ms."""


def _option(cls: type[Registered], name: str, field: dataclasses.Field[Any], value: str) -> Any:
    option_type = _OPTION_TYPES.get(field.type) or get_type_hints(cls)[field.name]
    if option_type is bool:
        if value not in ("true", "false", "1", "0"):
            raise ValueError(f"option '{name}' of pass '{cls.name}' must be true or false, but got '{value}'")
        return value in ("true", "1")
    try:
        return option_type(value)
    except ValueError:
        raise ValueError(f"invalid value '{value}' for option '{name}' of pass '{cls.name}'") from None


@checked
def run_pipeline(module: Module, pipeline: str, *, verify_each: bool = True) -> None:
    """Run a textual pipeline such as `builtin.module(cse,xegpu-dce)` on a module, in place.

    Raises:
        DiagnosticError: if the pipeline does not read, a pass fails, or leaves invalid IR.
    """
    Runner(verify_each).run(parse_pipeline(pipeline), module)
    module.bodies.build()


class Listener:
    """Watches a pipeline run. Each method does nothing by default."""

    def before(self, step: Step, op: ir.Operation) -> None:
        """A step is about to run on `op`."""

    def after(self, step: Step, op: ir.Operation, seconds: float) -> None:
        """A step has run on `op`, in so many seconds, and what it made was verified."""

    def verified(self, seconds: float) -> None:
        """The IR was verified."""

    def failed(self, step: Step, op: ir.Operation) -> None:
        """A step has failed on `op`."""


class Runner(Struct):
    """Runs pipelines on a module. Functions that passes lower below the IR stay there; see `Module.bodies`.

    Attributes:
        verify_each: whether the IR is verified after each step.
        listeners: the listeners that are called.
        warnings: diagnostics below an error that steps of upstream's gave, and those on names of kernels.
        remarks: receives the remarks of our passes on legal but slow code; None drops them.
    """

    verify_each: bool = True
    listeners: Sequence[Listener] = ()
    warnings: list[Diagnostic] = field(default_factory=list)
    remarks: list[Diagnostic] | None = None
    _contents: Contents | None = None
    _kernel_names: frozenset[str] = frozenset()

    def run(self, pipeline: Nest, module: Module) -> None:
        """Run a pipeline.

        Raises:
            DiagnosticError: if a step fails, or leaves invalid IR.
        """
        handler = module.context.attach_diagnostic_handler(self._note)
        try:
            with collector_paused(), module.context, ir.Location.unknown(), collecting(self.remarks):
                self._run_items(pipeline.items, module.outline, module)
        except DiagnosticError as e:
            e.sources = list(module.sources)
            raise
        finally:
            self._contents = None
            self._kernel_names = frozenset()
            handler.detach()

    def _contents_of(self, op: ir.Operation, module: Module) -> Contents:
        """The ops in an op, which are listed once for all passes until one changes them."""
        module.bodies.build()
        if self._contents is None or self._contents.root != op:
            self._contents = Contents(op)
        return self._contents

    def _note(self, d: Any) -> bool:
        if d.severity != ir.DiagnosticSeverity.ERROR:
            severity: Any = str(d.severity).rpartition(".")[2].lower()
            self.warnings.append(Diagnostic(severity, d.message, position_of(d.location)))
            return True
        return False

    def _run_items(self, items: Sequence[Step | Nest], op: ir.Operation, module: Module) -> None:
        for item in items:
            if isinstance(item, Step):
                self._run_step(item, op, module)
                continue
            for child in _children(op, item.anchor):
                self._run_items(item.items, child, module)

    def _run_step(self, step: Step, op: ir.Operation, module: Module) -> None:
        pass_class = pass_named(step.name)
        instance = make_pass(pass_class, step.options) if pass_class else None
        self._check_kernel(step, getattr(instance, "kernel", ""), module)
        if isinstance(instance, Pipeline):
            self._run_items(parse_pipeline(f"{ROOT}({instance.steps()})").items, op, module)
            return
        for listener in self.listeners:
            listener.before(step, op)
        start = time.perf_counter()
        enter(f"pass '{step}'", position_of(op.location))
        try:
            if not isinstance(instance, BodyPass):
                module.bodies.forget()
                run_upstream(step, op, self._contents_of(op, module))
                self._contents = None
            elif type(instance).concerns is BodyPass.concerns or instance.concerns(self._contents_of(op, module)):
                instance.run_with(op, module.bodies)
                self._contents = None
            seconds = time.perf_counter() - start
            if self.verify_each:
                self._verify(op, step, module)
        except DiagnosticError:
            for listener in self.listeners:
                listener.failed(step, op)
            raise
        for listener in self.listeners:
            listener.after(step, op, seconds)

    def _check_kernel(self, step: Step, name: str, module: Module) -> None:
        """Warn of a pass whose option `kernel` names no kernel: it changes nothing."""
        if name and name not in self._kernel_names:
            # An earlier step may have made kernels.
            self._kernel_names = frozenset(func.attributes["sym_name"].value for func in kernels(module.outline))
            if name not in self._kernel_names:
                others = f"; there are {', '.join(sorted(self._kernel_names))}" if self._kernel_names else ""
                message = f"there is no kernel '{name}' for pass '{step.name}'"
                message += did_you_mean(name, self._kernel_names) or others
                self.warnings.append(Diagnostic("warning", message, position_of(module.outline.location)))
                # The passes of a pipeline would each say it again.
                self._kernel_names |= {name}

    def _verify(self, op: ir.Operation, step: Step, module: Module) -> None:
        start = time.perf_counter()
        diagnostics = problems(op, module.bodies)
        for listener in self.listeners:
            listener.verified(time.perf_counter() - start)
        if diagnostics:
            blame = Diagnostic("note", f"this op is invalid after pass '{step}'", diagnostics[0].position)
            first_diagnostic = structs.replace(diagnostics[0], notes=(*diagnostics[0].notes, blame))
            raise DiagnosticError([first_diagnostic, *diagnostics[1:]])


def _children(op: ir.Operation, anchor: str) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region:
            for child in list(block.operations):
                if anchor in ("any", child.operation.name):
                    yield child.operation


def run_upstream(step: Step, op: ir.Operation, contents: Contents | None = None) -> None:
    """Run a pass of upstream's on an op, and on what is in it.

    Args:
        contents: its ops, if they are listed; they are dropped.

    Raises:
        DiagnosticError: if the pass cannot run on such an op, or fails.
    """
    try:
        manager = PassManager(op.name)
        manager.add(str(step))
    except ValueError as e:
        reason = " ".join(str(e).split()).replace("MLIR Textual PassPipeline Parser:1:1: error: ", "")
        raise DiagnosticError([Diagnostic("error", f"pass '{step}': {reason}", position_of(op.location))]) from None
    manager.enable_verifier(False)
    enter(f"pass '{step}' of MLIR", position_of(op.location))
    hidden = prepare(op, step.name, contents.ops if contents else None)
    if contents:
        contents.drop()
    reported: list[Diagnostic] = []

    def note(d: Any) -> bool:
        if d.severity == ir.DiagnosticSeverity.ERROR:
            reported.append(from_diagnostic(d, op.context))
            return True
        return False

    # The bindings collect errors themselves, and end the process if a pass reports some but succeeds.
    handler, collects = op.context.attach_diagnostic_handler(note), op.context.emit_error_diagnostics
    op.context.emit_error_diagnostics = True
    try:
        with suppress(ir.MLIRError) if step.name == _DOES_NOT_CONVERGE else nullcontext():
            manager.run(op)
        if hidden:
            show(op)
    except ir.MLIRError:
        reported = reported or [Diagnostic("error", f"pass '{step}' failed", position_of(op.location))]
    finally:
        handler.detach()
        op.context.emit_error_diagnostics = collects
    if reported and step.name != _DOES_NOT_CONVERGE:
        raise DiagnosticError(reported)
