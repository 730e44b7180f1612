"""Differences between releases of the MLIR bindings.

Any distribution may provide `import mlir`. All other code uses LLVM 22's names of the public API. Names that other
releases lack, or spell differently, are looked up here, and missing methods are added to the classes of the bindings
when this module is imported. Each difference is found by looking for the name, and not by the version.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlir
from mlir import ir
from mlir.dialects import arith
from mlir.dialects._ods_common import _cext

_LOAD_DIALECTS = "_ZN4mlir4irdl12loadDialectsENS_8ModuleOpE"
_SET_LOC = "_ZN4mlir5Value6setLocENS_8LocationE"
"""`mlir::irdl::loadDialects(mlir::ModuleOp)` and `mlir::Value::setLoc(mlir::Location)` by the Itanium C++ ABI. A
`ModuleOp`, a `Value` and a `Location` are a pointer each."""

_TRACKS_OPERATIONS = hasattr(ir.Context, "_clear_live_operations_inside")
"""Whether the bindings keep track of the Python objects of ops by address, as those of LLVM 21 and before do."""

SEGMENTS = (
    {"operand": "operand_segment_sizes", "result": "result_segment_sizes"}
    if _TRACKS_OPERATIONS
    else {"operand": "operandSegmentSizes", "result": "resultSegmentSizes"}
)
"""The attributes with the sizes of operand and result groups of IRDL's ops. LLVM 21 has other names for them than for
those of other ops."""


def register_dialect(view: type) -> None:
    """Let a subclass of `ir.Dialect` be the Python side of the dialect of its `DIALECT_NAMESPACE`."""
    _cext.register_dialect(view)


def register_operation(view: type, cls: type) -> None:
    """Let a subclass of `ir.OpView` be the Python side of the op of its `OPERATION_NAME`, of the dialect of `view`."""
    _cext.register_operation(view, replace=True)(cls)


def search_dialects_below(prefix: str) -> None:
    """Let the bindings look for the Python side of a dialect in modules below a name."""
    _cext.globals.append_dialect_search_prefix(prefix)


def _with_missing_kinds(kinds: type[IntEnum]) -> type[IntEnum]:
    """The kinds of atomic updates with `xori`, which LLVM 21 lacks, but `xegpu.atomic_rmw` has."""
    if "xori" in kinds.__members__:
        return kinds
    members = {kind.name: kind.value for kind in kinds}
    return IntEnum(kinds.__name__, {**members, "xori": max(members.values()) + 1})  # type: ignore[return-value]


if TYPE_CHECKING:
    AtomicRMWKind = arith.AtomicRMWKind
else:
    AtomicRMWKind = _with_missing_kinds(arith.AtomicRMWKind)


@functools.lru_cache
def _of_cpp(name: str, arguments: int) -> Callable[..., bool]:
    """A function of the bindings' library that has no Python name.

    Raises:
        ImportError: if the library lacks it.
    """
    for folder in mlir.__path__:
        for path in sorted((Path(folder) / "_mlir_libs").glob("libMLIRPythonCAPI.*")):
            function = getattr(ctypes.CDLL(str(path)), name, None)
            if function is not None:
                function.argtypes, function.restype = [ctypes.c_void_p] * arguments, ctypes.c_bool
                found: Callable[..., bool] = function
                return found
    raise ImportError(f"these MLIR bindings do not have {name}; LLVM 21.1 or later is required")


@functools.lru_cache
def has_subgroup_broadcast() -> bool:
    """Whether there is `gpu.subgroup_broadcast`, which LLVM 21 lacks."""
    from mlir.dialects import gpu

    return hasattr(gpu, "SubgroupBroadcastOp")


def kernel_attribute() -> str:
    """The attribute of a `gpu.func` that is a kernel: `gpu.kernel` up to LLVM 22, and `kernel` after it."""
    from mlir.dialects import gpu

    return getattr(gpu.GPUFuncOp, "KERNEL_ATTR_NAME", "gpu.kernel")


def is_kernel(func: ir.Operation) -> bool:
    """Whether a `gpu.func` is a kernel."""
    attributes = func.attributes
    return "gpu.kernel" in attributes or "kernel" in attributes


def blocks_in(op: ir.Operation) -> list[ir.Block]:
    """The blocks of an op's regions."""
    regions = op.regions
    # Iterating over no regions takes twenty times as long as counting them: the bindings end it by a C++ exception.
    return [block for region in regions for block in region] if len(regions) else []


