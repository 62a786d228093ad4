"""Matmuls, whose indexing maps may transpose or broadcast.

xDSL's `linalg.matmul` prints without its maps, and its body does not convert factors that are
narrower than the sum; both are corrected here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import MatmulOp as PlainMatmulOp
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from fewbit.dialects.upstream.linalg.bodies import multiply_add, region


def _maps(loops: str, *subscripts: str) -> ArrayAttr[AffineMapAttr]:
    return ArrayAttr(
        AffineMapAttr(
            AffineMap(len(loops), 0, tuple(AffineDimExpr(loops.index(s)) for s in operand))
        )
        for operand in subscripts
    )


_MATMUL = _maps("mnk", "mk", "kn", "mn")
_BATCH = _maps("bmnk", "bmk", "bkn", "bmn")
_BATCH_REDUCE = _maps("bmnk", "bmk", "bkn", "mn")


def _parse_maps(parser: Parser) -> Attribute | None:
    if parser.parse_optional_keyword("indexing_maps") is None:
        return None
    parser.parse_punctuation("=")
    return parser.parse_attribute()


def _print_maps(printer: Printer, maps: Attribute, usual: Attribute) -> None:
    if maps != usual:
        printer.print_string(" indexing_maps = ")
        printer.print_attribute(maps)


class MatmulOp(PlainMatmulOp):
    """A matmul."""

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return region(multiply_add, (*inputs, *outputs))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        maps = _parse_maps(parser)
        op = super().parse(parser)
        op.properties["indexing_maps"] = maps or _MATMUL
        return op

    def print(self, printer: Printer) -> None:
        _print_maps(printer, self.indexing_maps, _MATMUL)
        super().print(printer)


class BatchOperation(NamedOperation):
    """A matmul over batches."""

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True

    @property
    @abstractmethod
    def maps(self) -> ArrayAttr[AffineMapAttr]: ...

    @classmethod
    @abstractmethod
    def usual_maps(cls) -> ArrayAttr[AffineMapAttr]: ...

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return region(multiply_add, (*inputs, *outputs))

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        return tuple(m.data for m in self.maps)

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        return self.maps

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        output = self.maps.data[-1].data
        return ArrayAttr(
            IteratorTypeAttr.parallel() if used else IteratorTypeAttr.reduction()
            for used in output.used_dims_bit_vector()
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        maps = _parse_maps(parser)
        op = super().parse(parser)
        op.properties["indexing_maps"] = maps or cls.usual_maps()
        return op

    def print(self, printer: Printer) -> None:
        _print_maps(printer, self.maps, self.usual_maps())
        super().print(printer)


@irdl_op_definition
class BatchMatmulOp(BatchOperation):
    """One matmul for each batch."""

    name = "linalg.batch_matmul"

    indexing_maps = prop_def(ArrayAttr[AffineMapAttr], default_value=_BATCH)

    @property
    def maps(self) -> ArrayAttr[AffineMapAttr]:
        return self.indexing_maps

    @classmethod
    def usual_maps(cls) -> ArrayAttr[AffineMapAttr]:
        return _BATCH


@irdl_op_definition
class BatchReduceMatmulOp(BatchOperation):
    """The sum of the matmuls of all batches."""

    name = "linalg.batch_reduce_matmul"

    indexing_maps = prop_def(ArrayAttr[AffineMapAttr], default_value=_BATCH_REDUCE)

    @property
    def maps(self) -> ArrayAttr[AffineMapAttr]:
        return self.indexing_maps

    @classmethod
    def usual_maps(cls) -> ArrayAttr[AffineMapAttr]:
        return _BATCH_REDUCE
