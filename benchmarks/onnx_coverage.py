"""ONNX's own node tests through the importer: how many pass, are refused, or are wrong, by op.

    python benchmarks/onnx_coverage.py [--only WORD] [--sample N] [--target cpu] [--jobs 2] \
        [--write PAGE]

A test is a model of one op, inputs, and the outputs to expect. Tests on strings, sequences and
optionals are left out: programs have tensors of numbers. A test passes if the program that is
imported gives the expected outputs, within the test's own tolerance; of 16-bit floats, which that
tolerance is finer than, within two units in the last place. Many tests pass shapes, axes and other
such values as inputs, where models have constants. If the importer says that it must know one, the
test is tried again with that input as a constant, and counted separately. What ends with another
error than a refusal is counted as failed.

Without a target the interpreter runs the programs. To compile all of them for `cpu` takes about
half an hour on one core.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ml_dtypes
import numpy as np

from fewbit.errors import Error, UnsupportedError

PASSED, WITH_CONSTANTS, REFUSED, WRONG = "passed", "with constants", "refused", "wrong"
FAILED = "failed"
COLUMNS = (PASSED, WITH_CONSTANTS, REFUSED, WRONG, FAILED)
BEGIN, END = "<!-- table of benchmarks/onnx_coverage.py -->", "<!-- end of table -->"

_ULPS = {np.dtype(np.float16): 2.0**-9, np.dtype(ml_dtypes.bfloat16): 2.0**-6}
_NOISE = 1e-6
"""Absolute differences that the expected outputs of some float32 tests have themselves."""
LONGEST = 900
"""Seconds that a test may take, at most."""


@dataclass(frozen=True)
class Result:
    name: str
    op: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0


def numeric_tests() -> list[Any]:
    """The tests on tensors of numbers, always in the same order."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)  # pyright: ignore
    return [test for test in found if _is_numeric(test)]


def _is_numeric(test: Any) -> bool:
    from onnx import TensorProto

    graph = test.model.graph
    return all(
        value.type.WhichOneof("value") == "tensor_type"
        and value.type.tensor_type.elem_type != TensorProto.STRING
        for value in (*graph.input, *graph.output)
    )


def run_test(test: Any, target: str | None = None) -> Result:
    """Import a test's model, run it, and compare."""
    start = time.process_time()
    outcome, reason = _outcome(test, target)
    return Result(test.name, op_of(test), outcome, reason, time.process_time() - start)


def op_of(test: Any) -> str:
    """The op that a test is about; of an op written out as others, the op itself."""
    graph = test.model.graph
    if len(graph.node) == 1:
        return graph.node[0].op_type
    words = test.name.removeprefix("test_").removesuffix("_expanded")
    return _known_ops().get(words.replace("_", ""), _by_prefix(words, graph))


def _known_ops() -> dict[str, str]:
    from onnx import defs

    return {schema.name.lower(): schema.name for schema in defs.get_all_schemas()}


def _by_prefix(words: str, graph: Any) -> str:
    ops = _known_ops()
    flat = words.replace("_", "").lower()
    aliases = {"sce": "SoftmaxCrossEntropyLoss", "nllloss": "NegativeLogLikelihoodLoss"}
    for alias, op in aliases.items():
        if flat.startswith(alias):
            return op
    fitting = [name for name in ops if flat.startswith(name)]
    return ops[max(fitting, key=len)] if fitting else graph.node[-1].op_type


def _outcome(test: Any, target: str | None) -> tuple[str, str]:
    from fewbit.frontends.onnx.table import NeedsValueError

    inputs, expected = ([_array(value) for value in values] for values in test.data_sets[0])
    names = [value.name for value in test.model.graph.input]
    given = dict(zip(names, inputs, strict=False))
    constants: dict[str, Any] = {}
    while True:
        try:
            results = _results(test.model, given, constants, target)
        except NeedsValueError as error:
            more = {name: given[name] for name in error.inputs if name in given}
            if not more.keys() - constants.keys():
                return REFUSED, _line(error)
            constants |= more
            continue
        except UnsupportedError as error:
            return REFUSED, _line(error)
        except Error as error:
            return FAILED, f"error: {_line(error)}"
        except Exception as error:
            return FAILED, f"{type(error).__name__}: {_line(error)}"
        difference = compare(results, expected, test.rtol, test.atol)
        if difference is not None:
            return WRONG, difference
        return (WITH_CONSTANTS if constants else PASSED), ""


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])


def _array(value: Any) -> np.ndarray[Any, Any]:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def _results(
    model: Any, given: dict[str, Any], constants: dict[str, Any], target: str | None
) -> Sequence[np.ndarray[Any, Any]]:
    from fewbit.frontends.onnx import import_onnx

    inputs = {name: array for name, array in given.items() if name not in constants}
    shapes = {name: array.shape for name, array in inputs.items()}
    program = import_onnx(model, shapes, constants)
    arrays = [
        _program_input(array, spec.dtype)
        for array, spec in zip(inputs.values(), program.signature.inputs, strict=True)
    ]
    if target is None:
        return program.run(*arrays)
    import fewbit

    with TemporaryDirectory() as folder:
        artifact = fewbit.compile(program, target, Path(folder) / "artifact")
        return artifact.runner(*arrays)


