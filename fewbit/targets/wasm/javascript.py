"""The files around a module: a JavaScript module, its types, and what makes them a package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from fewbit import __version__
from fewbit.codegen.interface import Interface, Port
from fewbit.targets.wasm.engine import Engine
from fewbit.targets.wasm.memory import MemoryMap

_ARRAYS = {
    "f32": "Float32Array", "f64": "Float64Array", "f16": "Uint16Array", "bf16": "Uint16Array",
    "i1": "Uint8Array", "i8": "Int8Array", "i16": "Int16Array", "i32": "Int32Array",
    "i64": "BigInt64Array", "ui8": "Uint8Array", "ui16": "Uint16Array", "ui32": "Uint32Array",
    "ui64": "BigUint64Array", "si8": "Int8Array", "si16": "Int16Array", "si32": "Int32Array",
    "si64": "BigInt64Array", "index": "Int32Array",
}  # fmt: skip
_FEATURES = {"wasm": "", "wasm:simd": "SIMD", "wasm:relaxed": "relaxed SIMD"}


@cache
def web_file(name: str) -> str:
    """Return a file of the folder `web`."""
    return files("fewbit.targets.wasm").joinpath("web", name).read_text(encoding="utf-8")


def describe(
    interface: Interface, engine: Engine, places: MemoryMap, recipe: str | None
) -> dict[str, Any]:
    """Return what a module takes and gives, for JavaScript."""
    return {
        "name": interface.name,
        "recipe": recipe or "float",
        "features": _FEATURES[engine.name],
        "inputs": [_port(*each) for each in zip(interface.inputs, places.inputs, strict=True)],
        "outputs": [_port(*each) for each in zip(interface.outputs, places.outputs, strict=True)],
    }


def _port(port: Port, address: int) -> dict[str, Any]:
    return {
        "name": port.name,
        "shape": list(port.shape),
        "type": port.element,
        "array": _ARRAYS[port.element],
        "address": address,
        "length": port.elements,
    }


def script(description: dict[str, Any]) -> str:
    """Return the JavaScript module."""
    text = web_file("model.js")
    given = {
        "name": description["name"],
        "version": __version__,
        "description": json.dumps(description, indent=2),
    }
    for name, value in given.items():
        text = text.replace(f"@{name}@", value)
    return text


def types(description: dict[str, Any]) -> str:
    """Return the types of the JavaScript module."""
    lines = [_interface("Inputs", description["inputs"], is_input=True)]
    lines.append(_interface("Outputs", description["outputs"], is_input=False))
    lines.append(_interface("InputViews", description["inputs"], is_input=False))
    given = [_accepted(port) for port in description["inputs"]]
    one = f" | {given[0]}" if len(given) == 1 else ""
    return web_file("model.d.ts").replace("@interfaces@", "\n".join(lines)).replace("@one@", one)


def _interface(name: str, ports: list[dict[str, Any]], *, is_input: bool) -> str:
    fields = [
        f"  /** {'x'.join(map(str, port['shape'])) or 'a number'} of {port['type']} */\n"
        f"  {port['name']}: {_accepted(port) if is_input else port['array']};\n"
        for port in ports
    ]
    return f"export interface {name} {{\n{''.join(fields)}}}\n"


def _accepted(port: dict[str, Any]) -> str:
    number = "bigint" if port["array"].startswith("Big") else "number"
    return f"ArrayLike<{number}>"


def package(description: dict[str, Any]) -> str:
    """Return a package.json: without it, node takes files that end with .js for scripts."""
    name = description["name"].lower().replace("_", "-")
    return json.dumps(
        {
            "name": name,
            "version": "1.0.0",
            "private": True,
            "type": "module",
            "main": "model.js",
            "types": "model.d.ts",
            "files": ["model.js", "model.d.ts", "model.wasm"],
        },
        indent=2,
    )
