"""A page in which a network can be tried: one file with the module inside, which needs no server.

It has a sample with what the interpreter says of it, so every browser that shows the page says
whether it computes the same.
"""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from fewbit.program.program import Program
from fewbit.program.signature import TensorSpec
from fewbit.targets.mcu.fix_sizes import one_sample
from fewbit.targets.wasm.javascript import script, web_file

Array = np.ndarray[Any, Any]


def page(
    description: dict[str, Any], module: bytes, program: Program, labels: Sequence[str]
) -> str:
    """Return the page of a module."""
    random = np.random.default_rng(0)
    inputs = [_made_up(random, spec) for spec in one_sample(program).inputs]
    embedded = {
        "wasm": _text(module),
        "inputs": [_text(array.tobytes()) for array in inputs],
        "outputs": [_text(np.asarray(each).tobytes()) for each in program.run(*inputs)],
        "labels": list(labels),
    }
    given = {
        "title": html.escape(description["name"]),
        "script": script(description),
        "embedded": json.dumps(embedded),
        "page": web_file("page.js"),
    }
    text = web_file("index.html")
    for name, value in given.items():
        text = text.replace(f"@{name}@", value.replace("</script", "<\\/script"))
    return text


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _made_up(random: np.random.Generator, spec: TensorSpec) -> Array:
    shape = [size or 1 for size in spec.shape or ()]
    if spec.dtype.kind == "f":
        return random.standard_normal(shape).astype(spec.dtype)
    return np.zeros(shape, spec.dtype)
