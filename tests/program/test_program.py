"""Programs: text and weights that belong together, on disk and in memory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewbit.errors import Error, ParseError, StoreError, UnsupportedError, VerifyError
from fewbit.numerics.packing import pack
from fewbit.program.program import Program
from fewbit.program.references import references, stored_as, weight_ref
from fewbit.program.store import WeightStore
from fewbit.program.tensor_file import Array

FILES = ["program.json", "program.mlir", "weights.safetensors"]

WEIGHT = np.array([[1, -2, 3], [-4, 5, -6]], np.int8)
SCALE = np.array([0.5, 0.25], np.float32)


def make_store() -> WeightStore:
    store = WeightStore()
    store.add("fc.weight", pack(WEIGHT, 4))
    store.add("fc.scale", SCALE)
    return store


def make_text(store: WeightStore) -> str:
    return f"""\
builtin.module {{
  mico.constant @fc.scale : tensor<2xf32> = #mico.ref<"fc.scale", "{store.hash("fc.scale")}">
  mico.constant @fc.weight : tensor<2x3x!mico.int<4>> = \
#mico.ref<"fc.weight", "{store.hash("fc.weight")}"> scale @fc.scale
  func.func @main(%x: tensor<?x3xf32>) -> tensor<?x2xf32> {{
    %w = mico.get_constant @fc.weight : tensor<2x3x!mico.int<4>>
    %s = mico.get_constant @fc.scale : tensor<2xf32>
    %y = mico.bitlinear(%x, %w) weight_scale(%s) {{weight_bits = 4 : i32, act_bits = 8 : i32}} : \
(tensor<?x3xf32>, tensor<2x3x!mico.int<4>>, tensor<2xf32>) -> tensor<?x2xf32>
    func.return %y : tensor<?x2xf32>
  }}
}}
"""


def make_program() -> Program:
    store = make_store()
    return Program.parse(make_text(store), store)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_program().save(tmp_path / "program")
    return tmp_path / "program"


# In memory


def test_parse_verify_and_print() -> None:
    program = make_program()
    program.verify()
    assert program.text() == make_text(program.store)
    assert '"mico.bitlinear"(' in program.text(generic=True)


def test_a_parse_error_names_the_text() -> None:
    with pytest.raises(ParseError, match=r"model\.mlir:2"):
        Program.parse("func.func @f() {\n  %0 = ?\n}", name="model.mlir")


def test_signature() -> None:
    signature = make_program().signature
    assert str(signature) == "main(x: ?x3xf32) -> (output0: ?x2xf32)"
    assert signature.inputs[0].shape == (None, 3)
    assert signature.inputs[0].dtype == np.float32


def test_signature_of_every_kind_of_value() -> None:
    program = Program.parse("""
      func.func @forward(%0: i1, %b: tensor<3x!mico.int<3>>, %c: tensor<bf16>, %d: index,
                         %e: tensor<*xi32>) -> (tensor<3x!mico.int<3>>, i1) {
        func.return %b, %0 : tensor<3x!mico.int<3>>, i1
      }""")
    signature = program.signature
    assert str(signature) == (
        "forward(input0: i1, b: 3x!mico.int<3>, c: bf16, d: index, e: *xi32)"
        " -> (output0: 3x!mico.int<3>, output1: i1)"
    )
    dtypes = [str(spec.dtype) for spec in signature.inputs]
    assert dtypes == ["bool", "int8", "bfloat16", "int64", "int32"]


def test_signature_of_a_subgraph_that_nothing_calls() -> None:
    program = Program.parse("""
      graph.subgraph @model.mlp(%x: tensor<2xf32>) -> tensor<2xf32> {
        graph.return %x : tensor<2xf32>
      }
      graph.subgraph @model(%x: tensor<2xf32>) -> tensor<2xf32> {
        %y = graph.call @model.mlp(%x) : (tensor<2xf32>) -> tensor<2xf32>
        graph.return %y : tensor<2xf32>
      }""")
    assert program.signature.name == "model"


def test_a_program_without_one_entry_says_so() -> None:
    with pytest.raises(Error, match="entry") as caught:
        _ = Program.parse("builtin.module {}").signature
    assert caught.value.hint


# Weights by reference


def test_verify_checks_the_module_first() -> None:
    program = Program.parse("func.func @main() -> i32 { func.return }")
    with pytest.raises(VerifyError):
        program.verify()


def change(store: WeightStore, key: str, array: Array | None) -> WeightStore:
    """The same store with one tensor replaced, or left out."""
    result = WeightStore()
    for other in store:
        if other != key:
            result.add(other, store[other])
    if array is not None:
        result.add(key, array)
    return result


WRONG_WEIGHTS: dict[str, tuple[Array | None, str]] = {
    "missing": (None, "no weight 'fc.weight'"),
    "other values": (pack(WEIGHT + 1, 4), "not the one that the program was made with"),
    "not packed": (WEIGHT, "2x3 of int8, not 2x2 of uint8"),
    "other width": (pack(WEIGHT, 8), "2x3 of uint8, not 2x2 of uint8"),
    "flat": (pack(WEIGHT, 4).reshape(-1), "4 of uint8, not 2x2 of uint8"),
}


@pytest.mark.parametrize("name", WRONG_WEIGHTS)
def test_wrong_weights_are_refused_with_the_line(name: str) -> None:
    array, what = WRONG_WEIGHTS[name]
    store = make_store()
    text = make_text(store)
    program = Program.parse(text, change(store, "fc.weight", array), "model.mlir")
    with pytest.raises(StoreError, match=what) as caught:
        program.verify()
    assert caught.value.place.file == "model.mlir"
    assert caught.value.place.line == 3
    assert caught.value.place.op == "mico.constant"
    assert caught.value.hint


def test_references_are_found_wherever_they_stand() -> None:
    ref = f'#mico.ref<"lost", "{"0" * 64}">'
    program = Program.parse(f"""
      func.func @main() attributes {{a.b = [{{deep = {ref}}}]}} {{
        func.return
      }}""")
    assert [attribute.key for _, attribute in references(program.module)] == ["lost"]
    with pytest.raises(StoreError, match="no weight 'lost'"):
        program.verify()


def test_weight_ref_of_a_constant() -> None:
    program = make_program()
    refs = [weight_ref(op) for op in program.module.ops if op.name == "mico.constant"]  # pyright: ignore[reportArgumentType]
    assert refs == [program.store.ref("fc.scale"), program.store.ref("fc.weight")]


@pytest.mark.parametrize(
    ("type", "shape", "dtype"),
    [
        ("tensor<2x3xf32>", (2, 3), "float32"),
        ("tensor<bf16>", (), "bfloat16"),
        ("tensor<2xi1>", (2,), "bool"),
        ("tensor<2xui8>", (2,), "uint8"),
        ("tensor<2xindex>", (2,), "int64"),
        ("tensor<2xf8E4M3FN>", (2,), "float8_e4m3fn"),
        ("tensor<4x3x3x3x!mico.int<5>>", (4, 17), "uint8"),
        ("tensor<9x!mico.int<1>>", (9, 1), "uint8"),
        ("tensor<!mico.int<7>>", (1, 1), "uint8"),
        ("tensor<3x5x!mico.ternary>", (3, 2), "uint8"),
    ],
)
def test_how_constants_are_stored(type: str, shape: tuple[int, ...], dtype: str) -> None:
    program = Program.parse(f"func.func private @f({type})")
    function: Any = program.module.body.block.first_op
    assert stored_as(function.function_type.inputs.data[0]) == (shape, np.dtype(dtype))


def test_what_no_store_can_hold() -> None:
    program = Program.parse("func.func private @f(tensor<2xf8E3M4>)")
    function: Any = program.module.body.block.first_op
    with pytest.raises(UnsupportedError, match="cannot be kept"):
        stored_as(function.function_type.inputs.data[0])


# On disk


def test_save_and_load(folder: Path) -> None:
    assert sorted(os.listdir(folder)) == FILES
    program = Program.load(folder)
    program.verify()
    expected = make_program()
    assert program.text() == expected.text()
    assert program.signature == expected.signature
    assert {k: program.store.hash(k) for k in program.store} == {
        k: expected.store.hash(k) for k in expected.store
    }


def test_the_manifest_has_the_hashes_of_the_files(folder: Path) -> None:
    manifest = json.loads((folder / "program.json").read_text())
    assert manifest["format"] == "fewbit-program"
    text = (folder / "program.mlir").read_bytes()
    assert manifest["text"] == {"sha256": hashlib.sha256(text).hexdigest()}
    store = WeightStore.open(folder / "weights.safetensors")
    assert manifest["weights"] == {"header_sha256": store.header_sha256}


def test_saving_is_reproducible(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_program().save(tmp_path / name)
    for file in FILES:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_saving_replaces_an_older_program(folder: Path) -> None:
    program = Program.load(folder)
    program.store.add("more", np.zeros(3, np.float32))
    program.save(folder)
    assert "more" in Program.load(folder).store
    assert os.listdir(folder.parent) == ["program"]


def test_saving_into_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make_program().save(tmp_path / "empty")
    Program.load(tmp_path / "empty").verify()


def test_a_failed_save_leaves_the_older_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program.load(folder)
    program.store.add("more", np.zeros(3, np.float32))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Error, match="No space left"):
        program.save(folder)
    monkeypatch.undo()
    assert "more" not in Program.load(folder).store
    assert os.listdir(folder.parent) == ["program"]


def test_saving_from_several_threads_at_once(tmp_path: Path) -> None:
    programs = [make_program() for _ in range(8)]
    for number, program in enumerate(programs):
        program.store.add(f"extra.{number}", np.zeros(1, np.float32))

    def save_often(program: Program) -> None:
        for _ in range(10):
            program.save(tmp_path / "program")

    with ThreadPoolExecutor(len(programs)) as pool:
        list(pool.map(save_often, programs))
    Program.load(tmp_path / "program").verify()
    assert os.listdir(tmp_path) == ["program"]


@pytest.mark.parametrize("name", ["notes.txt", "program.txt"])
def test_saving_over_foreign_files_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("mine")
    with pytest.raises(StoreError, match=name):
        make_program().save(folder)
    assert (folder / name).read_text() == "mine"


def test_saving_over_files_of_the_same_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights.safetensors").write_text("mine")
    with pytest.raises(StoreError, match="No such file"):
        make_program().save(tmp_path)
    (tmp_path / "program.json").write_text('{"name": "another tool"}')
    with pytest.raises(StoreError, match="not a manifest"):
        make_program().save(tmp_path)
    assert (tmp_path / "weights.safetensors").read_text() == "mine"


def test_saving_over_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="a file, not a folder"):
        make_program().save(tmp_path / "file")


def test_load_a_text_file(tmp_path: Path) -> None:
    store = make_store()
    (tmp_path / "model.mlir").write_text(make_text(store))
    Program.load(tmp_path / "model.mlir", store).verify()
    with pytest.raises(StoreError, match=r"model\.mlir:2"):
        Program.load(tmp_path / "model.mlir").verify()


def damage_text(folder: Path) -> None:
    path = folder / "program.mlir"
    path.write_text(path.read_text().replace("act_bits = 8", "act_bits = 7"))


def swap_weights(folder: Path) -> None:
    other = WeightStore()
    other.add("fc.weight", pack(-WEIGHT, 4))
    other.add("fc.scale", SCALE)
    other.save(folder / "weights.safetensors")


def cut_weights(folder: Path) -> None:
    path = folder / "weights.safetensors"
    os.truncate(path, path.stat().st_size - 1)


def link_out(folder: Path) -> None:
    outside = folder.parent / "outside.safetensors"
    (folder / "weights.safetensors").rename(outside)
    (folder / "weights.safetensors").symlink_to(outside)


def set_manifest(field: str, value: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "program.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))

    return edit


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "text edited": (damage_text, "differs from its hash"),
    "weights swapped": (swap_weights, "differs from its hash"),
    "weights cut": (cut_weights, "cut short"),
    "weights linked out": (link_out, "outside its folder"),
    "no text": (remove("program.mlir"), "No such file"),
    "no weights": (remove("weights.safetensors"), "No such file"),
    "no manifest": (remove("program.json"), "No such file"),
    "manifest not JSON": (lambda f: (f / "program.json").write_text("{"), "not a manifest"),
    "manifest not UTF-8": (lambda f: (f / "program.json").write_bytes(b"\xff"), "not a manifest"),
    "manifest nested": (lambda f: (f / "program.json").write_text("[" * 10**5), "not a manifest"),
    "another format": (set_manifest("format", "zip"), "format: "),
    "another version": (set_manifest("version", 2), "version: "),
    "unknown field": (set_manifest("files", ["../../secret"]), "files: "),
    "field missing": (set_manifest("text", {}), r"text\.sha256: "),
    "text hash changed": (set_manifest("text", {"sha256": "0" * 64}), "differs from its hash"),
    "weights hash changed": (
        set_manifest("weights", {"header_sha256": "0" * 64}),
        "differs from its hash",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_refused(folder: Path, name: str) -> None:
    damage, what = DAMAGES[name]
    damage(folder)
    with pytest.raises(StoreError, match=what) as caught:
        Program.load(folder)
    assert str(folder) in str(caught.value.place)
    assert caught.value.hint


def test_a_damaged_tensor_is_refused_when_it_is_used(folder: Path) -> None:
    path = folder / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    program = Program.load(folder)
    with pytest.raises(StoreError, match="differ from their recorded hash"):
        program.verify()


@pytest.mark.parametrize("name", ["missing", "missing.mlir"])
def test_load_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(Error, match="cannot read"):
        Program.load(tmp_path / name)


# Run


def test_run_equals_numpy(folder: Path) -> None:
    x = np.array([[127.0, -64.0, 1.0], [0.0, 0.0, 0.0]], np.float32)
    for program in (make_program(), Program.load(folder)):
        (y,) = program.run(x)
        np.testing.assert_allclose(y, (x @ WEIGHT.T) * SCALE, rtol=1e-6)
