"""Manifests that do not fit what they describe: a clear error, never a crash or wrong numbers."""

from __future__ import annotations

import copy
import ctypes
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import fewbit
from fewbit.errors import Error, StoreError
from fewbit.program.artifact import (
    MANIFEST,
    Manifest,
    Tensor,
    open_folder,
    signature_of,
    write_folder,
)
from fewbit.runtime import Artifact, load
from fewbit.runtime.cuda import CudaProgram
from fewbit.toolchain.cblas import KNOWN, Cblas
from tests.targets.cpu.programs import inputs, layers

KINDS: dict[str, dict[str, Any]] = {
    "cpu": {"target": "cpu"},
    "cpu-dynamic": {"target": "cpu", "dynamic": True},
    "cpu-variants": {"target": "cpu", "cpu_variants": ["x86-64-v3", "x86-64-v2"]},
    "cpu-profile": {"target": "cpu", "profile": True},
    "iree-cpu": {"target": "iree-cpu"},
    "vexii": {"target": "vexii", "bits": 4},
    "gemmini": {"target": "gemmini", "bits": 8},
    "bitfusion": {"target": "bitfusion", "bits": 4},
}
MUTATIONS = 60


@pytest.fixture(scope="module", params=list(KINDS))
def artifact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    options = dict(KINDS[request.param])
    target = options.pop("target")
    made = {name: options.pop(name) for name in ("dynamic", "bits") if name in options}
    folder = tmp_path_factory.mktemp(request.param) / "net"
    return fewbit.compile(layers(**made), target, folder, name="net", **options)


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in it, containers among them."""
    if not isinstance(tree, dict | list):
        return
    keys: Any = tree if isinstance(tree, dict) else range(len(tree))  # pyright: ignore
    for key in keys:
        yield (*path, key)
        yield from leaves(tree[key], (*path, key))


def mutate(tree: Any, rng: random.Random) -> Any:
    """One value changed, removed or doubled."""
    tree = copy.deepcopy(tree)
    places = [p for p in leaves(tree) if p[0] not in ("files", "format", "compiler", "signature")]
    *where, last = rng.choice(places)
    holder = tree
    for key in where:
        holder = holder[key]
    old = holder[last]
    new: Any
    match old:
        case bool():
            new = not old
        case int():
            new = rng.choice(
                [old + 1, old - 1, old * 2, 0, -1, 1 << 20, 1 << 70, None, 2.5, str(old)]
            )
        case str():
            new = rng.choice([old + "_", "", "f16", "i64", "f32", "x", "../up", "\0", None, 3])
        case list() if old:
            new = rng.choice(cast("list[Any]", [old[1:], [*old, old[0]], old[::-1], [], None, {}]))
        case _:
            new = rng.choice(cast("list[Any]", [1, "x", [], {}, [1]]))
    if isinstance(holder, list) or rng.random() < 0.9:
        holder[last] = new
    else:
        del holder[last]
    return tree


def sign(tree: Any) -> None:
    """Sign as one would who changes a manifest on purpose."""
    tree["signature"] = signature_of(Manifest.model_validate(tree))


def outputs_of(folder: Path) -> list[np.ndarray[Any, Any]]:
    return [np.array(array) for array in load(folder).run(*inputs())]


@pytest.mark.parametrize("signed", [False, True], ids=["as it is", "signed"])
def test_a_changed_manifest_is_an_error_or_changes_nothing(
    artifact: Artifact, tmp_path: Path, signed: bool
) -> None:
    if signed and not artifact.manifest.target.startswith(("cpu", "iree")):
        pytest.skip("simulated programs do not say of themselves what they take")
    expected = outputs_of(artifact.folder)
    content = json.loads((artifact.folder / MANIFEST).read_text())
    folder = tmp_path / "net"
    shutil.copytree(artifact.folder, folder)
    refused = 0
    for seed in range(MUTATIONS):
        tree = mutate(content, random.Random(seed))
        if signed:
            try:
                sign(tree)
            except ValueError:
                continue
        (folder / MANIFEST).write_text(json.dumps(tree))
        try:
            found = outputs_of(folder)
        except Error:
            refused += 1
            continue
        assert len(found) == len(expected), tree
        for array, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(array, right)
    assert refused > (0 if signed else MUTATIONS // 2)


def change(
    artifact: Artifact, folder: Path, edit: Callable[[Any], None], *, signed: bool = True
) -> Path:
    shutil.copytree(artifact.folder, folder)
    tree = json.loads((folder / MANIFEST).read_text())
    edit(tree)
    if signed:
        sign(tree)
    (folder / MANIFEST).write_text(json.dumps(tree))
    return folder


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return fewbit.compile(layers(), "cpu", tmp_path_factory.mktemp("native") / "net", name="net")


def test_the_library_carries_the_signature_of_its_manifest(native: Artifact) -> None:
    library = ctypes.CDLL(str(native.folder / "libnet.so"))
    held = (ctypes.c_char * 65).in_dll(library, "net_signature").value.decode()
    assert held == native.manifest.signature == signature_of(native.manifest)
    assert f'#define NET_SIGNATURE "{held}"' in (native.folder / "net.h").read_text()


def test_an_artifact_without_a_signature_is_to_be_compiled_again(
    native: Artifact, tmp_path: Path
) -> None:
    changed = change(native, tmp_path / "net", lambda tree: tree.pop("signature"), signed=False)
    with pytest.raises(StoreError, match="signature") as caught:
        open_folder(changed)
    assert "compile the program again" in str(caught.value.hint)


def test_a_library_of_another_manifest_is_not_loaded(native: Artifact, tmp_path: Path) -> None:
    def grow(tree: Any) -> None:
        tree["inputs"][0]["shape"][0] += 1

    with pytest.raises(StoreError, match="not the one that the manifest describes"):
        load(change(native, tmp_path / "net", grow)).run(*inputs())


def test_features_that_are_left_out_do_not_get_code_executed(
    native: Artifact, tmp_path: Path
) -> None:
    def plain(tree: Any) -> None:
        tree["options"]["features"] = ""

    with pytest.raises(StoreError):
        load(change(native, tmp_path / "net", plain)).run(*inputs())


def test_a_library_that_the_code_does_not_call_is_not_loaded(
    native: Artifact, tmp_path: Path
) -> None:
    """Also where the library's own signature agrees."""
    for name in ("./libevil.so", "libevil.so", "openblas", "libcrypt.so.1", "scipy-openblas32"):
        with pytest.raises(StoreError, match="does not call"):
            Cblas.of_record(name, ("libc.so.6", "libm.so.6"))

    def name_evil(tree: Any) -> None:
        tree["options"]["blas"] = "libcrypt.so.1"

    with pytest.raises(StoreError):
        load(change(native, tmp_path / "net", name_evil)).run(*inputs())


def test_a_needed_library_is_not_taken_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "libopenblas.so.0").write_bytes(b"no library")
    found = Cblas.of_record("libopenblas.so.0", ("libopenblas.so.0",))
    assert (found.path, found.soname) == (None, "libopenblas.so.0")
    assert Cblas.of_record("openblas", (KNOWN["openblas"],)).path is None


def test_sizes_of_a_gpu_program_are_those_of_its_plan(tmp_path: Path) -> None:
    plan: dict[str, Any] = {
        "name": "net", "arch": "sm_80", "launches": [], "images": [],
        "buffers": {"in0": {"dtype": "f32", "shape": [4], "role": "in"}},
    }  # fmt: skip
    for shape in ((5,), (3,), (None,), (2, 2, 2)):
        manifest = Manifest(
            name="net", target="cuda:sm_80", compiler="0", outputs=(), files={},
            inputs=(Tensor(name="x", shape=shape, element="f32"),),
        )  # fmt: skip
        files = {"plan.json": json.dumps(plan).encode(), "net.weights": b""}
        folder = write_folder(tmp_path / "net", manifest, files)
        with pytest.raises(StoreError, match="another size"):
            CudaProgram(folder)
