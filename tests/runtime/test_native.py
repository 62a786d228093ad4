"""Compiled programs called from Python."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fewbit
from fewbit.errors import ShapeError, StoreError, UsageError
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from tests.targets.cpu.programs import ROWS, WIDE, Array, elementwise, inputs, layers


@pytest.fixture(scope="module")
def static() -> Artifact:
    return fewbit.compile(layers())


@pytest.fixture(scope="module")
def dynamic() -> Artifact:
    return fewbit.compile(layers(dynamic=True))


def check(artifact: Artifact, program: Program, *arrays: Any, **options: Any) -> None:
    results, wanted = artifact.run(*arrays, **options), program.run(*arrays)
    for got, right in zip(results, wanted, strict=True):
        assert got.dtype == right.dtype
        assert got.shape == right.shape
        assert np.array_equal(got, right)


def test_several_inputs_and_outputs(static: Artifact) -> None:
    check(static, layers(), *inputs())
    result, total = static(*inputs())
    assert np.array_equal(total, sum(inputs()))
    assert result.shape == (ROWS, 5)


@pytest.mark.parametrize("rows", [0, 1, 2, 17, 100])
def test_any_number_of_rows(dynamic: Artifact, rows: int) -> None:
    check(dynamic, layers(dynamic=True), *inputs(rows))


@pytest.mark.parametrize("bits", [None, 4])
def test_same_bits_for_any_number_of_threads(bits: int | None) -> None:
    program = layers(dynamic=True, bits=bits)
    artifact = fewbit.compile(program)
    random = np.random.default_rng(0)
    for rows in (1, 3, 301):  # few rows are all the first thread's
        x, y = random.normal(size=(2, rows, WIDE)).astype(np.float32)
        alone = artifact.run(x, y)
        for threads in (2, 3, 4, 64):
            for got, wanted in zip(artifact.run(x, y, threads=threads), alone, strict=True):
                assert got.tobytes() == wanted.tobytes()


def test_calls_from_several_threads_of_python(dynamic: Artifact) -> None:
    program = layers(dynamic=True)

    def call(i: int) -> None:
        for _ in range(20):
            check(dynamic, program, *inputs(1 + i), threads=1 + i % 2)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(call, range(12)))


ELEMENTS = [
    ("f32", "addf", np.float32), ("f64", "mulf", np.float64), ("f16", "addf", np.float16),
    ("bf16", "addf", ml_dtypes.bfloat16), ("i1", "xori", np.bool_), ("i8", "addi", np.int8),
    ("i16", "muli", np.int16), ("i32", "subi", np.int32), ("i64", "muli", np.int64),
]  # fmt: skip


@pytest.mark.parametrize(("element", "op", "dtype"), ELEMENTS)
def test_elements(element: str, op: str, dtype: Any) -> None:
    program = elementwise(element, op)
    a, b = (np.random.default_rng(1).normal(size=(2, 5)) * 9).astype(dtype)
    check(fewbit.compile(program), program, a, b)


def test_scalars() -> None:
    program = Program.parse("""
func.func @main(%a: f32, %b: tensor<f64>, %k: i64, %c: i1) -> (f32, tensor<f64>, i64, i1) {
  %s = arith.addf %a, %a : f32
  func.return %s, %b, %k, %c : f32, tensor<f64>, i64, i1
}""")
    artifact = fewbit.compile(program)
    given = (np.float32(1.5), np.float64(2.5), np.int64(-(2**40)), np.True_)
    result = artifact(*given)
    assert [(value.item(), value.shape) for value in result] == [
        (3.0, ()), (2.5, ()), (-(2**40), ()), (True, ()),
    ]  # fmt: skip


def test_no_input() -> None:
    program = Program.parse("""
