"""A model's file reduced: what was tried and found, and where the smallest model is.

ONNX models are reduced as such, so that what is left can be given to any other tool. Of all others
the imported program is reduced, and saved as a folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.base.files import replacing_file
from fewbit.errors import Error, UsageError
from fewbit.reduce.check import INTERPRETER, Case, Checker
from fewbit.reduce.failure import Failure
from fewbit.reduce.search import search

Check = Callable[[Path], Failure | None]
Tell = Callable[[int], None]
"""Called with the number of ops that are left."""


@dataclass(frozen=True)
class Reduction:
    failure: Failure
    path: Path
    """Where the smallest model was written."""
    before: int
    """Ops of the model."""
    after: int


def reduce_model(
    model: Path, output: Path | None = None, case: Case | None = None, tell: Tell = lambda _: None
) -> Reduction:
    """Write the smallest part of a model that fails as the model does."""
    case = case or Case()
    with Checker() as checker:

        def check(part: Path) -> Failure | None:
            return checker(part, case)

        failure = check(model)
        if failure is None:
            raise UsageError(
                f"'{model}' works on {case.target}: there is nothing to reduce",
                hint="give the target and the recipe with which it fails: -t, -r",
            )
        if model.suffix == ".onnx":
            output = output or model.with_suffix(".reduced.onnx")
            return _reduce_onnx(model, output, failure, check, tell)
        if failure.kind == "crash" and checker(model, replace(case, target=INTERPRETER)):
            raise UsageError(
                "the process ends while the model is imported: there is no program to reduce",
                hint="export it to ONNX: such models are reduced before they are imported",
            )
        output = output or Path(f"{_stem(model)}.reduced")
        return _reduce_program(model, output, failure, check, tell)


def _stem(model: Path) -> str:
    return model.name.removeprefix("zoo:").split(":")[0].removesuffix(model.suffix) or "model"


def _reduce_onnx(
    model: Path, output: Path, failure: Failure, check: Check, tell: Tell
) -> Reduction:
    from onnx import ModelProto

    from fewbit.reduce.onnx_graph import cuts_of, read, size_of

    whole = read(model)
    with TemporaryDirectory() as folder:
        tried = Path(folder) / "tried.onnx"

        def fails(part: ModelProto) -> bool:
            tried.write_bytes(part.SerializeToString())
            return failure.is_like(check(tried))

        smallest = search(whole, cuts_of, fails, lambda part: tell(size_of(part)))
    with replacing_file(output) as file:
        file.write(smallest.SerializeToString())
    return Reduction(failure, output, size_of(whole), size_of(smallest))


def _reduce_program(
    model: Path, output: Path, failure: Failure, check: Check, tell: Tell
) -> Reduction:
    from fewbit.frontends import import_model
    from fewbit.reduce.program_graph import cuts_of, flat, size_of

    try:
        whole = flat(import_model(str(model)))
    except Error as e:
        raise UsageError(
            f"the model cannot be imported, and so there is no program to reduce: {e.what}",
            hint="export it to ONNX: such models are reduced before they are imported",
        ) from e
    with TemporaryDirectory() as folder:
        tried = Path(folder) / "tried"

        def fails(part: object) -> bool:
            assert isinstance(part, type(whole))
            try:
                part.verify()
            except Error:
                return False
            part.save(tried)
            return failure.is_like(check(tried))

        if not fails(whole):
            raise UsageError(
                f"the imported program does not fail as the model does ({failure})",
                hint="export the model to ONNX, and reduce that",
            )
        smallest = search(whole, cuts_of, fails, lambda part: tell(size_of(part)))
    smallest.save(output)
    return Reduction(failure, output, size_of(whole), size_of(smallest))
