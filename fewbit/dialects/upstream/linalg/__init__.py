"""Named linalg ops that xDSL lacks: matmuls, convolutions, poolings, elementwise ops."""

from __future__ import annotations

from xdsl.dialects.linalg import Linalg
from xdsl.ir import Operation

from fewbit.dialects.upstream.extend import extend
from fewbit.dialects.upstream.linalg.matmul import (
    BatchMatmulOp,
    BatchReduceMatmulOp,
    MatmulOp,
)
from fewbit.dialects.upstream.linalg.table import TABLE

NAMED: tuple[type[Operation], ...] = (MatmulOp, BatchMatmulOp, BatchReduceMatmulOp, *TABLE)

DIALECT = extend(Linalg, *NAMED)
