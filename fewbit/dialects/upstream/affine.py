"""affine ops that xDSL lacks."""

from __future__ import annotations

from xdsl.dialects.affine import Affine, MinOp
from xdsl.irdl import irdl_op_definition

from fewbit.dialects.upstream.extend import extend


@irdl_op_definition
class MaxOp(MinOp):
    """The largest result of an affine map."""

    name = "affine.max"


DIALECT = extend(Affine, MaxOp)
