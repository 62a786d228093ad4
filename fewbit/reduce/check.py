"""Whether a model works: imported, run by the interpreter, compiled, run, and compared.

What is true is said by the tool that the model comes from: onnxruntime for an ONNX model, if it is
installed, PyTorch for an exported program. Then the interpreter must agree with it, and the target
with the interpreter. Inputs are random; sizes that are not known are 2, and then 3 and 5, where the
model takes such sizes. Where a graph cancels what
it computes (a norm of equal elements), float32 results are noise; how large it is, PyTorch's
float64 says.

Checks are done in another process, which may crash or never end; it is started anew then. It goes
on as long as all is well, because what it imports takes longer than most checks.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fewbit.errors import Error, ParseError, PassError, VerifyError
from fewbit.reduce.failure import Failure

if TYPE_CHECKING:
    from fewbit.program.program import Program
    from fewbit.program.tensor_file import Array

UNKNOWN_SIZES = (2, 3, 5)
"""What sizes are that a model leaves open, one after the other."""
FLOAT_TOLERANCE = 1e-4
"""How far floats may be apart, relative to the largest."""
NARROW_TOLERANCE = 2e-2
"""The same, of floats of 16 bits."""
QUANTIZED_TOLERANCE = 5e-2
"""A rounding that flips changes what follows by a step."""
NOISE_FACTOR = 10
INTERPRETER = "interpreter"
OUR_FAULT = (ParseError, VerifyError, PassError)
"""Errors that a text or a pass of a user's may cause, but no model that was imported."""


@dataclass(frozen=True)
class Case:
    """For what a model is compiled, and how it is tried."""

    target: str = "cpu"
    """A target, or `interpreter` where nothing is compiled."""
    recipe: str | None = None
    seed: int = 0
    seconds: float = 120.0
    """How long a check may take."""


class Checker:
    """A process that checks models, one after another.

    with Checker() as check:
        failure = check(Path("model.onnx"), Case("cpu"))
    """

    def __init__(self) -> None:
        self._worker: tuple[BaseProcess, Connection] | None = None

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def __call__(self, model: Path, case: Case) -> Failure | None:
        """Return how a model fails, or None."""
        process, pipe = self._worker = self._worker or _start()
        try:
            pipe.send((model, case))
            if pipe.poll(case.seconds):
                return pipe.recv()
            self._stop()
            return Failure("timeout", f"no end after {case.seconds:g} s")
        except (EOFError, ConnectionError):
            process.join()
            self._stop()
            return Failure("crash", f"the process ended with status {process.exitcode}")

    def _stop(self) -> None:
        if self._worker is not None:
            process, pipe = self._worker
            pipe.close()
            process.kill()
            process.join()
            self._worker = None


def _start() -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    there.close()
    return process, here


def _serve(pipe: Connection) -> None:
    """Check what is sent, until no more is sent."""
    warnings.simplefilter("ignore")
    while True:
        try:
            model, case = pipe.recv()
        except EOFError:
            return
        pipe.send(check_here(model, case))


def check_here(model: Path, case: Case) -> Failure | None:
    """Return how a model fails, or None, in this process."""
    try:
        return _check(model, case)
    except OUR_FAULT as e:
        return Failure("internal error", e.what)
    except Error as e:
        return Failure("refused", e.what)
    except Exception as e:
        return Failure("internal error", f"{type(e).__name__}: {e}")


@dataclass(frozen=True)
class Run:
    """Inputs, what the interpreter makes of them, and what of that differs from the truth."""

    inputs: Sequence[Array]
    results: Sequence[Array]
    what: str | None


def _check(model: Path, case: Case) -> Failure | None:
    import fewbit
    from fewbit.base import progress

    progress.set_verbosity(progress.QUIET)
    program, runs = _interpret(model, model.stat().st_mtime_ns, case.seed)
    for run in runs:
        if run.what is not None:
            return Failure("wrong", f"the interpreter gives other results than {run.what}")
    if case.target == INTERPRETER and case.recipe is None:
        return None
    tolerance = FLOAT_TOLERANCE
    if case.recipe is not None:
        program = fewbit.quantize(program, case.recipe)
        tolerance = QUANTIZED_TOLERANCE
        runs = [Run(run.inputs, program.run(*run.inputs), None) for run in runs]
    if case.target == INTERPRETER:
        return None
    compiled: Any = fewbit.compile(program, target=case.target, name="net")
    for run in runs:
        if what := difference(run.results, _as_list(compiled(*run.inputs)), tolerance):
            return Failure("wrong", f"{case.target} gives other results than {what}")
    return None


@lru_cache(maxsize=1)
def _interpret(model: Path, changed: int, seed: int) -> tuple[Program, Sequence[Run]]:
    """Import a model and run it, at several sizes where it leaves some open.

    The last one is kept, for the next target; `changed` is when the file was.
    """
    import fewbit

    program = fewbit.import_model(str(model))
    return program, list(_runs(model, program, seed))


def _runs(model: Path, program: Program, seed: int) -> Iterator[Run]:
    """Yield a run at each size that the model's tool takes; at the first, if there is no tool."""
    is_open = any(None in (spec.shape or ()) for spec in program.signature.inputs)
    none = True
    for size in UNKNOWN_SIZES if is_open else ():
        inputs = random_inputs(program, seed, size)
        truth = reference(model, program, inputs)
        if truth is not None:
            none = False
            yield _run(model, program, inputs, truth)
    if none:
        inputs = random_inputs(program, seed)
        yield _run(model, program, inputs, reference(model, program, inputs))


