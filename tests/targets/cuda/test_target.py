"""Artifacts for GPUs: files, plans that fit together, and what is refused."""
# pyright: basic

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fewbit
from fewbit.artifact import open_folder
from fewbit.errors import MissingToolError, UsageError
from fewbit.kernels.cuda import nvrtc
from fewbit.kernels.cuda.plan import Pointer, TensorMap
from fewbit.runtime.cuda import read_plan
from fewbit.targets.compile import lower


def has_nvrtc() -> bool:
    try:
        nvrtc._library()
    except MissingToolError:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(not has_nvrtc(), reason="NVRTC is not installed")


@needs_nvrtc
@pytest.mark.parametrize(
    ("arch", "precision"), [("sm_75", "f16"), ("sm_80", "tf32"), ("sm_90", "f16")]
)
def test_plans_fit_together(arch: str, precision: str, tmp_path: Path) -> None:
    made = fewbit.compile("zoo:lenet", f"cuda:{arch}", tmp_path / "lenet", precision=precision)
    folder = open_folder(tmp_path / "lenet")
    plan = read_plan(folder)
    assert plan.arch.startswith(arch)
    assert made.manifest.options["precision"] == precision
    assert made.manifest.inputs[0].shape == (1, 1, 28, 28)
    assert len(plan.images) == sum(name.endswith(".cubin") for name in made.manifest.files)
    for launch in plan.launches:
        assert launch.symbol.encode() in plan.images[launch.image]
        for argument in launch.arguments:
            if isinstance(argument, Pointer | TensorMap):
                assert 0 <= argument.offset < plan.buffers[argument.buffer].bytes
    steps = json.loads((made.folder / "plan.json").read_text())["steps"]
    assert sum(step.get("launches", 1) for step in steps) == len(plan.launches)


def test_stages_have_texts() -> None:
    program = fewbit.quantize(fewbit.import_model("zoo:mlp"), "w4a8")
    assert "func.call @gpu.000" in lower(program, "linalg", "cuda")
    assert "memref.view" in lower(program, "memref", "cuda")
    text = lower(program, "cuda", "cuda")
    assert 'extern "C" __global__ void loops_000' in text


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="no 'f8'"):
        lower(fewbit.import_model("zoo:mlp"), "cuda", "cuda", precision="f8")
    with pytest.raises(UsageError, match="no tf32"):
        lower(fewbit.import_model("zoo:mlp"), "cuda", "cuda:sm_75", precision="tf32")
    with pytest.raises(UsageError, match="called 'sm_12'"):
        lower(fewbit.import_model("zoo:mlp"), "cuda", "cuda:sm_12")
