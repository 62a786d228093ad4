"""Scaled dot-product attention, with each of its parts perhaps quantized.

    softmax(q · kᵀ · scale + mask) · v

Queries, keys and values are quantized by the token: q · kᵀ is an exact integer matmul, scaled by
both tokens' scales. Scores are quantized by the row after the softmax. The second matmul reduces
over tokens, whose scales differ, and is therefore one of floats: the rounded values times their
scales.
"""

from __future__ import annotations

from math import isfinite
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, i1
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.constraints import (
    F64,
    AnyTensor,
    Flag,
    FloatTensor,
    WidthAttr,
    check_width,
    read_width,
)
from fewbit.dialects.mico.shapes import DYNAMIC, Shape, broadcast, compatible, require, show
from fewbit.dialects.mico.syntax import LayerOp
from fewbit.dialects.mico.types import element_type, is_float_tensor, shape_of, tensor
from fewbit.numerics.integer import check_accumulator


@irdl_op_definition
class AttentionOp(LayerOp):
    """Attention over ... x tokens x head size; fewer key heads than query heads are repeated."""

    name = "mico.attention"

    CLAUSES: ClassVar[tuple[str, ...]] = ("mask",)
    DEFAULTS: ClassVar[dict[str, Attribute]] = {"causal": BoolAttr.from_bool(False)}

    query = operand_def(FloatTensor)
    key = operand_def(FloatTensor)
    value = operand_def(FloatTensor)
    mask = opt_operand_def(AnyTensor)
    causal = prop_def(Flag)
    scale = opt_prop_def(F64)
    query_bits = opt_prop_def(WidthAttr)
    key_bits = opt_prop_def(WidthAttr)
    value_bits = opt_prop_def(WidthAttr)
    score_bits = opt_prop_def(WidthAttr)
    result = result_def(FloatTensor)

    def output_type(self) -> Attribute:
        q, k, v = (shape_of(x.type) for x in (self.query, self.key, self.value))
        if len(q) < 2 or len(k) != len(q) or len(v) != len(q):
            raise VerifyException(
                "query, key and value have one rank of at least 2, not "
                f"{show(q)}, {show(k)} and {show(v)}"
            )
        require(q[-1:], k[-1:], "the head size of the key")
        require(k[:-1], v[:-1], "the value")
        self._verify_heads(q, k)
        return tensor(element_type(self.query.type), (*q[:-1], v[-1]))

    def verify_(self) -> None:
        super().verify_()
        q, k = shape_of(self.query.type), shape_of(self.key.type)
        self._verify_mask((*q[:-1], k[-2]))
        self._verify_widths(q[-1])

    def _verify_heads(self, q: Shape, k: Shape) -> None:
        if compatible(q[:-2], k[:-2]):
            return
        if len(q) < 3:
            raise VerifyException(f"the key, {show(k)}, does not fit the query, {show(q)}")
        *batch, q_heads = q[:-2]
        *k_batch, k_heads = k[:-2]
        if not compatible(batch, k_batch) or k_heads < 1 or q_heads % k_heads != 0:
            raise VerifyException(f"heads of the key, {show(k)}, do not divide those of {show(q)}")

    def _verify_mask(self, scores: Shape) -> None:
        if self.mask is None:
            return
        mask = self.mask.type
        if not is_float_tensor(mask) and element_type(mask) != i1:
            raise VerifyException(f"a mask is added floats, or i1 that keeps, not {mask}")
        require(scores, broadcast(scores, shape_of(mask)), "scores with the mask")

    def _verify_widths(self, head_size: int) -> None:
        if self.scale is not None and not isfinite(self.scale.value.data):
            raise VerifyException("scale is a finite number")
        for name in ("query_bits", "key_bits", "value_bits", "score_bits"):
            check_width(name, getattr(self, name))
        if (self.query_bits is None) != (self.key_bits is None):
            raise VerifyException("query_bits and key_bits go together: the matmul is of integers")
        if self.query_bits is None or self.key_bits is None or head_size == DYNAMIC:
            return
        check_accumulator(head_size, read_width(self.query_bits), read_width(self.key_bits))
