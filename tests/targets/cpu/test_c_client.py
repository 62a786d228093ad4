"""C and C++ programs that use a compiled library through its header, under checkers of memory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.codegen.interface import ERRORS
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.toolchain.isa import names
from tests.targets.cpu.programs import CLASSES, ROWS, WIDE, Array, inputs, layers

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("g++") is None, reason="there is no gcc or g++"
)

CLIENTS = Path(__file__).parent / "clients"
ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "c_client"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wcast-qual", "-Wconversion", "-g")
MEMORY = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
LANGUAGES = {
    "c99": ("gcc", "-std=c99", "-D_GNU_SOURCE"),
    "c17": ("gcc", "-std=c17", "-D_GNU_SOURCE"),
    "c++11": ("g++", "-x", "c++", "-std=c++11"),
    "c++20": ("g++", "-x", "c++", "-std=c++20"),
}

CUT = """
func.func @main(%x: tensor<2x?xf32>, %count: i64) -> tensor<2x?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = tensor.dim %x, %one : tensor<2x?xf32>
  %given = arith.index_cast %count : i64 to index
  %least = arith.minsi %given, %n : index
  %cut = arith.maxsi %least, %zero : index
  %y = tensor.extract_slice %x[0, 0] [2, %cut] [1, 1] : tensor<2x?xf32> to tensor<2x?xf32>
  func.return %y : tensor<2x?xf32>
}
"""
"""As many columns as an input says, which may be more than there are."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clients")


@cache
def program(kind: str) -> Program:
    return layers(dynamic=kind == "dynamic", bits=8)


def compiled(home: Path, kind: str, target: str = "cpu") -> Artifact:
    folder = home / f"{kind}-{target.replace(':', '-')}"
    if not folder.exists():
        return fewbit.compile(program(kind), target, folder, name="net")
    return fewbit.load(folder)