def loc_tracebacks() -> AbstractContextManager[None]:
    """Let ops have the location of the Python code that builds them; with LLVM 21 locations are unknown."""
    found: AbstractContextManager[None] = getattr(ir, "loc_tracebacks", nullcontext)()
    return found


def tracebacks_leave_out(path: str) -> None:
    """Leave the files below a path out of the locations of `loc_tracebacks`."""
    exclude = getattr(_cext.globals, "register_traceback_file_exclusion", None)
    if exclude is not None:
        exclude(path)


def _pointer(held: Any) -> int:
    """The pointer that an object of the bindings holds."""
    capsule = held._CAPIPtr
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.argtypes, name_of.restype = [ctypes.py_object], ctypes.c_char_p
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return int(get(capsule, name_of(capsule)))


def name_segments(op: ir.Operation) -> None:
    """Rename the attributes with the sizes of an IRDL op's groups from the builder's names to those of IRDL."""
    for which, name in SEGMENTS.items():
        builders = f"{which}SegmentSizes"
        if name != builders and builders in op.attributes:
            op.attributes[name] = op.attributes[builders]
            del op.attributes[builders]


def invalidate(module: ir.Module) -> None:
    """Invalidate the Python objects of a module's ops, before the module is destroyed.

    LLVM 21 keeps track of these objects by the address of the op, and aborts if an op is created at the address of one
    that was destroyed while Python still had an object of it. Later releases do not keep track.
    """
    if _TRACKS_OPERATIONS:
        module.context._clear_live_operations_inside(module.operation)


def load_dialects(module: ir.Module) -> None:
    """Define the dialects of a module of `irdl` ops in its context.

    Raises:
        ImportError: if the bindings cannot.
    """
    try:
        # The module `mlir.dialects.irdl` also defines the ops of IRDL, which takes a millisecond.
        from mlir._mlir_libs._mlirDialectsIRDL import load_dialects as load
    except ImportError:
        _of_cpp(_LOAD_DIALECTS, 1)(_pointer(module.operation))
    else:
        load(module)


def _add_missing() -> None:
    """Add methods and properties of LLVM 22 to the classes of the bindings, where they are missing."""
    missing: dict[type, dict[str, Any]] = {
        ir.OpAttributeMap: {
            "__iter__": lambda self: (name for name, _ in _items(self)),
            "keys": lambda self: [name for name, _ in _items(self)],
            "values": lambda self: [value for _, value in _items(self)],
            "items": lambda self: list(_items(self)),
            "get": lambda self, name, default=None: dict(_items(self)).get(name, default),
        },
        ir.BlockArgument: {"set_location": _set_value_location},
        ir.Operation: {
            "attached": property(lambda self: self.parent is not None),
            "is_before_in_block": _is_before_in_block,
        },
        ir.InsertionPoint: {"after": classmethod(_after)},
        # After LLVM 22 each kind of location has a class of its own instead.
        ir.Location: {
            f"is_a_{kind}": functools.partialmethod(_is_location, name)
            for kind, name in (
                ("file", "FileLineColLoc"),
                ("name", "NameLoc"),
                ("callsite", "CallSiteLoc"),
                ("fused", "FusedLoc"),
            )
        },
    }
    if _TRACKS_OPERATIONS:
        # In LLVM 21 operands are plain values, and not results or block arguments.
        missing[ir.Value] = {
            "arg_number": property(lambda self: ir.BlockArgument(self).arg_number),
            "result_number": property(lambda self: ir.OpResult(self).result_number),
        }
        # The original property returns an object that Python cannot hold.
        ir.Value.context = property(lambda self: self.type.context)
        # The original method does not invalidate the ops inside, whose addresses other ops will have.
        ir.Operation.erase = _erase
        # LLVM 21 returns expressions of the base class only, so that `isinstance` fails.
        results = ir.AffineMap.results
        ir.AffineMap.results = property(lambda self: [_narrowest(e) for e in results.fget(self)])
    _rename_else()
    for cls, members in missing.items():
        for name, member in members.items():
            if not any(name in base.__dict__ for base in cls.__mro__):
                setattr(cls, name, member)
    if ir.Operation.location.fset is None:
        base = next(c for c in ir.Operation.__mro__ if "location" in c.__dict__)
        setattr(base, "location", property(base.__dict__["location"].fget, _set_location))  # noqa: B010


