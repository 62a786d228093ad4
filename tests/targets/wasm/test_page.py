"""The page on browsers is true: its commands run, and so does its JavaScript."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.targets.wasm.chromium import ask, needs_chromium
from tests.targets.wasm.in_node import needs_node

PAGE = (Path(__file__).parents[3] / "docs" / "wasm.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()
SCRIPTS = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_command(COMMANDS[0])
    return folder / "build"


@pytest.mark.slow
def test_commands(
    compiled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_node("wasm:simd")
    monkeypatch.chdir(compiled.parent)
    run_command(COMMANDS[1])
    assert "microseconds" in capsys.readouterr().out


@pytest.mark.slow
def test_script(compiled: Path) -> None:
    node = needs_node("wasm:simd")
    script = compiled / "script.mjs"
    given = "const x = new Float32Array(784);\n"
    script.write_text(f"{given}{SCRIPTS[0]}console.log(output0.length);\n")
    done = subprocess.run([node, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "10"


@pytest.mark.slow
def test_script_with_a_worker(compiled: Path) -> None:
    needs_chromium()
    given = "const x = new Float32Array(784);\n"
    answer = 'await fetch("./answer", { method: "POST", body: String(output0.length) });\n'
    script = f'<script type="module">\n{given}{SCRIPTS[1]}{answer}</script>\n'
    (compiled / "script.html").write_text(script)
    assert ask(compiled, "script.html") == "10"
