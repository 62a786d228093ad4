"""The header of GGUF files, compared with the reader of the package `gguf`."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest

from fewbit.language.gguf_header import read_header
from tests.language.checkpoints import write_gguf

Q = gguf.GGMLQuantizationType


@pytest.mark.parametrize("kind", [Q.F32, Q.F16, Q.BF16, Q.Q4_1, Q.Q8_0])
def test_a_header_is_what_the_package_reads(
    kind: gguf.GGMLQuantizationType, tmp_path: Path
) -> None:
    write_gguf(tmp_path / "net.gguf", kind, depth=2)
    ours, theirs = read_header(tmp_path / "net.gguf"), gguf.GGUFReader(tmp_path / "net.gguf")
    fields = {k: f.contents() for k, f in theirs.fields.items() if not k.startswith("GGUF.")}
    assert ours.settings == fields
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        own = ours.tensors[tensor.name]
        assert own.kind == tensor.tensor_type
        assert own.shape == tuple(reversed(tensor.shape.tolist()))
        np.testing.assert_array_equal(own.data, tensor.data)


def test_values_of_all_kinds(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "net.gguf", "llama")
    writer.add_uint32("four", 4)
    writer.add_float32("half", 0.5)
    writer.add_bool("yes", True)
    writer.add_array("words", ["a", "ß", ""])
    writer.add_array("numbers", [1, -2])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    settings = read_header(tmp_path / "net.gguf").settings
    expected = {"four": 4, "half": 0.5, "yes": True, "words": ["a", "ß", ""], "numbers": [1, -2]}
    assert {name: settings[name] for name in expected} == expected


def test_every_damage_is_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "net.gguf"
    write_gguf(path)
    whole = path.read_bytes()
    end = whole.index(b"output.weight") + 64
    random = np.random.default_rng(0)
    for position in random.integers(4, end, 300):
        damaged = bytearray(whole)
        damaged[position] = int(random.integers(256))
        path.write_bytes(damaged)
        try:
            read_header(path)
        except ValueError:
            continue
    for size in (4, 20, end // 2, end, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"\w"):
            read_header(path)


def test_other_versions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "net.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 7, 0, 0))
    with pytest.raises(ValueError, match="version 7"):
        read_header(tmp_path / "net.gguf")
