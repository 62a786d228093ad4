"""The functions of a compiled module, with their inputs and outputs, as IREE recorded them."""

from __future__ import annotations

import re

from fewbit.program.artifact import Function, Tensor

_DECLARATION = re.compile(r"@(?P<name>[^(]+)\((?P<inputs>.*)\) -> \((?P<outputs>.*)\)$")
_VALUE = re.compile(r"%(?P<name>[\w.]+): (?P<type>[^%]+?)(?:, (?=%)|$)")
_TORCH = re.compile(r"!torch\.vtensor<\[([\d?,]*)\],(\w+)>")
_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)([\w!.<>]+?)(?:, .*)?>")


def functions_of(module: bytes, text: str = "") -> tuple[Function, ...]:
    """Return the functions that can be called, in the order of the module.

    For functions in the torch dialect IREE does not record their inputs; their text says them.
    """
    from iree.runtime import VmInstance, VmModule

    loaded = VmModule.copy_buffer(VmInstance(), module)
    names = loaded.function_names
    functions: list[Function] = []
    for name in names:
        declared = loaded.lookup_function(name).reflection.get("iree.abi.declaration")
        if declared is not None:
            functions.append(_function(name, declared))
        elif f"{name}$async" in names:
            functions.append(_torch_function(name, text))
    return tuple(functions)


def _torch_function(name: str, text: str) -> Function:
    head = re.search(rf"func\.func @{re.escape(name)}\(([^)]*)\) *->([^{{]*)\{{", text)
    if head is None:
        return Function(name=name, inputs=(), outputs=())
    inputs, outputs = (
        tuple(
            Tensor(
                name=f"{kind}{i}",
                shape=tuple(None if s == "?" else int(s) for s in sizes.split(",") if s),
                element=re.sub(r"^si", "i", element),
            )
            for i, (sizes, element) in enumerate(_TORCH.findall(types))
        )
        for kind, types in (("input", head[1]), ("output", head[2]))
    )
    return Function(name=name, inputs=inputs, outputs=outputs)


def _function(name: str, declared: str) -> Function:
    match = _DECLARATION.search(declared)
    if match is None:  # a function without results has no arrow
        inputs = declared.partition("(")[2].rpartition(")")[0]
        return Function(name=name, inputs=_values(inputs), outputs=())
    return Function(name=name, inputs=_values(match["inputs"]), outputs=_values(match["outputs"]))


def _values(text: str) -> tuple[Tensor, ...]:
    return tuple(_value(m["name"], m["type"].strip()) for m in _VALUE.finditer(text))


def _value(name: str, type: str) -> Tensor:
    match = _TENSOR.match(type)
    if match is None:
        return Tensor(name=name, shape=(), element=type, scalar=True)
    sizes = tuple(None if s == "?" else int(s) for s in match[1].split("x") if s)
    return Tensor(name=name, shape=sizes, element=match[2])
