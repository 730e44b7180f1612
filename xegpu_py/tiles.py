"""The older name of `xegpu_py.language`, whose tiles and kernels this module had."""

from xegpu_py.language import *  # noqa: F403
