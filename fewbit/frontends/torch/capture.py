"""A PyTorch module as a functional graph of ATen ops.

`torch.export` traces the module; decompositions then make updates in place explicit and leave core
ATen ops, but `linear`, `conv2d`, `layer_norm` and all others that have an op of ours stay whole.
Export looks only at tensors: state that `forward` keeps in plain attributes would be frozen into
the graph without a word. The module is therefore run once beforehand, and any attribute that
changed is refused.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.utils._pytree import tree_flatten, tree_map_only

from fewbit.base.files import PathLike
from fewbit.base.typed_torch import forward_pre_hooks, named_modules, own_parameters
from fewbit.errors import Error, Place, UnsupportedError, UsageError
from fewbit.frontends.torch import aten
from fewbit.frontends.torch.complex_numbers import rewrite_complex
from fewbit.frontends.torch.decompositions import own_decompositions
from fewbit.frontends.torch.fold_weights import fold_weights
from fewbit.frontends.torch.functions import ReplaceFunctions
from fewbit.frontends.torch.grouped_experts import expert_decompositions
from fewbit.frontends.torch.open_dims import export_open, sizes_of_any_kind
from fewbit.frontends.torch.unsigned import rewrite_unsigned

KEPT = ("group_norm", "native_group_norm")
"""Ops that torch-mlir knows, and whose decomposition it does not."""

_MODULE_FIELDS = frozenset(vars(nn.Module()))


def capture(
    model: nn.Module,
    example_inputs: Sequence[Any],
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """Trace `model` in eval mode; its training mode is left as it was."""
    arguments, named = tuple(example_inputs), dict(example_kwargs or {})
    with _evaluating(model), torch.no_grad():
        _refuse_hidden_state(model, arguments, named)
        program = export(model, arguments, named, dynamic_shapes)
        with quiet():
            return decompose(program)


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

    try:
        with quiet(), torch.no_grad(), ReplaceFunctions():
            return export_open(trace, dynamic_shapes)
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
            f"not an archive of torch.export: {_first_line(e)}",
            place=Place(file=str(path)),
            hint="write it with torch.export.save, by the same version of torch",
        ) from e


def decompose(program: ExportedProgram) -> ExportedProgram:
    """Without updates in place, and in ops that either we know or torch-mlir does.

    Weights that are computed from parameters alone are parameters after it.
    """
    table = _decompositions(frozenset({*aten.CONVERTERS, *KEPT}))
    try:
        folded: Any = fold_weights(program)
        table = table.copy()
        # Not among what is cached: packages that register ops may be imported later.
        table.update(expert_decompositions())
        with sizes_of_any_kind():
            decomposed = fold_weights(folded.run_decompositions(table))
    except Exception as e:
        raise _explain(e) from e
    # What a tensor is was checked while tracing; its sizes are checked by the program.
    for node in list(decomposed.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            decomposed.graph.erase_node(node)
    rewrite_complex(decomposed)
    rewrite_unsigned(decomposed)
    decomposed.graph.eliminate_dead_code()
    return decomposed


@cache
def _decompositions(whole: frozenset[str]) -> Any:
    """How ops are taken apart, but for those that stay whole; to look this up takes torch long."""
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


def _refuse_hidden_state(
    model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    before = {name: _plain_attributes(module) for name, module in named_modules(model)}
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    copies = tree_map_only(torch.Tensor, torch.clone, (arguments, named))
    try:
        model(*copies[0], **copies[1])
    except Exception as e:
        raise UsageError(
            f"the model does not run on the example inputs: {type(e).__name__}: {_first_line(e)}",
            hint="pass example_inputs=(...) as the model is called, or input_shapes=[...]",
        ) from e
    finally:
        changed = list(_changed_attributes(model, before))
        for name, buffer in model.named_buffers():
            if name in buffers and buffer.shape == buffers[name].shape:
                buffer.copy_(buffers[name])
    if not changed:
        return
    names = ", ".join(f"{module or 'the model'}.{attribute}" for module, attribute in changed)
    raise UnsupportedError(
        f"forward changes {names}, which the exported program would not",
        place=Place(layer=changed[0][0] or None),
        hint="keep state in a buffer (register_buffer) that is updated in place, or make it an "
        "input and an output",
    )


def _plain_attributes(module: nn.Module) -> dict[str, Any]:
    return {k: v for k, v in vars(module).items() if k not in _MODULE_FIELDS}


def _changed_attributes(
    model: nn.Module, before: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Attributes that a call rebound, which are also put back."""
    for name, module in named_modules(model):
        old = before.get(name, {})
        for attribute, value in _plain_attributes(module).items():
            if attribute not in old:
                delattr(module, attribute)
                yield name, attribute
            elif value is not old[attribute]:
                setattr(module, attribute, old[attribute])
                if _differ(value, old[attribute]) and attribute not in _hooked_weights(module):
                    yield name, attribute


def _hooked_weights(module: nn.Module) -> set[str | None]:
    """Weights that a hook computes from parameters before each call: by weight norm, pruning."""
    names = ("name", "_tensor_name")
    hooks = forward_pre_hooks(module).values()
    found = {getattr(hook, name, None) for hook in hooks for name in names}
    parameters = own_parameters(module)
    return {name for name in found if {f"{name}_v", f"{name}_orig"} & parameters.keys()}


def _differ(a: Any, b: Any) -> bool:
    """Whether two things, or what is in them, are told apart: tensors are by being others."""
    (in_a, structure_a), (in_b, structure_b) = tree_flatten(a), tree_flatten(b)
    if structure_a != structure_b:
        return True
    return any(_leaves_differ(*leaves) for leaves in zip(in_a, in_b, strict=True))


def _leaves_differ(a: Any, b: Any) -> bool:
    if a is b:
        return False
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return True
    try:
        return bool(a != b)
    except Exception:  # arrays are neither equal nor unequal
        return True


def _first_line(e: Exception) -> str:
    return next((line.strip() for line in str(e).splitlines() if line.strip()), "")


def _explain(e: Exception) -> UnsupportedError:
    text = str(e).strip()
    first = _first_line(e) or type(e).__name__
    hint = None
    if "data-dependent" in text.lower() or "GuardOnDataDependent" in type(e).__name__ + text:
        hint = "branch on data with torch.cond or torch.where instead of Python's if"
    elif "specializ" in text or "Constraints violated" in text:
        hint = "trace dynamic dimensions at a size of at least 2, and declare them with Dim"
    return UnsupportedError(f"torch.export cannot trace the model: {first.strip()}", hint=hint)
