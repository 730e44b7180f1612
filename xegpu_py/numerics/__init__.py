"""Number formats and golden arithmetic on bit patterns, in numpy."""

from xegpu_py.numerics.dpas import dpas
from xegpu_py.numerics.fcvt import fcvt
from xegpu_py.numerics.srnd import srnd

__all__ = ["dpas", "fcvt", "srnd"]
