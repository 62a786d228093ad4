"""fewbit: neural networks as mixed-precision programs, 1 to 8 bits a layer.

Names are imported when first used (PEP 562), so `import fewbit` costs milliseconds and loads
no library: a script pays for torch, IREE or xDSL only when it calls something that needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fewbit import errors, models, numerics, quant
    from fewbit.frontends import import_model
    from fewbit.frontends.quantize import quantize
    from fewbit.interpreter import interpret
    from fewbit.ir.parse import parse_module as parse
    from fewbit.ir.verify import verify
    from fewbit.program.program import Program
    from fewbit.program.store import WeightStore
    from fewbit.quant.recipe import Recipe
    from fewbit.runtime import Artifact, load
    from fewbit.runtime.jit import jit
    from fewbit.search.api import search
    from fewbit.targets.compile import compile

__version__ = "0.2.0.dev0"

__all__ = [
    "Artifact",
    "Program",
    "Recipe",
    "WeightStore",
    "__version__",
    "compile",
    "errors",
    "import_model",
    "interpret",
    "jit",
    "load",
    "models",
    "numerics",
    "parse",
    "quant",
    "quantize",
    "search",
    "verify",
]

_HOMES = {
    "Artifact": ("fewbit.runtime", "Artifact"),
    "Program": ("fewbit.program.program", "Program"),
    "Recipe": ("fewbit.quant.recipe", "Recipe"),
    "WeightStore": ("fewbit.program.store", "WeightStore"),
    "compile": ("fewbit.targets.compile", "compile"),
    "errors": ("fewbit.errors", None),
    "import_model": ("fewbit.frontends", "import_model"),
    "interpret": ("fewbit.interpreter", "interpret"),
    "jit": ("fewbit.runtime.jit", "jit"),
    "load": ("fewbit.runtime", "load"),
    "models": ("fewbit.models", None),
    "numerics": ("fewbit.numerics", None),
    "parse": ("fewbit.ir.parse", "parse_module"),
    "quant": ("fewbit.quant", None),
    "quantize": ("fewbit.frontends.quantize", "quantize"),
    "search": ("fewbit.search", None),
    "verify": ("fewbit.ir.verify", "verify"),
}
"""Where each public name lives: its module, and its name there (None: the module itself)."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fewbit' has no attribute {name!r}")
    home, inner = _HOMES[name]
    module = import_module(home)
    value: object = module if inner is None else getattr(module, inner)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
