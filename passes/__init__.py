"""The passes: one file or folder each, named like the pass, which is imported when a pipeline names it.

Passes share `rewriting` (how IR is changed) and `analysis` (questions about it); no pass imports another.
"""

from pkgutil import iter_modules

from xegpu_py.ir.passes import declare_passes

_PIPELINES = (
    "xegpu-legalize",
    "xegpu-to-visa-pipeline",
    "xetile-blocking",
    "xetile-to-visa-pipeline",
    "xetile-to-xegpu-pipeline",
)

_FILES = {module.name for module in iter_modules(__path__)} - {"analysis", "pipelines", "rewriting"}

declare_passes({name.replace("_", "-"): f"{__name__}.{name}" for name in _FILES})
declare_passes(dict.fromkeys(_PIPELINES, f"{__name__}.pipelines"))
