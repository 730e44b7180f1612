"""An alias of `xegpu_py.language`; this module used to define its tiles and kernels."""

from xegpu_py.language import *  # noqa: F403
