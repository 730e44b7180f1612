"""The former names of attribute codecs (`xegpu_py.ir.codecs`, `xegpu_py.ir.definition`)."""

from xegpu_py.ir.codecs import AttributeCodec as Kind
from xegpu_py.ir.codecs import BoolCodec as BoolKind
from xegpu_py.ir.codecs import IntArrayCodec as IntArrayKind
from xegpu_py.ir.codecs import IntCodec as IntKind
from xegpu_py.ir.codecs import IntEnumCodec as IntEnumKind
from xegpu_py.ir.codecs import NumberCodec as NumberKind
from xegpu_py.ir.codecs import Scope, TypeText, Unit, register_int_enum
from xegpu_py.ir.codecs import StringCodec as StringKind
from xegpu_py.ir.codecs import TypeCodec as TypeKind
from xegpu_py.ir.codecs import UnitCodec as UnitKind
from xegpu_py.ir.codecs import WordCodec as WordKind
from xegpu_py.ir.codecs import codec_of as kind_of
from xegpu_py.ir.constraints import Emitter
from xegpu_py.ir.definition import AttrCodec as AttrKind
from xegpu_py.ir.definition import EnumCodec as EnumKind
from xegpu_py.ir.definition import enum_attr

__all__ = [
    "AttrKind",
    "BoolKind",
    "Emitter",
    "EnumKind",
    "IntArrayKind",
    "IntEnumKind",
    "IntKind",
    "Kind",
    "NumberKind",
    "Scope",
    "StringKind",
    "TypeKind",
    "TypeText",
    "Unit",
    "UnitKind",
    "WordKind",
    "enum_attr",
    "kind_of",
    "register_int_enum",
]