def _erase(op: ir.Operation, erase: Callable[[ir.Operation], None] = ir.Operation.erase) -> None:
    op.context._clear_live_operations_inside(op)
    erase(op)


_LOCATIONS = tuple(ir.Location.__subclasses__())
"""The classes of the kinds of locations, which LLVM 22 and earlier releases do not have."""


def narrowed(location: ir.Location) -> ir.Location:
    """A location as an object of the class of its kind: those of diagnostics are of the base class."""
    if type(location) is not ir.Location:
        return location
    for cls in _LOCATIONS:
        try:
            return cls(location)
        except ValueError:
            pass
    return location


def _is_location(location: ir.Location, name: str) -> bool:
    return isinstance(location, getattr(ir, name))


def _narrowest(e: ir.AffineExpr) -> ir.AffineExpr:
    """An affine expression as an object of its most derived class."""
    narrower = (cls for cls in (*ir.AffineBinaryExpr.__subclasses__(), *ir.AffineExpr.__subclasses__()))
    return next((cls(e) for cls in narrower if cls.isinstance(e)), e)


def _rename_else() -> None:
    """Let `scf.IfOp` take `has_else`, which is `hasElse` in LLVM 21."""
    from mlir.dialects import scf

    init = scf.IfOp.__init__
    if "hasElse" not in inspect.signature(init).parameters:
        return

    def renamed(self: Any, *arguments: Any, has_else: bool = False, **others: Any) -> None:
        init(self, *arguments, hasElse=has_else, **others)

    scf.IfOp.__init__ = renamed


def _items(attributes: Any) -> Iterator[tuple[str, ir.Attribute]]:
    for i in range(len(attributes)):
        named = attributes[i]
        yield named.name, named.attr


def _is_before_in_block(op: ir.Operation, other: ir.Operation) -> bool:
    first = next(o.operation for o in op.block.operations if o.operation in (op.operation, other.operation))
    return bool(first == op.operation)


def _after(cls: type[ir.InsertionPoint], op: ir.Operation) -> ir.InsertionPoint:
    following = list(op.operation.block.operations)
    at = next(i for i, o in enumerate(following) if o.operation == op.operation)
    return cls(following[at + 1]) if at + 1 < len(following) else cls(op.operation.block)


def _set_value_location(value: ir.Value, location: ir.Location) -> None:
    pointer = ctypes.c_void_p(_pointer(value))
    _of_cpp(_SET_LOC, 2)(ctypes.addressof(pointer), _pointer(location))


def _set_location(op: ir.Operation, location: ir.Location) -> None:
    """Set the location of an op: through its first result, or else by replacing the op with a copy."""
    op = op.operation
    if len(op.results):
        _set_value_location(op.results[0], location)
    elif op.parent is not None:
        with ir.InsertionPoint(op):
            made = ir.Operation.create(
                op.name,
                operands=list(op.operands),
                attributes=dict(_items(op.attributes)),
                successors=list(op.successors),
                regions=len(op.regions),
                loc=location,
            )
        for old, new in zip(op.regions, made.regions):
            for block in list(old.blocks):
                block.append_to(new)
        op.erase()


_add_missing()
