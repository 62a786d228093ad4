"""A C program that uses a library for several processors, here and on processors of other kinds."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

import fewbit
from fewbit.codegen.interface import error_number
from fewbit.runtime import Artifact
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.llvm import host_features
from tests.targets.cpu.programs import ROWS, inputs
from tests.targets.cpu.test_c_client import MEMORY, assert_right, build, program, run, sent

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or platform.machine() != "x86_64",
    reason="there is no gcc, or this machine is no x86",
)
X86 = ["x86-64-v4-vnni", "x86-64-v3", "x86-64-v2"]
RUNNABLE = [name for name in X86 if Isa.of(name).runs_on(host_features())]

MODELS = {
    "core2duo": "",
    "Nehalem": "x86-64-v2",
    "Haswell": "x86-64-v3",
    "Haswell,-bmi2": "x86-64-v2",
    "Haswell,-xsave": "x86-64-v2",
    "Haswell,-abm": "x86-64-v2",
    "Nehalem,-popcnt": "",
}
"""Processors of qemu, which has no AVX-512, and what fits them best."""

emulator = pytest.mark.skipif(
    shutil.which("qemu-x86_64") is None, reason="there is no qemu-x86_64 (Debian: qemu-user)"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dispatch")


@pytest.fixture(scope="module")
def artifact(home: Path) -> Artifact:
    return fewbit.compile(program("dynamic"), "cpu", home / "net", name="net", cpu_variants=X86)


@pytest.fixture(scope="module")
def client(home: Path, artifact: Artifact) -> Path:
    return build("variants", artifact, home)


def emulate(model: str, *command: object, given: bytes = b"") -> tuple[int, bytes]:
    words = ["qemu-x86_64", "-cpu", model, *map(str, command)]
    done = subprocess.run(words, input=given, capture_output=True, timeout=120)
    return done.returncode, done.stdout


@pytest.mark.parametrize("shared", [False, True], ids=["static-library", "shared-library"])
@pytest.mark.parametrize("language", ["c99", "c++20"])
def test_memory_checkers_find_nothing(artifact: Artifact, tmp_path: Path, language: str, shared: bool) -> None:  # fmt: skip
    client = build("variants", artifact, tmp_path, *MEMORY, language=language, shared=shared)
    assert run(client, "ask").decode() == RUNNABLE[0]
    for name in RUNNABLE:
        assert_right(run(client, "use", name, given=sent(inputs())), "dynamic", ROWS)


def test_what_is_refused(client: Path) -> None:
    lacking = [name for name in X86 if name not in RUNNABLE]
    run(client, "errors", *lacking[:1])


@pytest.mark.parametrize("options", [(), ("-fsanitize=thread",)], ids=["plain", "thread-sanitizer"])
def test_variant_changes_during_calls(artifact: Artifact, tmp_path: Path, options: tuple[str, ...]) -> None:  # fmt: skip
    run(build("variants", artifact, tmp_path, *options), "meet", *RUNNABLE)


@emulator
@pytest.mark.parametrize("model", MODELS)
def test_best_is_chosen(client: Path, model: str) -> None:
    assert emulate(model, client, "ask") == (0, MODELS[model].encode())


@emulator
@pytest.mark.parametrize(("model", "name"), [("Nehalem", "x86-64-v2"), ("Haswell", "x86-64-v3")])
def test_same_numbers_on_other_processors(client: Path, model: str, name: str) -> None:
    status, data = emulate(model, client, "use", name, given=sent(inputs()))
    assert status == 0
    assert_right(data, "dynamic", ROWS)


@emulator
def test_code_that_a_processor_lacks_is_not_run(client: Path) -> None:
    for name in X86:
        if name != "x86-64-v2":
            status, _ = emulate("Nehalem", client, "use", name, given=sent(inputs()))
            assert status == error_number("VARIANT")
    assert emulate("Nehalem", client, "errors", "x86-64-v3")[0] == 0


def test_two_libraries_in_one(artifact: Artifact, tmp_path: Path) -> None:
    """Each has variants of its own, and chooses for itself."""
    other = fewbit.compile(
        program("dynamic"), "cpu", tmp_path / "other", name="other", cpu_variants=X86[-2:]
    )
    source = tmp_path / "both.c"
    source.write_text(
        '#include "net.h"\n#include "other.h"\n'
        'int main(void) { return net_use_variant("x86-64-v2") != 0 || other_variant() == net_variant(); }\n'
    )
    path = tmp_path / "both"
    subprocess.run(
        [
            "gcc", "-Wall", "-Werror", f"-I{artifact.folder}", f"-I{other.folder}", str(source),
            str(artifact.folder / "libnet.a"), str(other.folder / "libother.a"),
            "-lm", "-pthread", "-o", str(path),
        ],
        check=True,
    )  # fmt: skip
    run(path)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
def test_valgrind_is_a_processor_without_avx512(client: Path) -> None:
    checker = ("valgrind", "-q", "--error-exitcode=99")
    assert run(*checker, client, "ask").decode() == "x86-64-v3"
