"""`fewbit bench conv2d -t cuda`, as far as it goes without a GPU."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

from fewbit.bench.gpu.attention_ladder import bench_attention
from fewbit.bench.gpu.ladder import bench_conv2d, key, settings
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.errors import MissingToolError, UsageError
from fewbit.kernels.cuda.arch import AMPERE, HOPPER
from fewbit.kernels.cuda.conv2d import LADDER
from fewbit.kernels.cuda.convolution import Convolution


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def test_attention_is_checked_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="which attention"):
        bench_attention(None, "f16", True, None)
    with pytest.raises(UsageError, match="no shape of attention"):
        bench_attention("32x12x197", "f16", True, None)
    with pytest.raises(UsageError, match="not computed in f32"):
        bench_attention("32x12x197x64", "f32", True, None)


def test_a_shape_is_needed() -> None:
    with pytest.raises(UsageError, match="which convolution"):
        bench_conv2d(None, "all", "f16", "nhwc", None)


def test_unknown_variants_are_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="no variant 'magic'"):
        bench_conv2d("n1,8x8,8,8,k1", "magic", "f16", "nhwc", None)


@pytest.mark.skipif(has_driver(), reason="there is a GPU's driver here")
def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(MissingToolError, match="no CUDA driver"):
        bench_conv2d("n1,8x8,8,8,k1", "all", "f16", "nhwc", None)


def test_settings_come_from_the_table_or_are_the_first_guess() -> None:
    known = Convolution.parse("n32,56x56,64,64,k3")
    assert key(known) == "n32,56x56,64,64,k3|f16|nhwc"
    assert settings(LADDER["wgmma"], known, HOPPER)["bn"] == 64
    other = Convolution.parse("n3,9x9,8,8,k3")
    assert settings(LADDER["mma"], other, AMPERE) == LADDER["mma"].configs(other, AMPERE)[0]


def test_the_command_line_leads_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["bench", "conv2d", "-t", "cuda"]) == 2
    assert "which convolution" in capsys.readouterr().err


def test_the_page_s_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[3] / "docs" / "gpu.md"
    for program in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(program, {})
    assert capsys.readouterr().out == "None True\nTrue\n"
