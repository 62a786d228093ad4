"""Artifacts of several parts on disk: whole, checked, and refused where they were changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.errors import Error, StoreError
from fewbit.program.artifact import Manifest, open_folder, signature_of
from tests.targets.placed.networks import inputs, residual

Plain = dict[str, Any]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("placed") / "net"
    return fewbit.compile(residual(), output=folder, place="b=cpu:x86-64-v3").folder


@pytest.fixture
def folder(compiled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(compiled, tmp_path / "net")


def change(folder: Path, edit: Callable[[Plain], object]) -> None:
    """Change a manifest, and sign it again, as somebody would who wants it to be loaded."""
    path = folder / "manifest.json"
    plain = json.loads(path.read_text())
    edit(plain)
    manifest = Manifest.model_validate_json(json.dumps(plain))
    signed = manifest.model_copy(update={"signature": signature_of(manifest)})
    path.write_text(signed.to_text())


def change_part(folder: Path, name: str, edit: Callable[[Plain], object]) -> None:
    """Change the manifest of a part, and its hash in that of the whole."""
    change(folder / name, edit)
    file = f"{name}/manifest.json"
    digest = hashlib.sha256((folder / file).read_bytes()).hexdigest()
    change(folder, lambda plain: plain["files"].update({file: digest}))


def test_an_artifact_replaces_an_older_one(folder: Path) -> None:
    fewbit.compile(residual(), output=folder, place="c=cpu:x86-64-v3")
    assert open_folder(folder).manifest.parts[1].modules == ("c",)
    fewbit.compile(residual(), output=folder)
    assert not (folder / "part0").exists()


@pytest.mark.parametrize("place", [".", "part1"])
def test_a_folder_with_other_files_is_not_replaced(folder: Path, place: str) -> None:
    (folder / place / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"notes\.txt"):
        fewbit.compile(residual(), output=folder, place="c=cpu:x86-64-v3")
    assert (folder / place / "notes.txt").read_text() == "mine"


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fewbit.targets import registry

    def fail(*_: Any) -> None:
        raise Error("no luck")

    monkeypatch.setattr(registry.find_target("gemmini"), "compile", fail)
    with pytest.raises(Error, match="no luck"):
        fewbit.compile(residual(), output=tmp_path / "net", place="b=gemmini")
    assert list(tmp_path.iterdir()) == []


def first(plain: Plain) -> Plain:
    return plain["parts"][0]


EDITS: dict[str, tuple[Callable[[Plain], object], str]] = {
    "no default": (lambda m: m["options"].clear(), "where functions run"),
    "one name twice": (lambda m: m["parts"][1].update(name="part0"), "two parts have one name"),
    "an escape": (lambda m: first(m).update(name="../part0"), "names no such file"),
    "another folder": (lambda m: first(m).update(name="part7"), "names no such file"),
    "another target": (lambda m: first(m).update(target="vexii"), "is for cpu, and not for vexii"),
    "another order": (lambda m: m["parts"].reverse(), "not there by then"),
    "a part less": (lambda m: m["parts"].pop(), "not there by then"),
    "an unknown value": (lambda m: first(m).update(inputs=["y"]), "'y', which is not there"),
    "an input less": (lambda m: first(m).update(inputs=[]), "has 1 inputs and 2 outputs"),
    "a value twice": (lambda m: m["parts"][2].update(outputs=["a"]), "'a' is given twice"),
    "another result": (lambda m: m.update(results=["z"]), "'output0' is 'z'"),
    "no result": (lambda m: m.update(results=[]), "not every output"),
    "another shape": (lambda m: m["inputs"][0].update(shape=[None, 9]), "as another tensor"),
    "another element": (lambda m: m["inputs"][0].update(element="i8"), "as another tensor"),
    "a transfer less": (lambda m: m["transfers"].pop(), "the transfers are not those"),
    "a transfer twice": (
        lambda m: m["transfers"].append(m["transfers"][0]),
        "the transfers are not those",
    ),
    "a transfer elsewhere": (
        lambda m: m["transfers"][0].update(target="vexii"),
        "the transfers are not those",
    ),
    "a transfer of another shape": (
        lambda m: m["transfers"][0]["value"].update(shape=[None, 9]),
        "a transfer moves 'a' as another tensor",
    ),
    "another default": (
        lambda m: m["options"].update(default="vexii"),
        "the transfers are not those",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_manifest_that_was_changed_is_refused(folder: Path, edit: str) -> None:
    apply, message = EDITS[edit]
    change(folder, apply)
    with pytest.raises(StoreError, match=message):
        fewbit.load(folder)(inputs())


def test_without_its_signature_nothing_is_read(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"name": "part0"', '"name": "part1"'))
    with pytest.raises(StoreError, match="differs from its signature"):
        fewbit.load(folder)


def test_files_of_parts_are_compared_with_their_hashes(folder: Path) -> None:
    library = next((folder / "part1").glob("*.so"))
    library.write_bytes(library.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match="differs from its hash"):
        fewbit.load(folder)(inputs())


def test_a_part_of_another_artifact_is_refused(folder: Path, tmp_path: Path) -> None:
    other = fewbit.compile(residual(), output=tmp_path / "other", place="b=cpu:x86-64-v3").folder
    shutil.rmtree(folder / "part0")
    shutil.copytree(other / "part2", folder / "part0")
    with pytest.raises(StoreError, match="differs from its hash"):
        fewbit.load(folder)(inputs())


def test_hashes_that_do_not_agree_are_refused(folder: Path) -> None:
    name = next(name for name in open_folder(folder).manifest.files if name.endswith(".so"))
    change(folder, lambda plain: plain["files"].update({name: "0" * 64}))
    with pytest.raises(StoreError, match="the files of part0 are not those of its own manifest"):
        fewbit.load(folder)(inputs())


def test_a_part_with_parts_is_refused(folder: Path) -> None:
    part: Plain = {"name": "x", "target": "cpu", "inputs": [], "outputs": []}
    change_part(folder, "part0", lambda plain: plain.update(parts=[part]))
    with pytest.raises(StoreError, match="part0 has parts itself"):
        fewbit.load(folder)(inputs())


def test_a_link_to_elsewhere_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder / "part0", tmp_path / "elsewhere")
    (folder / "part0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Error, match="outside its folder"):
        fewbit.load(folder)(inputs())


def test_a_copy_runs(folder: Path) -> None:
    assert np.array_equal(fewbit.load(folder)(inputs()), residual().run(inputs())[0])