def build(client: str, artifact: Artifact, folder: Path, *options: str, language: str = "c17", shared: bool = False) -> Path:  # fmt: skip
    path = folder / client
    library = artifact.folder / ("libnet.so" if shared else "libnet.a")
    command = [
        *LANGUAGES[language], *STRICT, *options, f"-I{artifact.folder}", str(CLIENTS / f"{client}.c"),
        "-x", "none", str(library), f"-Wl,-rpath,{artifact.folder}", "-lm", "-pthread", "-o", str(path),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def run(*command: object, given: bytes = b"") -> bytes:
    environment = os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1"}
    done = subprocess.run(
        [str(word) for word in command], input=given, capture_output=True, env=environment, timeout=120
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr.decode())
    return done.stdout


def sent(arrays: tuple[Array, ...]) -> bytes:
    return b"".join(array.tobytes() for array in arrays)


def assert_right(data: bytes, kind: str, rows: int) -> None:
    floats = np.frombuffer(data, np.float32)
    found = np.split(floats, [rows * CLASSES])
    for got, wanted in zip(found, program(kind).run(*inputs(rows)), strict=True):
        assert np.array_equal(got, wanted.ravel())


@pytest.mark.parametrize("shared", [False, True], ids=["static-library", "shared-library"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_client_of_fixed_sizes(home: Path, tmp_path: Path, language: str, shared: bool) -> None:
    artifact = compiled(home, "static")
    client = build("static", artifact, tmp_path, *MEMORY, language=language, shared=shared)
    for threads in (1, 3):
        data = run(client, threads, given=sent(inputs()))
        assert len(data) == 4 * ROWS * (CLASSES + WIDE)
        assert_right(data, "static", ROWS)


@pytest.mark.parametrize("language", ["c17", "c++20"])
def test_client_of_any_size(home: Path, tmp_path: Path, language: str) -> None:
    client = build("dynamic", compiled(home, "dynamic"), tmp_path, *MEMORY, language=language)
    for rows in (1, 7, 64):
        for threads in (1, 4):
            assert_right(run(client, rows, threads, given=sent(inputs(rows))), "dynamic", rows)


@pytest.mark.parametrize("language", ["c17", "c++20"])
def test_client_of_sizes_that_only_a_run_knows(tmp_path: Path, language: str) -> None:
    artifact = fewbit.compile(Program.parse(CUT), "cpu", tmp_path / "cut", name="net")
    client = build("counted", artifact, tmp_path, *MEMORY, language=language)
    columns = 5
    x = np.arange(2 * columns, dtype=np.float32).reshape(2, columns)
    for wanted, kept in ((3, 3), (0, 0), (9, columns), (-1, 0)):
        for threads in (1, 3):
            given = x.tobytes() + np.int64(wanted).tobytes()
            data = run(client, columns, threads, given=given)
            assert data == np.ascontiguousarray(x[:, :kept]).tobytes()


@pytest.mark.parametrize("language", ["c17", "c++20"])
def test_every_error_is_reported(home: Path, tmp_path: Path, language: str) -> None:
    run(build("errors", compiled(home, "dynamic"), tmp_path, *MEMORY, language=language))


@pytest.mark.parametrize("shared", [False, True], ids=["static-library", "shared-library"])
def test_thread_that_does_not_start_is_an_error(home: Path, tmp_path: Path, shared: bool) -> None:
    run(build("errors", compiled(home, "dynamic"), tmp_path, shared=shared), "start")


@pytest.mark.parametrize("options", [(), ("-fsanitize=thread",)], ids=["plain", "thread-sanitizer"])
def test_calls_at_the_same_time(home: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    run(build("concurrent", compiled(home, "dynamic"), tmp_path, *options))


@pytest.mark.parametrize("options", [(), MEMORY], ids=["plain", "address-sanitizer"])
def test_workers_from_loading_to_unloading(
    home: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    artifact = compiled(home, "dynamic")
    client = build("threads", artifact, tmp_path, *options, "-Wno-pedantic")
    run(client, artifact.folder / "libnet.so", 30)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
@pytest.mark.parametrize("threads", [1, 2])
def test_valgrind_finds_nothing(home: Path, tmp_path: Path, threads: int) -> None:
    # It does not know AVX-512.
    client = build("dynamic", compiled(home, "dynamic", "cpu:x86-64-v3"), tmp_path)
    checker = (
        "valgrind",
        "-q",
        "--error-exitcode=99",
        "--leak-check=full",
        "--show-leak-kinds=all",
    )
    assert_right(run(*checker, client, 7, threads, given=sent(inputs(7))), "dynamic", 7)


def pattern(count: int) -> Array:
    """The image that the example makes up."""
    return (np.arange(count) * 7919 % 1000).astype(np.float32) / np.float32(1000)


def check_example(folder: Path, model: str, *settings: str) -> None:
    """All clients of the example say what Python finds."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build"))
    strict = " ".join(STRICT)
    tool = Path(sys.executable).parent / "fewbit"
    words = ["make", "-s", "-C", str(folder), "run", f"MODEL={model}", f"FEWBIT={tool}", *settings]
    said = run(*words, f"CFLAGS={strict}", f"CXXFLAGS={strict}").decode()
    (home,) = (folder / "build").iterdir()
    artifact = fewbit.load(home / "model")
    sizes = artifact.manifest.inputs[0].shape[1:]
    image = pattern(prod(size or 1 for size in sizes)).reshape(1, *[size or 1 for size in sizes])
    best = int(np.argmax(artifact(image)))
    assert len(re.findall(rf"^class {best}, score", said, re.MULTILINE)) == 2
    assert len(re.findall(rf"^classes {best} {best} {best} {best}, ", said, re.MULTILINE)) == 2
    wrong = subprocess.run([home / "client", EXAMPLE / "README.md"], capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "is not a file of" in wrong.stderr
    (home / "image.bin").write_bytes(image.tobytes())
    assert f"class {best}," in run(home / "client", home / "image.bin", 2).decode()


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_example(tmp_path: Path) -> None:
    check_example(tmp_path / "example", "lenet")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_example_with_a_large_network(tmp_path: Path) -> None:
    check_example(tmp_path / "example", "resnet18", "RECIPE=w8a8")


def test_program_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    source, weights = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    assert "lenet_use_weights(content, about.st_size)" in weights
    (python,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "example.c").write_text(source)
    kept = python.replace('"zoo:lenet"', f'"zoo:lenet", output={str(tmp_path / "build/lenet")!r}')
    assert run(sys.executable, "-c", kept) == b"(8, 10)\n"
    commands = re.findall(r"^cc .*$", page, re.MULTILINE)
    score = fewbit.load(tmp_path / "build/lenet")(np.zeros((1, 1, 28, 28), np.float32))[0, 3]
    for command in commands:
        done = subprocess.run(
            [*command.split(), *STRICT, "-D_GNU_SOURCE"], cwd=tmp_path, check=False
        )
        assert done.returncode == 0
        said = subprocess.run(
            ["./example"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert said.stdout == f"the score of class 3 is {score:f}\n"
    assert len(commands) == 2


def test_page_names_every_error_and_processor() -> None:
    page = (ROOT / "docs" / "native.md").read_text(encoding="utf-8")
    for name, meaning in ERRORS:
        assert f"| `LENET_{name}` | {meaning}" in page
    for name in names():
        assert f"| `cpu:{name}` |" in page


def test_two_programs_in_one(home: Path, tmp_path: Path) -> None:
    """Nothing but what the header names is visible to others."""
    compiled(home, "static")
    other = fewbit.compile(program("static"), "cpu", tmp_path / "other", name="other")
    source = tmp_path / "both.c"
    source.write_text(
        '#include "net.h"\n#include "other.h"\n'
        "int main(void) { return net_run(0, 0, 0, 1) == NET_NULL && other_run(0, 0, 0, 1) == OTHER_NULL"
        " ? 0 : 1; }\n"
    )
    net = compiled(home, "static")
    path = tmp_path / "both"
    command = [
        "gcc", *STRICT, f"-I{net.folder}", f"-I{other.folder}", str(source),
        str(net.folder / "libnet.a"), str(other.folder / "libother.a"), "-lm", "-pthread", "-o", str(path),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    run(path)
