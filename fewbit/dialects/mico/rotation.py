"""Rotation of activations, which takes outliers from them before they are quantized."""

from __future__ import annotations

from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.constraints import I32, FloatTensor
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.dialects.mico.syntax import LayerOp
from fewbit.dialects.mico.types import shape_of
from fewbit.errors import Error
from fewbit.numerics.hadamard import check_block, check_size


@irdl_op_definition
class HadamardOp(LayerOp):
    """Blocks of the last dimension times an orthonormal Hadamard matrix, its own inverse."""

    name = "mico.hadamard"

    input = operand_def(FloatTensor)
    block = prop_def(I32)
    result = result_def(FloatTensor)

    def output_type(self) -> Attribute:
        return self.input.type

    def verify_(self) -> None:
        super().verify_()
        shape, block = shape_of(self.input.type), self.block.value.data
        if not shape:
            raise VerifyException("the input needs at least one dimension")
        try:
            check_size(block) if shape[-1] == DYNAMIC else check_block(block, shape[-1])
        except Error as e:
            raise VerifyException(e.what) from None