def _run(
    model: Path, program: Program, inputs: Sequence[Array], truth: Sequence[Array] | None
) -> Run:
    results = program.run(*inputs)
    if truth is None:
        return Run(inputs, results, None)
    noise = rounding_errors(model, inputs, truth)
    return Run(inputs, results, difference(truth, results, FLOAT_TOLERANCE, noise))


def random_inputs(program: Program, seed: int, unknown: int = UNKNOWN_SIZES[0]) -> list[Array]:
    """Return inputs of a program: normal floats, integers below 4, and truth values."""
    rng = np.random.default_rng(seed)
    inputs: list[Array] = []
    for spec in program.signature.inputs:
        shape = [unknown if size is None else size for size in spec.shape or ()]
        if spec.dtype.kind in "iub":
            drawn = rng.integers(0, 2 if spec.dtype.kind == "b" else 4, shape)
        else:
            drawn = rng.standard_normal(shape)
        inputs.append(np.asarray(drawn).astype(spec.dtype))
    return inputs


def reference(model: Path, program: Program, inputs: Sequence[Array]) -> Sequence[Array] | None:
    """Return what the tool that a model comes from gives, if there is one that takes it."""
    if model.suffix == ".onnx":
        return _onnx_reference(model, program, inputs)
    if model.suffix == ".pt2":
        return _torch_reference(model, inputs)
    return None


def rounding_errors(
    model: Path, inputs: Sequence[Array], results: Sequence[Array]
) -> Sequence[float]:
    """Return how far PyTorch's own float32 results are from its float64; 0 where it has none."""
    nothing = [0.0] * len(results)
    if model.suffix != ".pt2":
        return nothing
    import torch

    from fewbit.base.typed_torch import from_numpy

    wide = [from_numpy(x.astype(np.float64) if x.dtype == np.float32 else x) for x in inputs]
    try:
        exact = _widened(torch.export.load(model).module())(*wide)
    except (RuntimeError, TypeError):  # the graph has float32 written in it
        return nothing
    pairs = zip(_as_list(exact), results, strict=True)
    errors = [_largest_difference(a.detach().numpy(), b) for a, b in pairs]
    return [error if np.isfinite(error) else 0.0 for error in errors]


def _widened(module: Any) -> Any:
    """Return a graph in float64: its constants, too, and without what export writes beside casts.

    That is a check that the operand of a cast has the type that it had in the trace.
    """
    import torch

    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            module.graph.erase_node(node)
    constants = cast("dict[str, Any]", vars(module))
    for name, value in list(constants.items()):
        if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
            setattr(module, name, value.double())
    module.recompile()
    return module.double()


def _largest_difference(a: Array, b: Array) -> float:
    if a.dtype.kind != "f":
        return 0.0
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0))


def _as_list(results: Any) -> list[Any]:
    return [*results] if isinstance(results, tuple | list) else [results]


def _torch_reference(model: Path, inputs: Sequence[Array]) -> Sequence[Array] | None:
    import torch

    from fewbit.base.typed_torch import from_numpy

    exported = torch.export.load(model)
    try:
        results = exported.module()(*map(from_numpy, inputs))
    except (AssertionError, RuntimeError, IndexError):  # sizes that it does not take
        return None
    return [result.detach().numpy() for result in _as_list(results)]


def _onnx_reference(
    model: Path, program: Program, inputs: Sequence[Array]
) -> Sequence[Array] | None:
    try:
        import onnxruntime
    except ImportError:
        return None
    runtime: Any = onnxruntime
    runtime.set_default_logger_severity(4)
    try:
        session = runtime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        names = [port.name for port in session.get_inputs()]
        return session.run(None, dict(zip(names, inputs, strict=True)))
    except Exception:  # its exceptions have no common class; what it does not take is no truth
        return None


def difference(
    expected: Sequence[Array],
    found: Sequence[Array],
    tolerance: float,
    noise: Sequence[float] = (),
) -> str | None:
    """Return what differs, for a message, or None; ten times the noise of a result is allowed."""
    if len(expected) != len(found):
        return f"expected, and {len(found)} instead of {len(expected)}"
    for number, (wanted, given) in enumerate(zip(expected, found, strict=True)):
        wanted, given = np.asarray(wanted), np.asarray(given)
        if wanted.shape != given.shape:
            return f"expected: result {number} has the shape {given.shape}, not {wanted.shape}"
        if not _are_close(wanted, given, tolerance, noise[number] if noise else 0.0):
            return f"expected: result {number} differs"
    return None


def _are_close(wanted: Array, given: Array, tolerance: float, noise: float) -> bool:
    if wanted.dtype.kind in "iub":
        return np.array_equal(wanted, given)
    if wanted.dtype.itemsize < 4:
        tolerance = NARROW_TOLERANCE
    a, b = wanted.astype(np.float64), given.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    largest = np.abs(a[finite]).max(initial=0)
    allowed = max(tolerance * max(largest, 1e-3), NOISE_FACTOR * noise)
    return bool((np.abs(a[finite] - b[finite]) <= allowed).all())
