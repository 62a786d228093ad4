"""The quantizable layers of a program, by the names that users know them by."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.utils.hints import isa

from fewbit.dialects.mico import EmbeddingOp, GetConstantOp, QuantizedLayerOp
from fewbit.ir.locations import place_of

WEIGHT = ".weight"
REGISTERED = "fewbit.layers"
"""The module's attribute that the importer leaves: the model's layers in their order."""

Layer = QuantizedLayerOp | EmbeddingOp


def layers(module: ModuleOp) -> dict[str, list[Layer]]:
    """Return the quantizable layers of a module, by name, in the order of its text."""
    by_name: dict[str, list[Layer]] = {}
    for op in module.walk():
        if isinstance(op, QuantizedLayerOp | EmbeddingOp) and (name := layer_name(op)) is not None:
            by_name.setdefault(name, []).append(op)
    return by_name


def layer_name(op: Layer) -> str | None:
    """Return the name of a layer whose weight is a constant; None where it is not.

    It is the constant's, but where the constant is tied to several modules it is the module's.
    """
    read = op.weight.owner
    if not isinstance(read, GetConstantOp):
        return None
    name = read.symbol.root_reference.data
    module = place_of(op).layer
    own = name.removesuffix(WEIGHT)
    if module is None or module == own or not name.endswith(WEIGHT):
        return own
    return module if _is_registered(op, module) else own


def registered_layers(module: Operation) -> list[str]:
    """Return the layers of the model that was imported, in the order in which it registers them."""
    names = module.attributes.get(REGISTERED)
    if not isa(names, ArrayAttr[StringAttr]):
        return []
    return [name.data for name in names]


def _is_registered(op: Operation, name: str) -> bool:
    top: Operation = op
    while (above := top.parent_op()) is not None:
        top = above
    return name in registered_layers(top)
