"""What the database has, as a tuning spec of IREE's: a module that its compiler takes as a flag.

A spec names ops as they stand in a dispatch before IREE configures it. Plain matmuls of floats can
be said so. Convolutions cannot: IREE gives them other loops after it has looked at the spec.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fewbit.tune.database import Database, Result
from fewbit.tune.iree.configured import FUSED
from fewbit.tune.iree.tuning import TARGET
from fewbit.tune.schedule import Schedule

_LOOPS = re.compile(r"(\d+)([pr])")
_OPERAND = re.compile(r"([io]):(f32|f64|f16|bf16)\[([d\d,]+)\]")
_BODY = re.compile(r"\{arith\.addf,arith\.mulf\}")


@dataclass(frozen=True)
class Matmul:
    """A matmul of floats, as a signature has it."""

    extents: tuple[int, ...]
    kinds: tuple[str, ...]
    element: str
    indices: tuple[tuple[int, ...], ...]
    """The loop of each dimension of the inputs and the output."""

    @classmethod
    def of(cls, signature: str) -> Matmul | None:
        """Return the matmul that a signature has; None for anything else."""
        op = signature.partition(FUSED)[0]
        loops, _, fused = op.partition(" ")
        operands = _OPERAND.findall(fused)
        if len(operands) != 3 or fused.count(":") != 3 or not _BODY.search(fused):
            return None
        if len({element for _, element, _ in operands}) != 1:
            return None
        pairs = _LOOPS.findall(loops)
        indices = tuple(tuple(int(d[1:]) for d in text.split(",")) for *_, text in operands)
        kinds = tuple("parallel" if kind == "p" else "reduction" for _, kind in pairs)
        return cls(tuple(int(n) for n, _ in pairs), kinds, operands[0][1], indices)


def tuning_spec(database: Database) -> tuple[str, int, int]:
    """Return the text of a spec, how many ops are in it, and how many could not be said."""
    results = [r for r in database.results(TARGET) if r.schedule is not None]
    matmuls: dict[Matmul, Result] = {}
    for result in results:
        matmul = Matmul.of(result.key.signature)
        if matmul is not None:
            matmuls.setdefault(matmul, result)
    matchers = [
        _matcher(f"match_{i}", matmul, result.schedule)
        for i, (matmul, result) in enumerate(matmuls.items())
        if result.schedule is not None
    ]
    pairs = ",\n        ".join(f"@match_{i} -> @apply" for i in range(len(matchers)))
    text = _MODULE.format(matchers="\n".join(matchers), pairs=pairs) if matchers else _EMPTY
    return text, len(matchers), len(results) - len(matchers)


def _matcher(name: str, matmul: Matmul, schedule: Schedule) -> str:
    dims = ", ".join(f"d{i}" for i in range(len(matmul.extents)))
    maps = ", ".join(
        f"affine_map<({dims}) -> ({', '.join(f'd{i}' for i in index)})>" for index in matmul.indices
    )
    kinds = ", ".join(f'"{kind}"' for kind in matmul.kinds)
    a, b, c = (
        f"tensor<{'x'.join(str(matmul.extents[i]) for i in index)}x{matmul.element}>"
        for index in matmul.indices
    )
    levels = {
        "distribution": list(schedule.distribution),
        "vector_common_parallel": _only(schedule, matmul, "parallel"),
        "vector_reduction": _only(schedule, matmul, "reduction"),
    }
    config = ", ".join(f"{level} = {sizes}" for level, sizes in levels.items())
    return _MATCHER.format(
        name=name, a=a, b=b, c=c, maps=maps, kinds=kinds, element=matmul.element, config=config
    )


def _only(schedule: Schedule, matmul: Matmul, kind: str) -> list[int]:
    pairs = zip(schedule.vector, matmul.kinds, strict=True)
    return [size if k == kind else 0 for size, k in pairs]


_EMPTY = "module @tuning attributes {transform.with_named_sequence} {\n}\n"
_MATCHER = """\
  transform.named_sequence @{name}(%root: !transform.any_op {{transform.readonly}})
      -> (!transform.any_op, !transform.any_param) {{
    %ins, %outs = transform.iree.match.cast_compatible_dag_from_root %root {{
    ^bb0(%a: {a}, %b: {b}, %c: {c}):
      %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
          ins(%a, %b : {a}, {b}) outs(%c : {c}) {{
      ^bb0(%x: {element}, %y: {element}, %z: {element}):
        %p = arith.mulf %x, %y : {element}
        %s = arith.addf %z, %p : {element}
        linalg.yield %s : {element}
      }} -> {c}
    }} : (!transform.any_op) -> (!transform.any_value, !transform.any_value)
    %config = transform.param.constant #iree_codegen.compilation_info<
        lowering_config = #iree_cpu.lowering_config<{config}>,
        translation_info = #iree_codegen.translation_info<
            pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>> -> !transform.any_param
    transform.yield %root, %config : !transform.any_op, !transform.any_param
  }}"""
_MODULE = """\
module @tuning attributes {{
    iree_codegen.tuning_spec_with_default_entrypoint, transform.with_named_sequence}} {{
  transform.named_sequence @apply(%op: !transform.any_op {{transform.readonly}},
      %config: !transform.any_param {{transform.readonly}}) {{
    transform.annotate %op "compilation_info" = %config : !transform.any_op, !transform.any_param
    transform.yield
  }}
{matchers}
  transform.named_sequence @__kernel_config(%variant: !transform.any_op {{transform.consumed}})
      -> !transform.any_op attributes {{iree_codegen.tuning_spec_entrypoint}} {{
    %done = transform.foreach_match in %variant
        {pairs}
        : (!transform.any_op) -> !transform.any_op
    transform.yield %done : !transform.any_op
  }}
}}
"""
