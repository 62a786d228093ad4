"""A PyTorch module as a functional graph of ATen ops.

`torch.export` traces the module; decompositions then make updates in place explicit and leave core
ATen ops, but `linear`, `conv2d`, `layer_norm` and all others that have an op of ours stay whole.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import torch
from torch import nn
from torch.export import ExportedProgram

from fewbit.base.files import PathLike
from fewbit.decompositions.constant_reads import Read, record_reads
from fewbit.decompositions.fold_weights import fold_weights
from fewbit.decompositions.functions import ReplaceFunctions
from fewbit.decompositions.grouped_experts import expert_decompositions
from fewbit.decompositions.packed_sequences import packed_as_padded
from fewbit.decompositions.rewrite_nodes import rewrite_nodes
from fewbit.decompositions.table import own_decompositions
from fewbit.errors import Error, Place, UnsupportedError
from fewbit.frontends.torch import aten
from fewbit.frontends.torch.complex_numbers import rewrite_complex
from fewbit.frontends.torch.idle_casts import skip_idle_casts
from fewbit.frontends.torch.nan_order import tell_nan
from fewbit.frontends.torch.open_dims import export_open, sizes_of_any_kind
from fewbit.frontends.torch.plain_calls import plain_calls
from fewbit.frontends.torch.settle import first_line, settle
from fewbit.frontends.torch.structure import clone_tensors
from fewbit.frontends.torch.unsigned import rewrite_unsigned

KEPT = ("group_norm", "native_group_norm")
"""Ops that torch-mlir knows, and whose decomposition it does not."""


@dataclass(frozen=True)
class Captured:
    """The graph of a module, and what the module calls its results."""

    program: ExportedProgram
    output_names: list[str | None] = field(default_factory=list[str | None])
    """For each part of what forward returns, None where it has but a position."""


def capture(
    model: nn.Module,
    example_inputs: Sequence[Any],
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Captured:
    """Trace `model` in eval mode; its training mode is left as it was."""
    arguments, named = tuple(example_inputs), dict(example_kwargs or {})
    with _evaluating(model), torch.no_grad(), settle(model, arguments, named):
        with plain_calls(model, arguments, named) as calls:
            shapes = calls.spread(dynamic_shapes)
            program = export(model, calls.arguments, calls.named, shapes)
        with quiet():
            return Captured(decompose(program), calls.output_names)


def export(
    model: nn.Module,
    arguments: tuple[Any, ...],
    named: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """torch.export's trace, without its messages; what it cannot trace is explained."""

    def trace(shapes: Any) -> ExportedProgram:
        return torch.export.export(
            model,
            arguments,
            named,
            dynamic_shapes=shapes,
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        )

    def attempt(reads: Sequence[Read] = ()) -> ExportedProgram:
        with (
            packed_as_padded(), quiet(), torch.no_grad(), ReplaceFunctions(reads),
            skip_idle_casts(),
        ):  # fmt: skip
            return export_open(trace, dynamic_shapes)

    try:
        try:
            return attempt()
        except Exception as e:
            if dynamic_shapes is not None or not _depends_on_data(e):
                raise
            reads = record_reads(model, *clone_tensors((arguments, named or {})))
            if not any(read.is_constant for read in reads):
                raise
            return attempt(reads)
    except Error:
        raise
    except Exception as e:
        raise _explain(e) from e


def load(path: PathLike) -> ExportedProgram:
    """The program in an archive of `torch.export.save`; what is pickled in it is not loaded."""
    from fewbit.frontends.torch.archive import read_archive

    try:
        with quiet():
            return read_archive(path)
    except UnsupportedError as e:
        raise e.at(file=str(path)) from e
    except Exception as e:
        raise Error(
            f"not an archive of torch.export: {first_line(e)}",
            place=Place(file=str(path)),
            hint="write it with torch.export.save, by the same version of torch",
        ) from e


def decompose(program: ExportedProgram) -> ExportedProgram:
    """Without updates in place, and in ops that either we know or torch-mlir does.

    Weights that are computed from parameters alone are parameters after it.
    """
    return _decompose(program, decomposition_table())


def take_apart(program: ExportedProgram, ops: Iterable[Any]) -> ExportedProgram | None:
    """Without some more ops, in terms of others as torch defines them; None where it does not."""
    from torch import _decomp

    functions: dict[Any, Any] = cast(Any, _decomp).decomposition_table
    known = {op: functions[op] for op in ops if op in functions}
    if not known:
        return None
    try:
        with quiet():
            return _decompose(program, {**decomposition_table(), **known})
    except Error:
        return None


def _decompose(program: ExportedProgram, table: Any) -> ExportedProgram:
    try:
        folded: Any = fold_weights(program)
        with sizes_of_any_kind():
            decomposed = rewrite_nodes(folded, table) or folded.run_decompositions(table)
        decomposed = fold_weights(decomposed)
    except Exception as e:
        raise _explain(e) from e
    # What a tensor is was checked while tracing; its sizes are checked by the program.
    for node in list(decomposed.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            decomposed.graph.erase_node(node)
    tell_nan(decomposed.graph)
    rewrite_complex(decomposed)
    rewrite_unsigned(decomposed)
    decomposed.graph.eliminate_dead_code()
    return decomposed


def decomposition_table() -> Any:
    """Return how ops are taken apart, as torch's own tables do: by a function for each."""
    table = _decompositions(frozenset({*aten.CONVERTERS, *KEPT})).copy()
    # Not among what is cached: packages that register ops may be imported later.
    table.update(expert_decompositions())
    return table


@cache
def _decompositions(whole: frozenset[str]) -> Any:
    """Look up how ops are taken apart, but for those that stay whole; torch takes long."""
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    table: Any = torch.export.default_decompositions()
    table.update(get_decomposition_table())
    for op in list(table.keys()):
        if getattr(op, "_schema").name.removeprefix(aten.ATEN) in whole:  # noqa: B009
            table.pop(op)
    table.update(own_decompositions())
    return table


@contextmanager
def quiet() -> Generator[None]:
    """torch warns about its own use of what it deprecates, and logs and prints what it also raises.

    Only what is written from Python is held back, and only here: what the model itself prints is
    seen when it is run before.
    """
    disabled = logging.root.manager.disable
    logging.disable(max(disabled, logging.ERROR))
    try:
        with (
            warnings.catch_warnings(),
            redirect_stderr(io.StringIO()),
            redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore", FutureWarning)
            warnings.filterwarnings("ignore", "The tensor attributes? .* assigned during export")
            yield
    finally:
        logging.disable(disabled)


@contextmanager
def _evaluating(model: nn.Module) -> Generator[None]:
    training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, was in training.items():
            module.training = was


def _depends_on_data(e: Exception) -> bool:
    return "data-dependent" in str(e).lower() or "GuardOnDataDependent" in type(e).__name__ + str(e)


def _explain(e: Exception) -> UnsupportedError:
    text = str(e).strip()
    first = first_line(e) or type(e).__name__
    hint = None
    if _depends_on_data(e):
        hint = "branch on data with torch.cond or torch.where instead of Python's if"
    elif "specializ" in text or "Constraints violated" in text:
        hint = "trace dynamic dimensions at a size of at least 2, and declare them with Dim"
    return UnsupportedError(f"torch.export cannot trace the model: {first.strip()}", hint=hint)
