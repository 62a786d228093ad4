"""MiCo's files, as checkpoints with integers of their own."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.errors import UnsupportedError
from fewbit.frontends.language import open_checkpoint
from fewbit.frontends.language.frontend import Language
from fewbit.language.checkpoint import open_weights
from fewbit.language.export.write_mico import write_mico
from tests.language.checkpoints import VOCABULARY, empty_caches, plain_folder
from tests.language.export.test_write_mico import CONTEXT, PLAIN, read

RECIPE = "w4a8-tensor,model.layers.1.mlp=w2a4-tensor,model.layers.0.self_attn=w1a2-tensor"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return plain_folder(tmp_path / "llama", **PLAIN)


@pytest.fixture
def file(folder: Path, tmp_path: Path) -> Path:
    write_mico(open_checkpoint(folder), tmp_path / "net.bin", RECIPE, CONTEXT)
    return tmp_path / "net.bin"


def test_weights_are_those_of_the_c_program(file: Path) -> None:
    *_, expected = read(file)
    weights = open_weights(open_checkpoint(file))
    assert set(weights) == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(weights[name], array)


def test_a_program_has_the_integers_and_widths_of_the_file(file: Path, folder: Path) -> None:
    ours = fewbit.import_model(file, context=CONTEXT)
    whole = f"{RECIPE},lm_head=w8a8-tensor,model.embed_tokens=w8a8-tensor"
    theirs = fewbit.quantize(fewbit.import_model(folder, context=CONTEXT), whole)
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, (1, 9))
    caches = empty_caches(ours)
    for a, b in zip(
        ours.run(tokens, np.array([0]), *caches),
        theirs.run(tokens, np.array([0]), *caches),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_a_file_that_is_written_again_is_the_same(file: Path, tmp_path: Path) -> None:
    write_mico(open_checkpoint(file), tmp_path / "again.bin", RECIPE, CONTEXT)
    assert (tmp_path / "again.bin").read_bytes() == file.read_bytes()
    write_mico(open_checkpoint(file), tmp_path / "wider.bin", "w8a8-tensor", CONTEXT)
    assert (tmp_path / "wider.bin").stat().st_size > file.stat().st_size


def cut(data: bytearray) -> None:
    del data[-1:]


def other_version(data: bytearray) -> None:
    struct.pack_into("<i", data, 4, 2)


def no_heads(data: bytearray) -> None:
    struct.pack_into("<i", data, 20, 0)


def odd_heads(data: bytearray) -> None:
    struct.pack_into("<i", data, 20, 3)


def head_of_its_own(data: bytearray) -> None:
    data[36] = 0


def three_bits(data: bytearray) -> None:
    data[256 + 4 * 64 * 5] = 3


def nothing_behind(data: bytearray) -> None:
    del data[300:]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "its scales begin at"),
        (other_version, "does not begin as one"),
        (no_heads, "not possible"),
        (odd_heads, "do not fit together"),
        (head_of_its_own, "head is not the embedding"),
        (three_bits, "has 3 bits"),
        (nothing_behind, "can be read"),
    ],
)
def test_damaged_files_are_refused(
    damage: Callable[[bytearray], None], message: str, file: Path
) -> None:
    data = bytearray(file.read_bytes())
    damage(data)
    file.write_bytes(data)
    with pytest.raises(UnsupportedError, match=message):
        open_checkpoint(file)


def test_files_are_known_by_their_beginning(file: Path, tmp_path: Path) -> None:
    assert Language().reads(file)
    (tmp_path / "pickled.bin").write_bytes(b"\x80\x04" + bytes(100))
    assert not Language().reads(tmp_path / "pickled.bin")
    assert not Language().reads(tmp_path / "missing.bin")
