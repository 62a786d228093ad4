"""`fewbit export`: a checkpoint as a file of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.frontends.language import open_checkpoint
from tests.language.checkpoints import plain_folder, write_gguf


def test_the_suffix_says_the_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(plain_folder(tmp_path / "llama", rope_scaling=None))
    for name, options in (
        ("net.gguf", ["--type", "q8_0"]),
        ("half.gguf", []),
        ("net.bin", ["-r", "w4a8-tensor", "--context", "16"]),
        ("other", ["-f", "gguf"]),
    ):
        path = tmp_path / name
        assert guarded(run, ["export", folder, "-o", str(path), *options]) == 0
        assert f"{path}: {path.stat().st_size:,} bytes" in capsys.readouterr().err
    kinds = {
        name: gguf.GGUFReader(tmp_path / name).tensors[0].tensor_type.name
        for name in ("net.gguf", "half.gguf", "other")
    }
    assert kinds == {"net.gguf": "Q8_0", "half.gguf": "F16", "other": "F16"}
    assert (tmp_path / "net.bin").read_bytes()[:4] == b"24ka"
    assert (tmp_path / "net.bin").read_bytes()[32:36] == bytes([16, 0, 0, 0])


def test_what_is_exported_is_read_again(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf")
    command = ["export", str(tmp_path / "a.gguf"), "-o", str(tmp_path / "b.gguf"), "--type", "q4_0"]
    assert guarded(run, command) == 0
    before, after = (open_checkpoint(tmp_path / f"{name}.gguf") for name in "ab")
    assert after.config == before.config
    assert after.text is not None


@pytest.mark.parametrize(
    ("options", "status", "what"),
    [
        (["MODEL", "-o", "net.safetensors"], 2, "does not say which format is wanted"),
        (["MODEL", "-o", "net.gguf", "-r", "w8a8"], 2, "--recipe is for MiCo's format"),
        (["MODEL", "-o", "net.gguf", "--context", "8"], 2, "--context is for MiCo's format"),
        (["MODEL", "-o", "net.bin"], 2, "no recipe says how many"),
        (["MODEL", "-o", "net.bin", "--type", "f16"], 2, "--type is for GGUF"),
        (["MODEL", "-o", "net.bin", "-r", "w8a8"], 2, "write 'w8a8-tensor'"),
        (["MODEL", "-o", "net.bin", "-r", "w8a8-tensor"], 3, "other angles"),
        (["MODEL", "-o", "net.gguf", "--type", "q6_k"], 2, "q6_k"),
        (["zoo:lenet", "-o", "net.gguf"], 2, "there is no file or folder"),
        ([".", "-o", "net.gguf"], 2, "no checkpoint of a language model"),
    ],
)
def test_mistakes(
    options: list[str],
    status: int,
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings: dict[str, Any] = {} if "angles" in what else {"rope_scaling": None}
    folder = str(plain_folder(tmp_path / "llama", **settings))
    monkeypatch.chdir(tmp_path)
    assert guarded(run, ["export", *(word.replace("MODEL", folder) for word in options)]) == status
    assert what in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["llama"]
