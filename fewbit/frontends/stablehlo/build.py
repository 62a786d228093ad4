"""Writing StableHLO ops with other StableHLO ops: each is emitted as it is made."""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.frontends.stablehlo.emit import Emitter
from fewbit.frontends.stablehlo.ops import Block, Op, Source, TensorType, Value

Type = TensorType


def array_text(numbers: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>" if numbers else "array<i64>"


class Recorder:
    """Collects ops: the body of a region."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.ops: list[Op] = []

    def add(self, op: Op) -> None:
        self.ops.append(op)


class Builder:
    """Makes ops for an emitter, or for a region that is recorded."""

    def __init__(self, target: Emitter | Recorder, source: Source) -> None:
        self.target = target
        self.source = source

    def op(self, kind: str, type: Type, *operands: Value, **attributes: str) -> Value:
        name = f"stablehlo.{kind}"
        new = Op(name, list(operands), [Value(type)], attributes, [], self.source)
        self.put(new)
        return new.result

    def put(self, op: Op) -> None:
        for operand in op.operands:
            operand.uses += 1
        if isinstance(self.target, Recorder):
            self.target.add(op)
        else:
            self.target.emit(op)

    def number(self, value: int, type: Type) -> Value:
        """A constant, the same everywhere."""
        data = "true" if type.element == "i1" else str(value)
        return self.op("constant", type, value=f"dense<{data}> : {type}")

    def broadcast(self, value: Value, shape: Sequence[int], places: Sequence[int]) -> Value:
        type = value.tensor.of(shape)
        return self.op("broadcast_in_dim", type, value, broadcast_dimensions=array_text(places))

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        return self.op("reshape", value.tensor.of(shape), value)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        type = value.tensor.transpose(order)
        return self.op("transpose", type, value, permutation=array_text(order))

    def iota(self, type: Type, axis: int) -> Value:
        return self.op("iota", type, iota_dimension=f"{axis} : i64")

    def concatenate(self, values: Sequence[Value], axis: int) -> Value:
        shape = list(values[0].tensor.shape)
        shape[axis] = sum(value.tensor.shape[axis] for value in values)
        type = values[0].tensor.of(shape)
        return self.op("concatenate", type, *values, dimension=f"{axis} : i64")

    def convert(self, value: Value, element: str) -> Value:
        if value.tensor.element == element:
            return value
        return self.op("convert", Type(value.tensor.shape, element), value)

    def compare(self, direction: str, a: Value, b: Value, kind: str = "SIGNED") -> Value:
        return self.op(
            "compare",
            Type(a.tensor.shape, "i1"),
            a,
            b,
            comparison_direction=f"#stablehlo<comparison_direction {direction}>",
            compare_type=f"#stablehlo<comparison_type {kind}>",
        )

    def both(self, a: Value, b: Value) -> Value:
        return self.op("and", a.tensor, a, b)

    def either(self, a: Value, b: Value) -> Value:
        return self.op("or", a.tensor, a, b)

    def negate(self, a: Value) -> Value:
        return self.op("not", a.tensor, a)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        return self.op("select", yes.tensor, condition, yes, no)

    def sum_of_last(self, value: Value) -> Value:
        """The sum along the last dimension."""
        scalar = value.tensor.of(())
        recorder = Recorder(self.source)
        a, b = Value(scalar), Value(scalar)
        inner = Builder(recorder, self.source)
        inner.put(Op("stablehlo.return", [inner.op("add", scalar, a, b)], [], {}, [], self.source))
        body = Block([a, b], recorder.ops)
        last = value.tensor.rank - 1
        op = Op(
            "stablehlo.reduce",
            [value, self.number(0, scalar)],
            [Value(value.tensor.of(value.tensor.shape[:-1]))],
            {"dimensions": array_text([last])},
            [body],
            self.source,
        )
        self.put(op)
        return op.result

    def lift(self, body: Block, arguments: Sequence[Value]) -> list[Value]:
        """Do what a region of scalars does for all elements of tensors of one shape."""
        shape = arguments[0].tensor.shape
        values = dict(zip(body.arguments, arguments, strict=True))
        for op in body.ops[:-1]:
            if op.kind == "constant":
                scalar = self.op("constant", op.result.tensor, **op.attributes)
                values[op.result] = self.broadcast(scalar, shape, [])
                continue
            given = [values.get(o) or self.broadcast(o, shape, []) for o in op.operands]
            type = op.result.tensor.of(shape)
            values[op.result] = self.op(op.kind, type, *given, **op.attributes)
        return [values.get(v) or self.broadcast(v, shape, []) for v in body.returned]
