# pyright: basic
from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fewbit.cli.main import run
from fewbit.errors import MissingToolError, UnsupportedError, UsageError
from fewbit.program.program import Program
from fewbit.targets.registry import find_target
from tests.targets.mcu.emulated import quantized
from tests.targets.wasm.in_node import ALL, check, compile_for, needs_node

_WEIGHTS = bytes((i * 37 + 11) % 256 for i in range(24)).hex()
SMALL = f"""\
mico.constant @a.scale : tensor<6xf32> = dense<[0.5, 0.25, 1.0, 2.0, 0.125, 0.75]>
mico.constant @a.weight : tensor<6x4x1x1x!mico.int<8>> = dense<"0x{_WEIGHTS}"> scale @a.scale
func.func @main(%x: tensor<1x4x3x3xf32>) -> tensor<1x6x3x3xf32> {{
  %s = arith.constant 0.03125 : f32
  %y = mico.bitconv2d(%x, @a.weight) act_scale(%s) {{act_bits = 8}}
    : (tensor<1x4x3x3xf32>, f32) -> tensor<1x6x3x3xf32>
  %z = mico.relu(%y) : tensor<1x6x3x3xf32> -> tensor<1x6x3x3xf32>
  func.return %z : tensor<1x6x3x3xf32>
}}
"""


@pytest.mark.parametrize("target", ALL)
def test_a_layer_on_every_engine(target: str, tmp_path: Path) -> None:
    check(Program.parse(SMALL), target, tmp_path / "net")


RECIPES = ["w8a8", "w4a8", "w2a2", "w1a1", "w1.58a8", "w3a6", "w8a8-static"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", ["lenet", "ds-cnn", "resnet8"])
def test_networks(target: str, name: str, recipe: str, tmp_path: Path) -> None:
    check(quantized(name, recipe), target, tmp_path / "net")


@pytest.mark.slow
@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("recipe", ["w8a8-static", "w4a8-static"])
@pytest.mark.parametrize("name", ["lenet", "ds-cnn", "resnet8"])
def test_networks_on_integers(target: str, name: str, recipe: str, tmp_path: Path) -> None:
    check(quantized(name, recipe, integers=True), target, tmp_path / "net")


def test_batch_becomes_one(tmp_path: Path) -> None:
    program = Program.parse(SMALL.replace("tensor<1x", "tensor<?x"))
    artifact = compile_for(program, "wasm", tmp_path / "net")
    assert artifact.manifest.inputs[0].shape == (1, 4, 3, 3)
    needs_node()
    x = np.random.default_rng(3).standard_normal((1, 4, 3, 3)).astype(np.float32)
    assert np.array_equal(artifact(x), program.run(x)[0])


def test_open_sizes_are_refused(tmp_path: Path) -> None:
    program = Program.parse(SMALL.replace("x3x3xf32", "x?x?xf32"))
    with pytest.raises(UnsupportedError, match="size that is not known") as e:
        compile_for(program, "wasm:simd", tmp_path / "net")
    assert "--input-shape" in (e.value.hint or "")


def test_engines_have_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no target 'wasm:smid'") as e:
        compile_for(Program.parse(SMALL), "wasm:smid", tmp_path / "net")
    assert "did you mean wasm:simd" in (e.value.hint or "")


def test_missing_node_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = compile_for(Program.parse(SMALL), "wasm", tmp_path / "net")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "node is not installed" in (find_target("wasm").find_obstacle("wasm") or "")
    with pytest.raises(MissingToolError, match="node is not installed"):
        artifact(np.zeros((1, 4, 3, 3), np.float32))


def test_old_node_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v20.20.2\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    obstacle = find_target("wasm").find_obstacle("wasm:relaxed")
    assert obstacle is not None
    assert "node 20 does not run relaxed SIMD" in obstacle
    assert find_target("wasm").find_obstacle("wasm:simd") is None


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "net.mlir", tmp_path / "net"
    source.write_text(SMALL)
    run(["compile", str(source), "-t", "wasm:simd", "-o", str(output)])
    written = {path.name for path in output.iterdir()}
    assert written >= {"model.wasm", "model.js", "model.d.ts", "package.json", "index.html"}
    needs_node()
    capsys.readouterr()
    run(["run", str(output), "--random", "--stats"])
    printed = capsys.readouterr().out
    assert "microseconds" in printed
    assert "memory_bytes" in printed


def test_names_of_classes(tmp_path: Path) -> None:
    program = Program.parse(SMALL)
    compile_for(program, "wasm", tmp_path / "net", labels="yes, no,<b>up</b>")
    assert '"labels": ["yes", "no", "<b>up</b>"]' in (tmp_path / "net" / "index.html").read_text()
    names = tmp_path / "names.txt"
    names.write_text("left\nright\n")
    compile_for(program, "wasm", tmp_path / "net", labels=str(names))
    assert '"labels": ["left", "right"]' in (tmp_path / "net" / "index.html").read_text()
    with pytest.raises(UsageError, match="names of classes cannot be read from 'nowhere'"):
        compile_for(program, "wasm", tmp_path / "net", labels="nowhere")


FLOATS = """\
func.func @main(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %e = tensor.empty() : tensor<1x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1x8xf32>) outs(%e : tensor<1x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.OP %a : f32
    linalg.yield %c : f32
  } -> tensor<1x8xf32>
  func.return %y : tensor<1x8xf32>
}
"""


def test_functions_that_nothing_defines_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="calls acoshf, which WebAssembly has no") as e:
        compile_for(Program.parse(FLOATS.replace("OP", "acosh")), "wasm", tmp_path / "net")
    assert e.value.place is not None
    assert e.value.place.layer is not None
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("op", ["exp", "tanh", "sqrt", "roundeven", "floor", "erf", "rsqrt"])
def test_functions_of_floats(op: str, tmp_path: Path) -> None:
    check(Program.parse(FLOATS.replace("OP", op)), "wasm:simd", tmp_path / "net")


