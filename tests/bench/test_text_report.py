"""`fewbit bench text`: what is read, what it is compared with, and the figures of a small model."""

from __future__ import annotations

from math import prod
from pathlib import Path

import gguf
import pytest

import fewbit
from fewbit.bench.comparable_gguf import write_comparable
from fewbit.bench.peers import find_tool, missing_packages, parse_text_peers
from fewbit.bench.roofline import measure_reading
from fewbit.bench.text_report import TextPlan, measure_text
from fewbit.bench.text_work import TextWork
from fewbit.errors import UsageError
from fewbit.frontends import import_model
from fewbit.frontends.language import open_checkpoint
from fewbit.language.export.weight_type import WeightType
from fewbit.toolchain.isa import Isa
from tests.language.checkpoints import write_gguf


def test_a_step_is_measured_behind_its_tokens() -> None:
    step = TextWork(kind="step", length=5, vocabulary=50, context=16)
    prompt = TextWork(kind="prompt", length=5, vocabulary=50, context=16)
    assert (len(step.read_before), len(step.measured)) == (5, 1)
    assert (prompt.read_before, len(prompt.measured)) == ([], 5)
    assert prompt.measured == step.read_before
    assert all(0 <= token < 50 for token in step.read_before)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "net.gguf"
    write_gguf(path, gguf.GGMLQuantizationType.Q8_0)
    return path


@pytest.mark.parametrize(
    ("bits", "chosen", "type"),
    [(4.5, None, "Q4_0"), (9, None, "Q8_0"), (33, None, "F32"), (4, WeightType.Q8_0, "Q8_0")],
)
def test_the_other_file_has_as_many_bytes(
    bits: float, chosen: WeightType | None, type: str, checkpoint: Path, tmp_path: Path
) -> None:
    opened = open_checkpoint(checkpoint)
    elements = sum(prod(shape) for shape in opened.weight_shapes().values())
    write_comparable(opened, tmp_path / "out.gguf", int(elements * bits / 8), chosen)
    kinds = {t.tensor_type.name for t in gguf.GGUFReader(tmp_path / "out.gguf").tensors}
    assert kinds == {type, "F32"}


def test_figures_of_a_small_model(checkpoint: Path) -> None:
    program = fewbit.quantize(import_model(str(checkpoint), context=32), "w4a8g32-f16")
    plan = TextPlan(steps=(4, 20), prompts=(8,), threads=(1,), seconds=0.05)
    report = measure_text(str(checkpoint), program, plan)
    assert [times.work for times in report.times] == [
        "step behind 4",
        "step behind 20",
        "prompt of 8",
    ]
    for times in report.times:
        (ours,) = times.tools
        assert (ours.tool, ours.ratio, ours.sqnr_db) == ("fewbit", 1.0, None)
        assert 0 < ours.least <= ours.median
        assert (times.of_bandwidth is None) == times.work.startswith("prompt")
    assert 0 < report.step_weights <= report.weights
    assert report.reading[1] > 1e8
    assert report.plain()["times"][0]["tools"][0]["tool"] == "fewbit"


def test_reading_is_faster_from_a_cache() -> None:
    assert measure_reading(Isa.of("host"), 1 << 15, 1) > 1e9


def test_tools_that_read_text() -> None:
    assert parse_text_peers("none") == []
    assert set(missing_packages("llama.cpp", True, of_text=True)) <= {"llama_cpp"}
    assert len(find_tool("llama.cpp", of_text=True).variants(quantized=True)) == 2
    with pytest.raises(UsageError, match="no tool 'torch' to read text beside"):
        parse_text_peers("torch")