func.func @main() -> tensor<2xf32> {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  func.return %c : tensor<2xf32>
}""")
    assert fewbit.compile(program)().tolist() == [1.0, 2.0]


def test_arrays_of_any_layout(static: Artifact) -> None:
    x, y = inputs()
    wanted = static.run(x, y)
    unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    assert not unaligned.flags.aligned
    read_only = x.copy()
    read_only.flags.writeable = False
    layouts: list[Array] = [
        np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], x[::-1][::-1], unaligned, read_only,
    ]  # fmt: skip
    for each in layouts:
        for got, right in zip(static.run(each, y), wanted, strict=True):
            assert np.array_equal(got, right)


def test_contiguous_inputs_are_not_copied_or_changed(static: Artifact) -> None:
    x, y = inputs()
    before = x.copy(), y.copy()
    first = static.run(x, y)
    second = static.run(x, y)
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])
    for a, b in zip(first, second, strict=True):
        assert not np.shares_memory(a, b)
        assert not np.shares_memory(a, x)


def test_tensors_of_torch(static: Artifact) -> None:
    torch = pytest.importorskip("torch")
    x, y = inputs()
    results = static.run(torch.from_numpy(x).requires_grad_(), torch.from_numpy(y))
    for got, right in zip(results, static.run(x, y), strict=True):
        assert np.array_equal(got, right)
    program = elementwise("bf16", "addf")
    a = torch.arange(5).to(torch.bfloat16)
    assert fewbit.compile(program)(a, a).tolist() == [0, 2, 4, 6, 8]


def test_input_that_does_not_fit(static: Artifact) -> None:
    x, y = inputs()
    wrong: list[tuple[Any, str]] = [
        (x[:, :4], r"input 'x' is 6x4, and the program takes 6x8"),
        (x[:2], r"input 'x' is 2x8, and the program takes 6x8"),
        (x[None], r"input 'x' is 1x6x8"),
        (x.ravel(), r"input 'x' is 48"),
        (x.astype(np.float64), r"input 'x' is of float64.*takes float32"),
        (x.astype(">f4"), r"input 'x' is of >f4"),
        (3, r"input 'x' is of int64"),
    ]
    for given, message in wrong:
        with pytest.raises(ShapeError, match=message):
            static(given, y)


def test_inputs_that_do_not_fit_together(dynamic: Artifact) -> None:
    with pytest.raises(ShapeError, match="do not fit together"):
        dynamic(inputs(3)[0], inputs(4)[1])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_number_of_inputs(static: Artifact, count: int) -> None:
    with pytest.raises(UsageError, match=rf"takes 2 inputs \(x, y\), {count} given"):
        static(*[inputs()[0]] * count)


def test_threads_end_with_the_library() -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/task"))
    artifact = fewbit.compile(layers(), name="net")
    artifact(*inputs(), threads=5)
    assert len(os.listdir("/proc/self/task")) == before + 4
    del artifact
    gc.collect()
    assert len(os.listdir("/proc/self/task")) == before


@pytest.fixture
def one_processor() -> Iterator[None]:
    """Have this thread, and those that it starts, share a processor."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    yield
    os.sched_setaffinity(0, processors)


def executed(thread: str) -> int:
    """Return for how many nanoseconds a thread of this process was executed."""
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0])


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="times are not told")
@pytest.mark.usefixtures("one_processor")
def test_threads_without_a_processor_are_left_alone() -> None:
    before = set(os.listdir("/proc/self/task"))
    artifact = fewbit.compile(layers(dynamic=True), name="crowded")
    x, y = inputs(400_000)
    alone = artifact.run(x, y)
    artifact.run(x, y, threads=2)
    (worker,) = set(os.listdir("/proc/self/task")) - before
    shared, calls = 0, 24
    for _ in range(calls):
        start = executed(worker)
        results = artifact.run(x, y, threads=2)
        shared += executed(worker) - start > 500_000
        assert all(map(np.array_equal, results, alone))
    assert 1 <= shared <= calls // 3


@pytest.mark.parametrize("threads", [0, -1, 65, 2**32 + 1, 1.5, "2"])
def test_number_of_threads(static: Artifact, threads: Any) -> None:
    with pytest.raises(UsageError, match="threads"):
        static(*inputs(), threads=threads)


def test_compiled_again_into_the_same_folder(tmp_path: Path) -> None:
    """A load sees what is there now, not what was there before."""
    a, b = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], np.float32)
    for op, wanted in (("addf", a + b), ("subf", a - b), ("mulf", a * b)):
        fewbit.compile(elementwise("f32", op), "cpu", tmp_path / "net", name="net")
        assert np.array_equal(fewbit.load(tmp_path / "net")(a, b), wanted)


def test_damaged_library_is_not_loaded(tmp_path: Path) -> None:
    artifact = fewbit.compile(layers(), "cpu", tmp_path / "net", name="net")
    library = tmp_path / "net" / "libnet.so"
    library.write_bytes(library.read_bytes()[:-100])
    with pytest.raises(StoreError, match="differs from its hash"):
        artifact(*inputs())


def test_folder_lives_as_long_as_its_artifact() -> None:
    artifact = fewbit.compile(elementwise("f32", "addf"))
    folder = artifact.folder
    assert folder.exists()
    runner = artifact.runner
    del artifact
    assert not folder.exists()
    assert runner(np.ones(5, np.float32), np.ones(5, np.float32))[0].tolist() == [2.0] * 5


def test_foreign_library_is_an_error(tmp_path: Path) -> None:
    from fewbit.program.artifact import write_folder

    made = fewbit.compile(layers(), "cpu", tmp_path / "net", name="net").manifest
    write_folder(tmp_path / "other", made, {"libnet.so": b"no library"})
    with pytest.raises(StoreError, match="not the one that the manifest describes"):
        fewbit.load(tmp_path / "other")(*inputs())


def test_struct_is_laid_out_as_in_c(dynamic: Artifact) -> None:
    struct: Any = dynamic.runner._inputs
    assert [name for name, _ in struct._fields_] == ["x", "x_dim0", "y", "y_dim0"]
    assert ctypes.sizeof(struct) == 32
