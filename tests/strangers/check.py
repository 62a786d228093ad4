"""The check of one stranger, in the process that it is given.

It imports and compiles the model for this processor, as float and as w8a8, and compares: floats with
PyTorch (or onnxruntime), w8a8 with a fake quantization of our own, by how far each is from the floats.
Every weight that the fake quantization met must be few-bit in the program, or be named as float.
"""

from __future__ import annotations

import argparse
import os
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.strangers.stranger import AbsentError, OnnxCase, Stranger, TorchCase

CLOSE = 1e-4
"""How far floats may be from those of the reference, relative to the largest of the output."""
CHAOS = 10.0
"""Or how many times farther than float32 is from float64 in the reference itself: deep networks of
random weights magnify roundings, and two correct programs differ by more than `CLOSE`. Our exp is
right to 2 units in the last place, PyTorch's to half of one."""
DECIBELS = 3.0
"""How much farther from the floats than the fake quantization w8a8 may be."""
ENOUGH = 60.0
"""A ratio of signal to noise, in dB, at which there is nothing left to compare."""


class Kind(StrEnum):
    """What came of a stranger."""

    PASSED = "passed"
    REFUSED = "refused"
    WRONG = "wrong"
    INTERNAL = "internal error"
    SILENT = "silent float"
    TIMEOUT = "timeout"
    ABSENT = "not run"


@dataclass
class Result:
    """A row of docs/coverage.md, and why it is what it is."""

    key: str
    kind: str = Kind.PASSED
    reason: str = ""
    import_s: float | None = None
    compile_s: float | None = None
    """Processor seconds of the float program."""
    compile_w8a8_s: float | None = None
    bytes: int | None = None
    """The size of the folder of the float artifact."""
    bytes_w8a8: int | None = None
    error: float | None = None
    """The largest difference of floats, relative to the largest output."""
    snr: float | None = None
    """Signal to noise of w8a8 in dB, and that of the fake quantization."""
    snr_fake: float | None = None
    float_weights: list[str] = field(default_factory=list[str])
    """Weights that are named as float."""
    commit: str = ""
    detail: str = ""

    def fail(self, kind: Kind, reason: str) -> None:
        """Note a fault; the first one, and of two the worse, is the result."""
        worst = [Kind.PASSED, Kind.SILENT, Kind.REFUSED, Kind.INTERNAL, Kind.WRONG]
        if worst.index(kind) > worst.index(Kind(self.kind)):
            self.kind, self.reason = kind, reason


Outputs = Sequence[np.ndarray]


@dataclass(frozen=True)
class Case:
    """What the check needs to know of a model, whatever framework it is of."""

    load: Callable[[], Any]
    """Import it: the time of this is the time of the import."""
    runs: Sequence[Mapping[str, np.ndarray] | Sequence[np.ndarray]]
    expected: Sequence[Outputs]
    fake: Sequence[Outputs]
    weights: set[str]
    """Names of the parameters that the fake quantization rounded."""
    own_error: Callable[[], float] = lambda: 0.0
    """How far the reference's float32 is from its own float64."""


