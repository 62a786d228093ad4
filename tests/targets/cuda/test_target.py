"""Artifacts for GPUs: files, plans that fit together, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_mlir.ir import StringAttr  # pyright: ignore[reportAttributeAccessIssue]
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp

import fewbit
from fewbit.errors import MissingToolError, UsageError, VerifyError
from fewbit.kernels.cuda import nvrtc
from fewbit.kernels.cuda.arch import HOPPER
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.plan import Pointer, TensorMap
from fewbit.program.artifact import open_folder
from fewbit.runtime.cuda import read_plan
from fewbit.targets.compile import lower
from fewbit.tune.cuda.layers import layer_key, layers_of
from fewbit.tune.database import Database, Result
from tests.targets.cuda.test_layers import Attended


def has_nvrtc() -> bool:
    try:
        nvrtc._library()  # pyright: ignore[reportPrivateUsage]
    except MissingToolError:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(not has_nvrtc(), reason="NVRTC is not installed")


@needs_nvrtc
@pytest.mark.parametrize(
    ("arch", "precision"), [("sm_75", "f16"), ("sm_80", "tf32"), ("sm_90", "f16")]
)
def test_plans_fit_together(arch: str, precision: str, tmp_path: Path) -> None:
    artifact = fewbit.compile("zoo:lenet", f"cuda:{arch}", tmp_path / "lenet", precision=precision)
    folder = open_folder(tmp_path / "lenet")
    plan = read_plan(folder)
    assert plan.arch.startswith(arch)
    assert artifact.manifest.options["precision"] == precision
    assert artifact.manifest.inputs[0].shape == (1, 1, 28, 28)
    assert len(plan.images) == sum(name.endswith(".cubin") for name in artifact.manifest.files)
    for launch in plan.launches:
        assert launch.symbol.encode() in plan.images[launch.image]
        for argument in launch.arguments:
            if isinstance(argument, Pointer | TensorMap):
                assert 0 <= argument.offset < plan.buffers[argument.buffer].bytes
    steps = json.loads((artifact.folder / "plan.json").read_text())["steps"]
    assert sum(step.get("launches", 1) for step in steps) == len(plan.launches)


def test_stages_have_texts() -> None:
    program = fewbit.quantize(fewbit.import_model("zoo:mlp"), "w4a8")
    assert "func.call @gpu.000" in lower(program, "linalg", "cuda")
    assert "memref.view" in lower(program, "memref", "cuda")
    text = lower(program, "cuda", "cuda")
    assert 'extern "C" __global__ void loops_000' in text


@needs_nvrtc
def test_settings_that_a_search_found_reach_attention(tmp_path: Path) -> None:
    program = fewbit.import_model(Attended(), (torch.zeros(2, 19, 64),))
    (layer,) = (
        each
        for each in layers_of(program, HOPPER, precision="f16")[0]
        if isinstance(each.problem, Attention)
    )
    _, schedule = next(
        (cost, s) for cost, s in layer.rank() if dict(s.how)["stay"] != layer.config["stay"]
    )
    database = Database(tmp_path / "tuning.db")
    key = layer_key(layer.problem, HOPPER)
    database.put(Result(key, schedule, 0.5, 0.0, 1e-5, 3, "measured"))
    steps: dict[str, Any] = {}
    for tuning in ("none", str(database.path)):
        folder = tmp_path / tuning[-4:]
        artifact = fewbit.compile(program, "cuda:sm_90", folder, precision="f16", tuning_db=tuning)
        plan = json.loads((artifact.folder / "plan.json").read_text())
        (steps[tuning],) = (step for step in plan["steps"] if step["step"] == "attention")
    usual, tuned = steps.values()
    assert usual["config"] == dict(layer.config)
    assert {"kernel": tuned["kernel"], **tuned["config"]} == dict(schedule.how)


@needs_nvrtc
@pytest.mark.parametrize("stage", ["mico", "kernel", "linalg"])
def test_a_pass_that_breaks_the_program_is_found_at_once(stage: str) -> None:
    def drop_return(module: ModuleOp) -> None:
        for op in list(module.walk()):
            if isinstance(op, ReturnOp):
                op.detach()

    with pytest.raises(VerifyError):
        lower(fewbit.import_model("zoo:mlp"), stage, "cuda", passes={stage: [drop_return]})


def test_a_pass_that_breaks_memory_is_found_at_once() -> None:
    def call_nobody(module: Any) -> None:
        """Renames what is called, and leaves the calls."""
        for op in module.body.operations:
            if "sym_name" in op.attributes and op.regions and not list(op.regions[0]):
                op.attributes["sym_name"] = StringAttr.get("nobody", op.context)
                return

    with pytest.raises(Exception, match="does not reference a valid function"):
        lower(
            fewbit.quantize(fewbit.import_model("zoo:mlp"), "w4a8"),
            "memref",
            "cuda",
            passes={"memref": [call_nobody]},
        )


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="cannot be 'f8'"):
        lower(fewbit.import_model("zoo:mlp"), "cuda", "cuda", precision="f8")
    with pytest.raises(UsageError, match="no tf32"):
        lower(fewbit.import_model("zoo:mlp"), "cuda", "cuda:sm_75", precision="tf32")
    with pytest.raises(UsageError, match="called 'sm_12'"):
        lower(fewbit.import_model("zoo:mlp"), "cuda", "cuda:sm_12")