def _in_node(folder: Path, code: str) -> str:
    """Run a JavaScript module beside the model's, and return what it prints."""
    node = needs_node()
    (folder / "test.mjs").write_text(code)
    done = subprocess.run(
        [node, str(folder / "test.mjs")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_javascript_takes_names_and_says_what_is_wrong(tmp_path: Path) -> None:
    program = Program.parse(SMALL)
    compile_for(program, "wasm:simd", tmp_path / "net")
    printed = _in_node(
        tmp_path / "net",
        """\
        import { readFile } from "node:fs/promises";
        import { description, load, Model } from "./model.js";
        const model = await load();
        const given = [model, await load(await readFile(new URL("model.wasm", import.meta.url))),
          new Model(new WebAssembly.Instance(await WebAssembly.compile(
            await readFile(new URL("model.wasm", import.meta.url)))))];
        const x = Float32Array.from({ length: 36 }, (_, i) => i / 36 - 0.5);
        const results = given.map((each) => [...each.run({ x }).output0]);
        results.push([...model.run(x).output0], [...model.run([...x]).output0]);
        model.inputs.x.set(x);
        model.compute();
        results.push([...model.outputs.output0]);
        const errors = [];
        for (const wrong of [{}, { y: x }, { x, z: x }, new Float32Array(35), undefined, 3]) {
          try { model.run(wrong); } catch (error) { errors.push(error.message); }
        }
        console.log(JSON.stringify({ results, errors, shape: description.inputs[0].shape }));
        """,
    )
    found = json.loads(printed)
    x = (np.arange(36, dtype=np.float64) / 36 - 0.5).astype(np.float32).reshape(1, 4, 3, 3)
    expected = program.run(x)[0].reshape(-1).tolist()
    assert len(found["results"]) == 6
    assert all(each == expected for each in found["results"])
    assert found["errors"] == [
        "there is no input 'x'; inputs are x",
        "there is no input 'x'; inputs are x",
        "'z' is no input; inputs are x",
        "input 'x' has 35 elements, not 36",
        "there is no input 'x'; inputs are x",
        "there is no input 'x'; inputs are x",
    ]
    assert found["shape"] == [1, 4, 3, 3]
