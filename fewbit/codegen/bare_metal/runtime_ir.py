"""What compiled code may call that no library provides, from `runtime/bare_metal.c`."""

from __future__ import annotations

import re

from fewbit.codegen import runtime
from fewbit.codegen.bare_metal.processor import Processor


def runtime_ir(processor: Processor) -> str:
    """Return LLVM IR of the functions, as a module of its own."""
    return runtime.runtime_ir("bare_metal", f"rv{processor.xlen}")


def names(text: str) -> list[str]:
    """Return the functions that others may call."""
    return re.findall(r"^define (?!internal)[^@]*@(\w+)", text, re.MULTILINE)
