"""Models named by a text: a zoo entry, a factory in a Python file, a call, a file, a program."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from fewbit.errors import Place, UsageError
from fewbit.frontends.call_text import EXAMPLE, evaluate_call, is_call
from fewbit.frontends.foreign import explain_foreign, suggest_factories
from fewbit.frontends.frontend import Frontend, Given
from fewbit.frontends.registry import find_for_file
from fewbit.program.program import Program


def import_named(name: str, given: Given | None = None) -> Program:
    path, given = Path(name.removesuffix(":")), given or Given()
    if name.startswith("zoo:"):
        _refuse_options(given)
        return _from_zoo(name.removeprefix("zoo:"))
    if (make := _maker(name)) is not None:
        _refuse_options(replace(given, context=None))
        return _import_loaded(make(), given)
    if not path.exists():
        raise UsageError(f"there is no model '{name}'", hint=_hint_for_missing(name))
    frontend = _frontend_of(path)
    _refuse_options(given, frontend)
    return Program.load(path) if frontend is None else frontend.import_file(path, given)


def _hint_for_missing(name: str) -> str:
    package, colon, model = name.partition(":")
    if package == "timm" and model.isidentifier():
        return f"write timm:create_model('{model}')"
    if package == "torchvision" and model.isidentifier():
        return f"write torchvision:models.{model}()"
    from fewbit.models.registry import zoo

    if not colon and name in zoo():
        return f"write zoo:{name}"
    return (
        f"give zoo:NAME, file.py:factory, {EXAMPLE}, model.onnx, model.pt2, model.keras, "
        "model.gguf, program.mlir, or the folder of a SavedModel, of a Hugging Face model or "
        "of a saved program"
    )


def _frontend_of(path: Path) -> Frontend | None:
    """Return the front end that reads a file, None for a program; refuse what holds no model."""
    frontend = find_for_file(path)
    if frontend is None and (error := explain_foreign(path)) is not None:
        raise error
    return frontend


def _refuse_options(given: Given, frontend: Frontend | None = None) -> None:
    """Refuse what is said of a model and would have no effect."""
    if given.constants and not (frontend and frontend.takes_constants):
        raise UsageError("only inputs of ONNX models can be made constants")
    if given.context is not None and not (frontend and frontend.takes_context):
        raise UsageError(
            "a context is for language models: checkpoints, and models of transformers",
            hint="give a GGUF file, a Hugging Face folder or transformers:CALL, or no --context",
        )
    if not (frontend and frontend.takes_context):
        given.refuse_decoding()


def takes_sizes(name: str) -> bool:
    """Return whether the sizes of inputs can be chosen for the model that a text names."""
    if name.startswith("zoo:") or ".py:" in name:
        return True
    if not Path(name).exists():
        # That it is missing is said where it is read.
        return True
    frontend = _frontend_of(Path(name))
    return frontend is not None and frontend.takes_sizes


@dataclass(frozen=True)
class ModelWithInputs:
    """A PyTorch model, and what its maker says of its inputs."""

    model: Any
    inputs: Sequence[Any] = ()
    named: Mapping[str, Any] | None = None
    dynamic_shapes: Any = None


def find_module(name: str) -> ModelWithInputs | None:
    """The PyTorch model that a text names, ready to run; None where it names a program."""
    if name.startswith("zoo:"):
        from fewbit.models.registry import create, find_entry

        zoo = name.removeprefix("zoo:")
        return ModelWithInputs(create(zoo), find_entry(zoo).example_inputs(1))
    if (make := _maker(name)) is not None:
        loaded = make()
        is_module = hasattr(loaded.model, "eval")
        return replace(loaded, model=loaded.model.eval()) if is_module else loaded
    if Path(name).suffix == ".pt2" and Path(name).is_file():
        from fewbit.frontends.torch.capture import load

        exported = load(Path(name))
        inputs, named = exported.example_inputs or ((), {})
        return ModelWithInputs(exported.module(), inputs, named or None)
    return None


def _maker(name: str) -> Callable[[], ModelWithInputs] | None:
    """Return what makes the model of a factory or call; None where a text names neither."""
    file, colon, factory = name.rpartition(":")
    if colon and file.endswith(".py") and factory:
        return lambda: _call(Path(file), factory)
    if is_call(name) and not Path(name).exists():
        return lambda: ModelWithInputs(evaluate_call(name))
    return None


def _from_zoo(name: str) -> Program:
    from fewbit.models.registry import create, find_entry

    entry = find_entry(name)
    from fewbit.frontends.torch import import_torch  # which takes seconds, so after what may fail

    # torch.export takes a size of 1 for a constant.
    inputs = entry.example_inputs(1 if entry.is_step else 2)
    return import_torch(create(name), inputs, dynamic_shapes=entry.dynamic_shapes)


def _import_loaded(loaded: ModelWithInputs, given: Given) -> Program:
    from fewbit.frontends import import_model

    if given.context is not None:
        return import_model(loaded.model, context=given.context, steps=given.steps)
    if not loaded.inputs and loaded.named is None and loaded.dynamic_shapes is None:
        return import_model(loaded.model, input_shapes=given.input_shapes)
    return import_model(
        loaded.model, loaded.inputs, loaded.dynamic_shapes, example_kwargs=loaded.named
    )


def _call(path: Path, factory: str) -> ModelWithInputs:
    """`factory()` gives a module, or also its example inputs, named ones, and dynamic shapes."""
    place = Place(file=str(path))
    with _on_path(path.parent):
        function = getattr(_load_module(path), factory, None)
        if function is None:
            hint = suggest_factories(path)
            raise UsageError(f"there is no '{factory}' in the file", place=place, hint=hint)
        try:
            result = function()
        except Exception as e:
            raise UsageError(f"'{factory}' fails: {type(e).__name__}: {e}", place=place) from e
    if not isinstance(result, tuple):
        return ModelWithInputs(result)
    model, *others = cast("tuple[Any, ...]", result)
    if not 1 <= len(others) <= 3:
        raise UsageError(
            f"'{factory}' gave {1 + len(others)} values",
            place=place,
            hint="return the model, or (model, inputs), and behind these named inputs, dynamic "
            "shapes, or both",
        )
    inputs, *options = others
    named = options.pop(0) if len(options) == 2 or (options and _are_inputs(options[0])) else None
    return ModelWithInputs(model, _as_inputs(inputs), named, options[0] if options else None)


def _as_inputs(inputs: Any) -> Sequence[Any]:
    """One input may stand for itself."""
    return cast("Sequence[Any]", inputs) if isinstance(inputs, tuple | list) else (inputs,)


def _are_inputs(third: Any) -> bool:
    """Return whether these are named inputs. Dynamic shapes are mappings too, but of mappings,
    sequences and None, and have no tensors in them."""
    from torch import Tensor
    from torch.utils._pytree import tree_leaves

    if not isinstance(third, Mapping):
        return False
    if any(isinstance(leaf, Tensor) for leaf in tree_leaves(third)):
        return True
    values = cast("Mapping[str, Any]", third).values()
    return not all(v is None or isinstance(v, Mapping | list | tuple) for v in values)


@contextmanager
def _on_path(folder: Path) -> Generator[None]:
    """Find imports in a folder, too. What a file itself adds to the path stays there."""
    text = str(folder.resolve())
    if text in sys.path:
        yield
        return
    sys.path.insert(0, text)
    try:
        yield
    finally:
        # By its value: the file may have put others in front of it, or have removed it.
        if text in sys.path:
            sys.path.remove(text)


def _load_module(path: Path) -> Any:
    """The user's own file, run as a module."""
    if not path.is_file():
        raise UsageError(f"there is no file '{path}'")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise UsageError(
            f"the file does not load: {type(e).__name__}: {e}", place=Place(file=str(path))
        ) from e
    return module
