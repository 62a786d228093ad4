"""Plans as data."""

from __future__ import annotations

import json

import pytest

from fewbit.errors import StoreError, UsageError
from fewbit.kernels.cuda.arch import ADA, ARCHS, HOPPER, TURING, find_arch
from fewbit.kernels.cuda.plan import Buffer, Launch, Plan, Pointer, Scalar, TensorMap

PLAN = Plan(
    "conv2d",
    "sm_90a",
    {"x": Buffer("f16", (2, 8)), "y": Buffer("f32", (3,), "out"), "t": Buffer("i32", (4,), "work")},
    (
        Launch(
            0,
            "kernel",
            (3, 2, 1),
            128,
            (
                TensorMap("x", "f16", (8, 2), (16,), (8, 2), 64, ((-1, -1), (1, 1)), (1, 2)),
                Pointer("y"),
                Scalar("f32", 0.5),
            ),
            1024,
            2,
        ),
    ),
    (b"\x7fELF\x00\xff",),
)


def test_a_plan_survives_json() -> None:
    assert Plan.of(json.loads(json.dumps(PLAN.plain()))) == PLAN


def test_bytes_of_buffers() -> None:
    assert [buffer.bytes for buffer in PLAN.buffers.values()] == [32, 12, 16]


@pytest.mark.parametrize("missing", ["name", "buffers", "launches", "images"])
def test_what_is_no_plan_is_refused(missing: str) -> None:
    plain = PLAN.plain()
    del plain[missing]
    with pytest.raises(StoreError, match="no plan"):
        Plan.of(plain)


def test_images_must_be_base64() -> None:
    with pytest.raises(StoreError, match="no plan"):
        Plan.of({**PLAN.plain(), "images": ["%%%"]})


def test_generations_have_several_names() -> None:
    for arch in ARCHS:
        assert {find_arch(n) for n in (arch.name, arch.code, f"sm_{arch.compute}")} == {arch}
    assert (TURING.code, ADA.code, HOPPER.code) == ("sm_75", "sm_89", "sm_90a")
    with pytest.raises(UsageError, match="sm_1") as caught:
        find_arch("sm_1")
    assert "hopper" in (caught.value.hint or "")


def test_shared_memory_is_shared_by_blocks() -> None:
    assert HOPPER.fits(225 * 1024)
    assert not HOPPER.fits(227 * 1024)
    assert HOPPER.fits(110 * 1024, 2)
    assert not HOPPER.fits(113 * 1024, 2)
