"""The example that decodes in C, with a library and a header alone, under checkers of memory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fewbit
from fewbit.runtime import Artifact
from tests.language.checkpoints import VOCABULARY, write_gguf
from tests.targets.cpu.test_c_client import MEMORY, ROOT, STRICT, run

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")

EXAMPLE = ROOT / "examples" / "c_decode"
CONTEXT = 64  # A cache has whole blocks of so many tokens.
PROMPT = [7, 260, 31, 0, 299]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decode") / "model.gguf"
    write_gguf(path, depth=2)
    return path


def build(artifact: Artifact, folder: Path, *options: str) -> Path:
    path = folder / "decode"
    command = [
        "gcc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", *STRICT, *MEMORY, *options, f"-I{artifact.folder}",
        str(EXAMPLE / "decode.c"), str(artifact.folder / "libmodel.a"), "-lm", "-pthread", "-o", str(path),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def decoded(artifact: Artifact, prompt: list[int], count: int) -> list[int]:
    generation = artifact.generate(prompt, tokens=count)
    assert len(list(generation)) > 0
    assert generation.finish == "length"
    return generation.tokens


@pytest.mark.parametrize("weights", ["inside", "beside"])
def test_tokens_are_those_of_python(checkpoint: Path, tmp_path: Path, weights: str) -> None:
    artifact = fewbit.compile(
        str(checkpoint), "cpu", tmp_path / "model", name="model", recipe="w8a8",
        context=CONTEXT, weights=weights,
    )  # fmt: skip
    assert (artifact.folder / "model.weights").exists() == (weights == "beside")
    in_pieces = build(artifact, tmp_path, "-DPIECE=2")
    assert [*map(int, run(in_pieces, artifact.folder, 6, *PROMPT).split())] == decoded(
        artifact, PROMPT, 6
    )
    program = build(artifact, tmp_path)
    for prompt, count in ((PROMPT, 20), (PROMPT[:1], 8)):
        said = run(program, artifact.folder, count, *prompt).decode()
        assert list(map(int, said.split())) == decoded(artifact, prompt, count)
    room = CONTEXT - len(PROMPT)
    assert len(run(program, artifact.folder, room, *PROMPT).split()) == room
    refused = [(room + 1, *PROMPT), (1, VOCABULARY), (1, -1), (1, "x"), (1,)]
    elsewhere = [(tmp_path, 1, 1)] if weights == "beside" else []
    for words in [*((artifact.folder, *each) for each in refused), *elsewhere]:
        done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr.startswith("decode: ")
        assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_runs_it(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build"))
    tool = Path(sys.executable).parent / "fewbit"
    tokens = " ".join(map(str, PROMPT))
    words = [f"MODEL={checkpoint}", f"FEWBIT={tool}", "RECIPE=", f"TOKENS={tokens}", "COUNT=6"]
    said = run("make", "-s", "-C", folder, "run", *words).decode().splitlines()
    artifact = fewbit.load(folder / "build" / "model")
    assert list(map(int, said[-1].split())) == decoded(artifact, PROMPT, 6)
