"""The layers of a program that was just imported, found by what its ops do with constants.

Front ends write the layers that their framework names. What models write otherwise becomes a layer
here, for all front ends alike: matmuls with a constant (`recognize-layers`), and layers whose
weight is moved or computed from constants (`fold-layer-weights`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.dead_code_elimination import dce

from fewbit.dialects.mico import ConstantOp, GetConstantOp, RefAttr
from fewbit.passes.graph.fold_layer_weights import FoldLayerWeights
from fewbit.passes.graph.recognize_layers import RecognizeLayers
from fewbit.pipeline.compilation import apply_passes
from fewbit.program.program import Program


def find_layers(program: Program) -> Program:
    """Make layers of all that are some, in place; return the program with the weights it needs."""
    before = len(program.store)
    dropped = _drop_unused(program.module)
    program = apply_passes(program, RecognizeLayers(), FoldLayerWeights())
    is_same = len(program.store) == before and not dropped
    return program if is_same else _with_own_weights(program)


def _drop_unused(module: ModuleOp) -> bool:
    """Erase what is computed for nothing, and the weights that only this read, if there are any."""
    before = _names_read(module)
    dce(module)
    unread = before - _names_read(module)
    for op in list(module.body.block.ops):
        if isinstance(op, ConstantOp) and op.sym_name.data in unread:
            module.body.block.erase_op(op)
    return bool(unread)


def _names_read(module: ModuleOp) -> set[str]:
    reads = (op for op in module.walk() if isinstance(op, GetConstantOp))
    return {read.symbol.root_reference.data for read in reads}


def _with_own_weights(program: Program) -> Program:
    """Return a program whose store has what it refers to, under the names of its constants."""
    keys: dict[str, str] = {}
    for constant in program.module.body.block.ops:
        if isinstance(constant, ConstantOp) and isinstance(constant.value, RefAttr):
            name = constant.sym_name.data
            keys[name] = constant.value.key
            constant.properties["value"] = RefAttr(name, constant.value.sha256)
    return Program(program.module, program.store.select(keys), program.recipe)
