"""The older name of `xegpu_py.language`, whose values this module had."""

from xegpu_py.language import *  # noqa: F403
