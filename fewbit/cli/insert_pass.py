"""`--insert-pass STAGE:PASS`: passes of the user's own, checked before any work begins.

A pass is `file.py:function`, a function of the module; or a text, as `fewbit-opt` reads it
while the program is ours and as `mlir-opt` does afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from fewbit.errors import PassError, Place, UsageError

if TYPE_CHECKING:
    from fewbit.targets.target import Target

Pass = str | Callable[[Any], None]


def parse_inserted(texts: Sequence[str], target: Target) -> dict[str, list[Pass]]:
    """Return the passes by the stage of a target that they follow, in the order given."""
    inserted: dict[str, list[Pass]] = {}
    for text in texts:
        stage, colon, given = text.partition(":")
        if not colon or not given:
            raise UsageError(
                f"'{text}' is not a stage with a pass",
                hint="write --insert-pass linalg:canonicalize, or linalg:file.py:function",
            )
        inserted.setdefault(stage, []).extend(_passes(stage, given, target))
    return inserted


def _passes(stage: str, given: str, target: Target) -> list[Pass]:
    target.check_insertable(stage)
    file, colon, function = given.rpartition(":")
    if colon and file.endswith(".py"):
        return [_function(Path(file), function)]
    from fewbit.pipeline.passes import UpstreamPass
    from fewbit.pipeline.registry import parse_passes

    form = "upstream" if target.default_pipeline[stage].form == "upstream" else "xdsl"
    passes = parse_passes(given, form)
    for each in passes:
        if isinstance(each, UpstreamPass):
            _check_upstream(each.text)
    return [str(each) for each in passes]


def _function(path: Path, name: str) -> Callable[[Any], None]:
    function: Any = getattr(load_file(path), name, None)
    if not callable(function):
        place = Place(file=str(path))
        raise UsageError(f"there is no function '{name}' in the file", place=place)
    return cast(Callable[[Any], None], function)


def load_file(path: Path) -> object:
    """Return the user's file, run as a module; its folder is where its imports are found."""
    if not path.is_file():
        raise UsageError(f"there is no file '{path}'")
    loader = SourceFileLoader(path.stem, str(path))
    module = ModuleType(path.stem)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        loader.exec_module(module)
    except Exception as e:
        what = f"the file does not load: {type(e).__name__}: {e}"
        raise UsageError(what, place=Place(file=str(path))) from e
    finally:
        sys.path.pop(0)
    return module


def _check_upstream(pipeline: str) -> None:
    """Try a pass on an empty module: a wrong name would be noticed after minutes of work."""
    from fewbit.ir.bindings import check_upstream

    try:
        check_upstream(pipeline)
    except PassError as e:
        raise UsageError(e.what, place=e.place, hint=e.hint) from e