def _program_input(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An input as a program takes it: floats of 4 and 8 bits are their bits."""
    return array.view(np.uint8) if _is_small_float(array.dtype) else array.astype(dtype)


def _is_small_float(dtype: np.dtype[Any]) -> bool:
    return dtype.name.startswith(("float8", "float4"))


def compare(
    results: Sequence[np.ndarray[Any, Any]],
    expected: Sequence[np.ndarray[Any, Any]],
    rtol: float,
    atol: float,
) -> str | None:
    """Return what differs, in a line; None where nothing does."""
    if len(results) < len(expected):
        return f"{len(results)} outputs, not {len(expected)}"
    for result, wanted in zip(results, expected, strict=False):
        result = np.asarray(result)
        if _is_small_float(wanted.dtype) and result.dtype == np.uint8:
            result = result.view(wanted.dtype)
        if result.shape != wanted.shape:
            return f"shape {result.shape}, not {wanted.shape}"
        if wanted.dtype.kind in "biuf" and result.dtype != wanted.dtype:
            return f"type {result.dtype}, not {wanted.dtype}"
        coarse = max(rtol, _ULPS.get(wanted.dtype, 0.0))
        exact = wanted.dtype.kind in "biu"
        a, b = (x if exact else x.astype(np.float64) for x in (result, wanted))
        if exact and rtol < 1e-2:
            equal = bool(np.array_equal(a, b))
        else:
            equal = bool(
                np.allclose(
                    a,
                    b,
                    coarse,
                    max(atol, _NOISE, coarse / 64 if coarse > rtol else 0),
                    equal_nan=True,
                )
            )
        if not equal:
            with np.errstate(all="ignore"):
                off = np.abs(a.astype(np.float64) - b.astype(np.float64))
            return f"values differ by up to {np.max(off, where=off == off, initial=0):.3g}"
    return None


def table(results: Iterable[Result]) -> str:
    """Counts by op, in Markdown."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        counts[result.op][result.outcome] += 1
        counts["**all**"][result.outcome] += 1
    lines = [f"| op | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    total = counts.pop("**all**")
    for op, count in (*sorted(counts.items()), ("**all**", total)):
        lines.append(f"| {op} | {' | '.join(str(count[c] or '') for c in COLUMNS)} |")
    return "\n".join(lines)


def summary(results: Sequence[Result]) -> str:
    counts = Counter(result.outcome for result in results)
    passed = counts[PASSED] + counts[WITH_CONSTANTS]
    share = 100 * passed / max(len(results), 1)
    return (
        f"{len(results)} tests: {passed} pass ({share:.1f} %), {counts[WITH_CONSTANTS]} of them "
        f"with constants; {counts[REFUSED]} are refused; {counts[WRONG]} are wrong; "
        f"{counts[FAILED]} fail otherwise."
    )


def run_tests(tests: Sequence[Any], target: str | None = None, jobs: int = 1) -> Iterable[Result]:
    """Run tests, in as many processes at once; results come in the order of the tests."""
    if jobs == 1:
        yield from (run_test(test, target) for test in tests)
        return
    _tests_by_name()  # the processes share what is there before they start
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=200) as pool:
        results = pool.imap(partial(_run_named, target=target), [test.name for test in tests])
        for test in tests:
            try:
                yield results.next(timeout=LONGEST)
            except multiprocessing.TimeoutError as e:
                message = f"{test.name} takes longer than {LONGEST} s, or has ended its process"
                raise RuntimeError(message) from e


def _run_named(name: str, target: str | None) -> Result:
    return run_test(_tests_by_name()[name], target)


@cache
def _tests_by_name() -> dict[str, Any]:
    return {test.name: test for test in numeric_tests()}


def write(path: Path, results: Sequence[Result]) -> None:
    """Put the table in its place in a page."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    inner = f"{BEGIN}\n\n{summary(results)}\n\n{table(results)}\n\n{END}"
    path.write_text(before + inner + after, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="tests with this in their name")
    parser.add_argument("--sample", type=int, help="this many tests, chosen at random")
    parser.add_argument("--target", help="compile for it; the interpreter if not given")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--write", type=Path, help="a page with a place for the table")
    parser.add_argument("--reasons", action="store_true", help="say why each does not pass")
    options = parser.parse_args()
    tests = [test for test in numeric_tests() if options.only in test.name]
    if options.sample is not None:
        tests = random.Random(0).sample(tests, min(options.sample, len(tests)))
    results: list[Result] = []
    for i, last in enumerate(run_tests(tests, options.target, options.jobs)):
        results.append(last)
        if options.reasons and last.reason:
            print(f"{last.outcome} {last.op} {last.name}: {last.reason}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{i + 1}/{len(tests)}", end="", file=sys.stderr)
    print(table(results))
    print(summary(results))
    seconds = sorted(result.seconds for result in results)
    if seconds:
        middle = seconds[len(seconds) // 2]
        print(f"CPU time of a test: median {middle:.2f} s, most {seconds[-1]:.1f} s")
    if options.write is not None:
        write(options.write, results)
    return 1 if any(result.outcome in (WRONG, FAILED) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
