"""What the tests of GPU kernels have in common: whether their compilers are installed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from fewbit.errors import MissingToolError
from fewbit.kernels.cuda.arch import AMPERE
from fewbit.kernels.cuda.nvrtc import compile_source


def _has_nvrtc() -> bool:
    try:
        compile_source('extern "C" __global__ void nothing() {}', AMPERE)
    except MissingToolError:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(
    not _has_nvrtc(), reason="NVRTC is not installed: pip install 'fewbit[cuda]'"
)
needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="Triton is not installed: pip install 'fewbit[cuda]'"
)