def check(stranger: Stranger) -> Result:
    """Return what came of a stranger; nothing that happens on the way ends the process."""
    result = Result(stranger.key)
    with TemporaryDirectory(prefix="fewbit-strangers-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case = _case(stranger.build(Path(name)))
        except AbsentError as e:
            result.kind, result.reason = Kind.ABSENT, str(e)
            return result
        except Exception as e:
            reason = f"it does not run without fewbit either: {type(e).__name__}: {_line(e)}"
            result.kind, result.reason, result.detail = Kind.ABSENT, reason, traceback.format_exc()
            return result
        _guard(result, lambda: _check_both(result, case, Path(name)))
    return result


def _case(built: TorchCase | OnnxCase) -> Case:
    if isinstance(built, TorchCase):
        from tests.strangers.torch_case import make_case

        return make_case(built)
    from tests.strangers.onnx_case import make_case as make_onnx_case

    return make_onnx_case(built)


def _check_both(result: Result, case: Case, folder: Path) -> None:
    import fewbit
    from fewbit.passes.graph.fold_batch_norm import fold_batch_norm

    start = processor_seconds()
    program = case.load()
    result.import_s = processor_seconds() - start
    _guard(result, lambda: _check_float(result, case, program, folder / "float"))

    start = processor_seconds()
    quantized = fewbit.quantize(fold_batch_norm(program), "w8a8")
    few = fewbit.compile(quantized, "cpu", folder / "w8a8")
    result.compile_w8a8_s = processor_seconds() - start
    result.bytes_w8a8 = folder_bytes(folder / "w8a8")
    named = few.manifest.float_weights
    result.float_weights = [] if named is None else [*named.names, *named.asked]
    _check_noise(result, case, [_run(few, run) for run in case.runs])
    silent = silent_floats(quantized, case.weights, set(result.float_weights))
    if silent:
        result.fail(Kind.SILENT, f"{len(silent)} weights are float in silence: {silent[0]}")


def _check_float(result: Result, case: Case, program: Any, folder: Path) -> None:
    import fewbit

    start = processor_seconds()
    artifact = fewbit.compile(program, "cpu", folder)
    result.compile_s = processor_seconds() - start
    result.bytes = folder_bytes(folder)
    results = [_run(artifact, run) for run in case.runs]
    pairs = [
        pair
        for ours, theirs in zip(results, case.expected, strict=True)
        for pair in zip(ours, theirs, strict=True)
    ]
    for ours, theirs in pairs:
        if ours.shape != theirs.shape:
            return result.fail(Kind.WRONG, f"an output of {ours.shape}, not {theirs.shape}")
    result.error = max((relative_error(*pair) for pair in pairs), default=0.0)
    if not result.error <= CLOSE and not result.error <= CHAOS * case.own_error():
        result.fail(Kind.WRONG, f"floats differ by {result.error:.1e} of the largest")
    return None


def _check_noise(result: Result, case: Case, results: Sequence[Outputs]) -> None:
    """Compare the noise of w8a8 with that of the fake quantization, over all float outputs."""
    result.snr = signal_to_noise(results, case.expected)
    result.snr_fake = signal_to_noise(case.fake, case.expected)
    if not result.snr >= min(result.snr_fake, ENOUGH) - DECIBELS:
        reason = f"w8a8 has {result.snr:.1f} dB, fake quantization {result.snr_fake:.1f}"
        result.fail(Kind.WRONG, reason)


def _run(artifact: Any, given: Mapping[str, np.ndarray] | Sequence[np.ndarray]) -> Outputs:
    if not isinstance(given, Mapping):
        return artifact.run(*given)
    return artifact.run(*(given[spec.name] for spec in artifact.manifest.inputs))


def _guard(result: Result, action: Callable[[], None]) -> None:
    """Do something, and note what it raises: refusals of ours apart from everything else."""
    from fewbit.errors import UnsupportedError, UsageError

    try:
        action()
    except (UnsupportedError, UsageError) as e:
        result.fail(Kind.REFUSED, _line(e))
        result.detail = result.detail or str(e)
    except Exception as e:
        result.fail(Kind.INTERNAL, f"{type(e).__name__}: {_line(e)}")
        result.detail = result.detail or traceback.format_exc()[-6000:]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


def relative_error(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference relative to the largest value; infinite where NaNs differ."""
    if theirs.size == 0:
        return 0.0
    if not np.issubdtype(theirs.dtype, np.floating):
        return 0.0 if np.array_equal(ours, theirs) else np.inf
    if not np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
        return np.inf
    known = np.isfinite(theirs)
    if not known.any():
        return 0.0
    difference = np.abs(ours[known].astype(np.float64) - theirs[known])
    return float(difference.max() / max(np.abs(theirs[known]).max(), 1e-30))


def signal_to_noise(results: Sequence[Outputs], expected: Sequence[Outputs]) -> float:
    """Return the ratio of signal to noise of all float outputs, each scaled to the same power."""
    noise = 0.0
    outputs = 0
    for ours, theirs in zip(results, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            finite = np.isfinite(b) if np.issubdtype(b.dtype, np.floating) else np.zeros(b.shape)
            finite = finite.astype(bool)
            if not finite.any() or a.shape != b.shape:
                continue
            signal = float(np.square(b[finite], dtype=np.float64).sum())
            difference = np.square(a[finite].astype(np.float64) - b[finite]).sum()
            noise += float(difference) / max(signal, 1e-30)
            outputs += 1
    return float(-10 * np.log10(max(noise / max(outputs, 1), 1e-12)))


def silent_floats(program: Any, weights: set[str], named: set[str]) -> list[str]:
    """Return weights that are still float in a quantized program, and that nobody names."""
    from fewbit.dialects.mico import ConstantOp, element_width, shape_of

    constants = {
        op.sym_name.data: op for op in program.module.body.block.ops if isinstance(op, ConstantOp)
    }
    floats = [name for name in weights if name in constants and name not in named]
    return sorted(
        name
        for name in floats
        if element_width(constants[name].type) is None
        and sum(size > 1 for size in shape_of(constants[name].type)) > 1
    )


def folder_bytes(folder: Path) -> int:
    """Return the size of the files of an artifact."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Check one stranger by its key, in this process, and print the result."""
    from tests.strangers.catalog import find

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("key")
    result = check(find(parser.parse_args().key))
    print(result.detail, result, sep="\n")


if __name__ == "__main__":
    main()
