"""The driver that Triton finds by the entry point group `triton.backends`."""

from xegpu_py.extensions.triton.backend import XeDriver

__all__ = ["XeDriver"]
