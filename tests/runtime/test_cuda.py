# pyright: basic
"""Programs for GPUs with a state: what stays on the GPU, what is copied, and text from steps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.errors import ShapeError, UsageError
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.runtime.session import StatefulRunner
from tests.language.checkpoints import write_gguf
from tests.runtime.test_session import Remembers, given
from tests.targets.cuda.emulate import COMPILER
from tests.targets.cuda.fake_gpu import FakeGpu, gpu
from tests.targets.cuda.test_target import has_nvrtc

__all__ = ["gpu"]
pytestmark = pytest.mark.skipif(COMPILER is None or not has_nvrtc(), reason="a compiler is missing")
CONTEXT = 64
PROMPT = [5, 7, 11, 2]


@pytest.fixture(scope="module")
def remembers(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("remembers") / "remembers"
    return fewbit.compile(Remembers(), "cuda", folder, example_inputs=given(0))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "model.gguf"
    write_gguf(path, depth=2)
    return path


@pytest.fixture(scope="module")
def decoder(checkpoint: Path) -> Artifact:
    return fewbit.compile(
        str(checkpoint), "cuda", checkpoint.parent / "decoder", recipe="w4a8g32", context=CONTEXT
    )


@pytest.fixture(scope="module")
def program(checkpoint: Path) -> Program:
    imported = fewbit.import_model(checkpoint, context=CONTEXT, cache="f16")
    return fewbit.quantize(imported, "w4a8g32")


def fresh(artifact: Artifact) -> Artifact:
    return fewbit.load(artifact.folder)


def decode_by_interpreter(program: Program, count: int) -> list[int]:
    state = [
        np.zeros([n or 0 for n in s.shape or ()], s.dtype) for s in program.signature.inputs[2:]
    ]
    tokens, given, position = [], PROMPT, 0
    for _ in range(count):
        logits, *state = program.run(np.array([given]), np.array([position]), *state)
        tokens.append(int(logits[0, -1].argmax()))
        position, given = position + len(given), tokens[-1:]
    return tokens


def test_steps_are_those_of_eager(remembers: Artifact, gpu: FakeGpu) -> None:
    session, eager = fresh(remembers).session(), Remembers()
    assert isinstance(fresh(remembers).runner, StatefulRunner)
    for step in range(7):
        for got, wanted in zip(session(*given(step)), eager(*given(step)), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-6)
    state = {name.removeprefix("b_"): np.asarray(a) for name, a in session.state.items()}
    np.testing.assert_array_equal(state["latest"], eager.latest.numpy())
    np.testing.assert_allclose(state["total"], eager.total.numpy(), rtol=1e-6)


def test_sessions_are_apart_and_begin_anew(remembers: Artifact, gpu: FakeGpu) -> None:
    loaded = fresh(remembers)
    first, second = loaded.session(), loaded.session()
    once = first.run(*given(1))
    first.run(*given(2))
    for got, wanted in zip(second.run(*given(1)), once, strict=True):
        np.testing.assert_array_equal(got, wanted)
    first.reset()
    for got, wanted in zip(first.run(*given(1)), once, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_step_copies_no_state_and_captures_nothing_anew(
    remembers: Artifact, gpu: FakeGpu
) -> None:
    session = fresh(remembers).session()
    session(*given(0))
    copied, captures = gpu.copied, gpu.captures
    session(*given(1))
    x, place = given(1)
    inputs, outputs = x.nbytes + place.nbytes, 2 * x.nbytes
    assert gpu.copied - copied == inputs + outputs
    assert gpu.captures == captures == 1


def test_state_can_be_written(remembers: Artifact, gpu: FakeGpu) -> None:
    session = fresh(remembers).session()
    (name,) = (name for name in session.state if name.endswith("total"))
    session.state[name].assign(np.full(3, 2.0))
    before, _ = session(*given(0))
    np.testing.assert_array_equal(before, np.full(3, 2.0))


def test_state_can_be_given_and_taken(remembers: Artifact, gpu: FakeGpu) -> None:
    program, loaded = fewbit.import_model(Remembers(), example_inputs=given(0)), fresh(remembers)
    arrays = [np.asarray(each) for each in given(3)]
    state = [np.full((3,), 7.0, np.float32), np.ones((4, 3), np.float32)]
    for got, wanted in zip(loaded.run(*arrays, *state), program.run(*arrays, *state), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    np.testing.assert_array_equal(state[0], np.full((3,), 7.0))
    loaded.runner.prepare(*arrays, *state, in_place=True)()
    np.testing.assert_allclose(state[0], 7.0 + arrays[0], rtol=1e-6)


def test_memory_is_released(remembers: Artifact, gpu: FakeGpu) -> None:
    loaded = fresh(remembers)
    session = loaded.session()
    session(*given(0))
    del session
    runner = loaded.runner
    assert len(gpu.memory) == len(runner.addresses)
    assert not gpu.pinned
    assert not gpu.graphs
    runner.close()
    assert not gpu.memory


def test_wrong_inputs_are_refused(remembers: Artifact, gpu: FakeGpu) -> None:
    session = fresh(remembers).session()
    with pytest.raises(ShapeError, match="takes 3"):
        session(torch.zeros(4), torch.tensor([0]))


def test_a_checkpoint_is_compiled_for_steps(decoder: Artifact) -> None:
    assert decoder.text_model.settings.steps
    tokens, position, *_ = decoder.manifest.inputs
    assert (tokens.shape, position.shape) == ((1, 1), (1,))


def test_text_is_that_of_the_interpreter(decoder: Artifact, program: Program, gpu: FakeGpu) -> None:
    loaded = fresh(decoder)
    generation = loaded.generate(PROMPT, tokens=12)
    list(generation)
    assert generation.tokens == decode_by_interpreter(program, 12)
    again = loaded.generate(PROMPT, tokens=12)
    list(again)
    assert again.tokens == generation.tokens


def test_a_prompt_is_read_token_by_token(decoder: Artifact, gpu: FakeGpu) -> None:
    whole, single = fresh(decoder).decode_session(), fresh(decoder).decode_session()
    at_once = whole.decode([PROMPT], [0])[0]
    for position, token in enumerate(PROMPT):
        last = single.decode([[token]], [position])[0]
    np.testing.assert_array_equal(at_once, last)


def test_what_does_not_fit_is_refused(decoder: Artifact, gpu: FakeGpu) -> None:
    session = fresh(decoder).decode_session()
    with pytest.raises(UsageError, match="do not fit into the context"):
        session.decode([[1] * 3], [CONTEXT - 2])
    with pytest.raises(UsageError, match="vocabulary"):
        session.decode([[1, 100_000]], [0])
    with pytest.raises(ShapeError):
        session(np.zeros((1, 2), np.float32), np.array([0]))


def test_by_the_command_line(
    checkpoint: Path, tmp_path: Path, gpu: FakeGpu, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "made")
    command = ["compile", str(checkpoint), "-r", "w4a8g32", "-t", "cuda", "--context", "32"]
    assert guarded(run, [*command, "-o", output]) == 0
    command = ["run", output, "--prompt", "hello world", "--tokens", "4", "--json"]
    assert guarded(run, command) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(told["tokens"]) == 4


def test_several_sequences(checkpoint: Path, program: Program, gpu: FakeGpu) -> None:
    art = fewbit.compile(str(checkpoint), "cuda", recipe="w4a8g32", context=CONTEXT, sequences=2)
    session = art.decode_session()
    session.decode([PROMPT, PROMPT[:2]], [0, 0])
    first, second = session.decode([[3], [3]], [len(PROMPT), 2])
    assert np.abs(first - second).max() > 0
    session.reorder([0, 0], kept=len(PROMPT))
    first, second = session.decode([[3], [3]], [len(PROMPT), len(PROMPT)])
    np.testing.assert_array_equal(first, second)
