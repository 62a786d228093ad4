"""The `graph` dialect: a model's module hierarchy, kept as subgraphs and calls.

A subgraph is named after the module that it came from (`@model.layers.0.mlp`) and may be placed
on a device; the pass `place-devices` makes a `graph.transfer` of every value that crosses.
Subgraphs form no cycle: they are structure, not recursion. The dialect holds hierarchy and
placement and nothing else, so any dialect's ops may stand inside.

    graph.subgraph @model.layers.0.mlp on <npu>(%x: tensor<1x?x256xf32>) -> tensor<1x?x256xf32> {
      %y = mico.relu(%x) : (tensor<1x?x256xf32>) -> tensor<1x?x256xf32>
      graph.return %y : tensor<1x?x256xf32>
    }
    %y = graph.call @model.layers.0.mlp(%x) : (tensor<1x?x256xf32>) -> tensor<1x?x256xf32>
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects.builtin import (
    FlatSymbolRefAttrConstr,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    CallableOpInterface,
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    ReturnLike,
    SymbolOpInterface,
    SymbolUserOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.traits import Canonicalizes
from fewbit.ir.symbols import lookup

DEVICE_NAME = re.compile(r"[A-Za-z_][\w.$-]*(:[\w.-]+)?", re.ASCII)
"""A kind of device, and perhaps which: `npu`, `gpu:1`, `iree-cpu`, `cpu:x86-64-v3`."""


class SubgraphCallable(CallableOpInterface):
    @classmethod
    def get_callable_region(cls, op: Operation) -> Region:
        assert isinstance(op, SubgraphOp)
        return op.body

    @classmethod
    def get_argument_types(cls, op: Operation) -> tuple[Attribute, ...]:
        assert isinstance(op, SubgraphOp)
        return op.function_type.inputs.data

    @classmethod
    def get_result_types(cls, op: Operation) -> tuple[Attribute, ...]:
        assert isinstance(op, SubgraphOp)
        return op.function_type.outputs.data


@irdl_op_definition
class SubgraphOp(IRDLOperation):
    """A module of the model: a named, isolated, single-block function on one device."""

    name = "graph.subgraph"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    device = opt_prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(
        HasParent(ModuleOp), IsolatedFromAbove(), SymbolOpInterface(), SubgraphCallable()
    )

    def __init__(
        self,
        name: str,
        function_type: FunctionType | tuple[Sequence[Attribute], Sequence[Attribute]],
        body: Region | None = None,
        device: str | None = None,
    ) -> None:
        if isinstance(function_type, tuple):
            function_type = FunctionType.from_lists(*function_type)
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type,
                "device": None if device is None else StringAttr(device),
            },
            regions=[body or Region(Block(arg_types=function_type.inputs))],
        )

    @property
    def device_name(self) -> str | None:
        return None if self.device is None else self.device.data

    @property
    def return_op(self) -> ReturnOp:
        last = self.body.block.last_op
        assert isinstance(last, ReturnOp)
        return last

    def verify_(self) -> None:
        _verify_device(self.device)
        if self.function_type.inputs.data != tuple(self.body.block.arg_types):
            raise VerifyException(
                "the entry block's arguments differ from the inputs of the signature "
                f"{self.function_type}"
            )
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException("the body must end in graph.return")

    @classmethod
    def parse(cls, parser: Parser) -> SubgraphOp:
        name = parser.parse_symbol_name().data
        device = _parse_device(parser) if parser.parse_optional_keyword("on") else None
        arguments = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _parse_argument(parser), " in subgraph argument list"
        )
        results: Sequence[Attribute] = (
            _parse_results(parser) if parser.parse_optional_punctuation("->") else ()
        )
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(arguments)
        op = SubgraphOp(name, ([a.type for a in arguments], results), body, device)
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.device is not None:
            printer.print_string(f" on <{self.device.data}>")
        printer.print_string("(")
        printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(")")
        outputs = self.function_type.outputs.data
        if outputs:
            printer.print_string(" -> ")
            _print_types(printer, outputs)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


class CallsSubgraph(SymbolUserOpInterface):
    def verify(self, op: Operation) -> None:
        assert isinstance(op, CallOp)
        callee = lookup(op, op.callee)
        if callee is None:
            raise VerifyException(f"no graph.subgraph is named {op.callee}")
        if not isinstance(callee, SubgraphOp):
            raise VerifyException(f"{op.callee} is a {callee.name}, not a graph.subgraph")
        signature = FunctionType.from_lists(op.operand_types, op.result_types)
        if signature != callee.function_type:
            raise VerifyException(
                f"{op.callee} has the signature {callee.function_type}, called as {signature}"
            )


@irdl_op_definition
class CallOp(IRDLOperation):
    """A call of a subgraph."""

    name = "graph.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()
    res = var_result_def()

    traits = traits_def(CallsSubgraph())

    def __init__(
        self,
        callee: str | SymbolRefAttr,
        arguments: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
    ) -> None:
        if isinstance(callee, str):
            callee = SymbolRefAttr(callee)
        super().__init__(
            operands=[arguments], result_types=[result_types], properties={"callee": callee}
        )

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        callee = parser.parse_symbol_name().data
        operands = parser.parse_op_args_list()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        signature = parser.parse_function_type()
        arguments = parser.resolve_operands(operands, signature.inputs.data, position)
        op = CallOp(callee, arguments, signature.outputs.data)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.root_reference.data)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(FunctionType.from_lists(self.operand_types, self.result_types))


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """The results of a subgraph."""

    name = "graph.return"

    arguments = var_operand_def()

    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    traits = traits_def(HasParent(SubgraphOp), IsTerminator(), ReturnLike())

    def __init__(self, *arguments: SSAValue | Operation) -> None:
        super().__init__(operands=[arguments])

    def verify_(self) -> None:
        parent = self.parent_op()
        assert isinstance(parent, SubgraphOp)
        expected = parent.function_type.outputs.data
        if expected != tuple(self.operand_types):
            given = ", ".join(str(t) for t in self.operand_types)
            wanted = ", ".join(str(t) for t in expected)
            raise VerifyException(
                f"returns ({given}) from @{parent.sym_name.data}, whose signature says ({wanted})"
            )


@irdl_op_definition
class TransferOp(IRDLOperation):
    """A value moved from one device to another; its content is unchanged."""

    name = "graph.transfer"

    source = operand_def()
    from_device = prop_def(StringAttr)
    to_device = prop_def(StringAttr)
    result = result_def()

    traits = traits_def(Pure(), Canonicalizes())

    def __init__(self, source: SSAValue | Operation, from_device: str, to_device: str) -> None:
        source = SSAValue.get(source)
        super().__init__(
            operands=[source],
            result_types=[source.type],
            properties={
                "from_device": StringAttr(from_device),
                "to_device": StringAttr(to_device),
            },
        )

    def verify_(self) -> None:
        _verify_device(self.from_device)
        _verify_device(self.to_device)
        if self.from_device == self.to_device:
            raise VerifyException(f"transfers from <{self.from_device.data}> to itself")
        if self.source.type != self.result.type:
            raise VerifyException(f"changes the type from {self.source.type} to {self.result.type}")

    @classmethod
    def parse(cls, parser: Parser) -> TransferOp:
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("from")
        from_device = _parse_device(parser)
        parser.parse_keyword("to")
        to_device = _parse_device(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        op = TransferOp(parser.resolve_operand(source, type), from_device, to_device)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(f" from <{self.from_device.data}> to <{self.to_device.data}>")
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)


def _verify_device(device: StringAttr | None) -> None:
    if device is not None and not DEVICE_NAME.fullmatch(device.data):
        raise VerifyException(f"'{device.data}' is not a device name such as cpu, npu or gpu:1")


def _parse_device(parser: Parser) -> str:
    """Return a device in angle brackets, as it is written: its name may be several tokens."""
    parser.parse_punctuation("<", " before the device name")
    start = end = parser.pos
    while any(parse() is not None for parse in _device_tokens(parser)):
        end = parser.pos
    name = parser.lexer.input.content[start:end].strip()
    if not DEVICE_NAME.fullmatch(name):
        parser.raise_error(f"'{name}' is not a device name", start, max(end, start + 1))
    parser.parse_punctuation(">", " after the device name")
    return name


def _device_tokens(parser: Parser) -> Iterable[Callable[[], object]]:
    """Yield what parses a token of a device's name, if it is the next."""
    yield parser.parse_optional_identifier
    yield lambda: parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    yield lambda: parser.parse_optional_punctuation(":")
    yield lambda: parser.parse_optional_punctuation("-")


def _parse_argument(parser: Parser) -> Parser.Argument:
    argument = parser.parse_argument()
    argument.location = parser.parse_optional_location()
    return argument


def _parse_results(parser: Parser) -> Sequence[Attribute]:
    several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return several if several is not None else [parser.parse_type()]


def _print_types(printer: Printer, types: Iterable[Attribute]) -> None:
    types = tuple(types)
    if len(types) == 1 and not isinstance(types[0], FunctionType):
        printer.print_attribute(types[0])
        return
    with printer.in_parens():
        printer.print_list(types, printer.print_attribute)


Graph = Dialect("graph", [SubgraphOp, CallOp, ReturnOp, TransferOp])
