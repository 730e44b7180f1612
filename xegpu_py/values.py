"""An alias of `xegpu_py.language`; this module used to define its values."""

from xegpu_py.language import *  # noqa: F403
