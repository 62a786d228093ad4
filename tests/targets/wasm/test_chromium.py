"""Modules and pages in real Chromium."""

# pyright: basic
from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.targets.mcu.emulated import quantized
from tests.targets.wasm.chromium import ask, needs_chromium, open_file
from tests.targets.wasm.in_node import ALL, compile_for

pytestmark = pytest.mark.slow
TEST_PAGE = """\
<script type="module">
let answer;
try {
  const { load, loadInWorker, description } = await import("./model.js");
  const given = await (await fetch("./inputs.json")).json();
  const model = await load();
  const response = await load(fetch("./model.wasm"));
  const worker = await loadInWorker();
  const results = [];
  for (const inputs of given) {
    results.push([model.run(inputs), response.run(inputs), await worker.run(inputs)]
      .map((outputs) => Object.values(outputs).map((view) => [...view])));
  }
  const wrong = await worker.run({}).catch((error) => error.message);
  worker.terminate();
  const ended = await Promise.race([worker.run(given[0]), new Promise((f) => setTimeout(f, 200, "nothing"))]);
  answer = { results, wrong, ended };
} catch (error) {
  answer = { error: String(error.stack ?? error) };
}
await fetch("./answer", { method: "POST", body: JSON.stringify(answer) });
</script>
"""
NETWORKS = [
    ("lenet", "w8a8", False),
    ("lenet", "w2a2", False),
    ("ds-cnn", "w8a8", False),
    ("ds-cnn", "w4a8", False),
    ("ds-cnn", "w8a8-static", True),
    ("resnet8", "w8a8-static", False),
    ("resnet8", "w1a1", False),
]


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize(("name", "recipe", "integers"), NETWORKS)
def test_module_and_worker(
    target: str, name: str, recipe: str, integers: bool, tmp_path: Path
) -> None:
    needs_chromium()
    program = quantized(name, recipe, integers)
    artifact = compile_for(program, target, tmp_path / "net")
    (port,) = artifact.manifest.inputs
    shape = [size or 1 for size in port.shape]
    random = np.random.default_rng(5)
    arrays = [random.standard_normal(shape).astype(np.float32) for _ in range(2)]
    folder = tmp_path / "net"
    (folder / "inputs.json").write_text(
        json.dumps([{port.name: array.reshape(-1).tolist()} for array in arrays])
    )
    (folder / "test.html").write_text(TEST_PAGE)
    answer = json.loads(ask(folder, "test.html"))
    assert "error" not in answer, answer["error"]
    assert answer["wrong"] == f"there is no input '{port.name}'; inputs are {port.name}"
    assert answer["ended"] == "nothing"
    for array, found in zip(arrays, answer["results"], strict=True):
        expected = [np.asarray(each).reshape(-1).tolist() for each in program.run(array)]
        assert all(each == expected for each in found)


def _attributes(text: str) -> dict[str, str]:
    body = re.search(r"<body([^>]*)>", text)
    assert body is not None
    return dict(re.findall(r'data-([\w-]+)="([^"]*)"', body[1]))


@pytest.mark.parametrize("target", ALL)
def test_page_says_that_it_agrees(target: str, tmp_path: Path) -> None:
    needs_chromium()
    names = [f"word {i}" for i in range(12)]
    program = quantized("ds-cnn", "w8a8")
    compile_for(program, target, tmp_path / "net", labels=",".join(names))
    text = open_file(tmp_path / "net" / "index.html")
    found = _attributes(text)
    assert found["exact"] == "true"
    assert float(found["microseconds"]) > 0
    sample = np.random.default_rng(0).standard_normal((1, 1, 49, 10)).astype(np.float32)
    assert found["best"] == names[int(program.run(sample)[0].argmax())]
    assert text.count('class="bar') >= 12


def test_page_says_that_it_does_not_agree(tmp_path: Path) -> None:
    needs_chromium()
    compile_for(quantized("lenet", "w8a8"), "wasm", tmp_path / "net")
    page = tmp_path / "net" / "index.html"
    text = page.read_text()
    (expected,) = re.findall(r'"outputs": \["([^"]*)"\]', text)
    page.write_text(text.replace(expected, "A" * len(expected)))
    assert _attributes(open_file(page))["exact"] == "false"


DRAW = """
<script type="module">
const canvas = await new Promise((found) => {
  const wait = () => document.getElementById("drawing") && document.body.dataset.exact
    ? found(document.getElementById("drawing")) : setTimeout(wait, 20);
  wait();
});
const box = canvas.getBoundingClientRect();
const send = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type,
  { pointerId: 1, clientX: box.left + x * box.width, clientY: box.top + y * box.height }));
for (const stroke of STROKES) {
  send("pointerdown", ...stroke[0]);
  for (const point of stroke) send("pointermove", ...point);
  send("pointerup", ...stroke.at(-1));
}
document.body.dataset.drawn = "true";
</script>
"""
SEVEN = [[[0.3, 0.25], [0.5, 0.25], [0.7, 0.25], [0.6, 0.45], [0.5, 0.65], [0.45, 0.8]]]


def draw_on(page: Path, strokes: list[list[list[float]]]) -> None:
    """Add a script to a page that draws as a pointer does."""
    script = DRAW.replace("STROKES", json.dumps(strokes))
    page.write_text(page.read_text().replace("</body>", f"{script}</body>"))


def test_page_classifies_what_is_drawn(tmp_path: Path) -> None:
    needs_chromium()
    program = quantized("lenet", "w8a8")
    compile_for(program, "wasm:simd", tmp_path / "net")
    page = tmp_path / "net" / "index.html"
    empty = _attributes(open_file(page))
    assert empty["best"] == str(program.run(np.zeros((1, 1, 28, 28), np.float32))[0].argmax())
    bars = re.findall(r'class="value">([^<]*)<', open_file(page))
    draw_on(page, SEVEN)
    text = open_file(page)
    assert _attributes(text)["drawn"] == "true"
    assert re.findall(r'class="value">([^<]*)<', text) != bars
