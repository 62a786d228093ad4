"""The package of docs/extending, installed and used as the pages say.

The pages' code is this folder's code, checked block by block, so it cannot rot.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
PAGES = HERE.parents[1] / "docs" / "extending"
SHOWN = {
    "dialect.md": {
        "python": "fixed_point.py",
        "toml": "pyproject.toml",
        "mlir": "example.mlir",
    },
    "frontend.md": {"python": "layer_list.py", "toml": "pyproject.toml"},
    "kernel.md": {"python": "signed_dot.py"},
    "pass.md": {
        "python": "clamp_relu.py keep_calls.py",
        "toml": "pyproject.toml",
        "mlir": "clamp-relu.mlir",
    },
    "target.md": {"python": "interpreted_target.py", "toml": "pyproject.toml"},
}
"""Which files of this folder a page shows, by the language of its blocks."""
GIVEN = ("example.mlir", "clamp-relu.mlir", "keep-calls.mlir", "net.layers.json", "signed_dot.py")
"""Files that commands of the pages read."""
NUMBERS = "[0.5, 1.03125, 100.0, -0.046875]"
EXPECTED = "[0.5, 1.03125, 3.96875, -0.0625]"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process in which the package is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(HERE, folder / "source", ignore=shutil.ignore_patterns("test_*"))
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--no-index", "--target", str(target), str(source)], check=True, capture_output=True
    )
    paths = [str(target), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=HERE, check=False
    )


def shell(
    environment: dict[str, str], command: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    programs = Path(sys.executable).parent
    path = f"{programs}{os.pathsep}{environment['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        env=environment | {"PATH": path},
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )


def opt(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(environment, str(Path(sys.executable).with_name("fewbit-opt")), *arguments)


def test_dialect_is_read_and_verified(installed: dict[str, str]) -> None:
    done = opt(installed, "example.mlir")
    assert done.returncode == 0, done.stderr
    assert "fixed.encode %x : tensor<4xf32> -> tensor<4x!fixed.point<8" in done.stdout


def test_verifier_points_at_the_line(installed: dict[str, str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.mlir"
    bad.write_text((HERE / "example.mlir").read_text().replace("4x!fixed", "5x!fixed"))
    done = opt(installed, str(bad))
    assert done.returncode == 1
    assert "bad.mlir:2:3" in done.stderr
    assert "Traceback" not in done.stderr


def test_lowering_by_name(installed: dict[str, str]) -> None:
    done = opt(installed, "example.mlir", "-p", "lower-fixed")
    assert done.returncode == 0, done.stderr
    assert "mico.quantize" in done.stdout
    assert "mico.dequantize" in done.stdout
    assert "fixed." not in done.stdout
    assert "unrealized" not in done.stdout


@pytest.mark.parametrize("passes", ["[]", "[LowerFixed()]"])
def test_semantics_are_the_same_before_and_after(installed: dict[str, str], passes: str) -> None:
    done = run(
        installed,
        sys.executable,
        "-c",
        "import numpy as np\n"
        "from fixed_point import LowerFixed\n"
        "from fewbit.interpreter import interpret\n"
        "from fewbit.ir.context import make_context\n"
        "from fewbit.ir.parse import parse_file\n"
        "module = parse_file('example.mlir')\n"
        f"for p in {passes}: p.apply(make_context(), module)\n"
        f"(y,) = interpret(module, np.array({NUMBERS}, dtype=np.float32))\n"
        "print(y.tolist())",
    )
    assert done.stdout.strip() == EXPECTED, done.stderr


def blocks(page: str, language: str) -> list[str]:
    text = (PAGES / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def read(files: str) -> str:
    return "".join((HERE / file).read_text(encoding="utf-8") for file in files.split())


@pytest.mark.parametrize("page", SHOWN)
def test_page_shows_this_code(page: str) -> None:
    for language, files in SHOWN[page].items():
        code = read(files)
        shown = blocks(page, language)
        assert shown
        for block in shown:
            assert block.strip() in code


@pytest.mark.parametrize("page", SHOWN)
def test_page_shows_every_definition(page: str) -> None:
    code = read(SHOWN[page]["python"])
    shown = "".join(blocks(page, "python"))
    for name in re.findall(r"^(?:class|def) (\w+)", code, re.MULTILINE):
        assert name in shown


@pytest.mark.parametrize("page", SHOWN)
def test_commands_of_the_page_work(page: str, installed: dict[str, str], tmp_path: Path) -> None:
    for file in GIVEN:
        shutil.copy(HERE / file, tmp_path)
    (console,) = blocks(page, "console")
    lines = [line for line in console.splitlines() if line.startswith("$ ")]
    commands = [line[2:] for line in lines if "pip install" not in line]
    assert commands
    for command in commands:
        done = shell(installed, command, tmp_path)
        assert done.returncode == 0, done.stderr
        for shown in console.split(command)[1].split("$ ")[0].strip().splitlines():
            assert shown.strip() in done.stdout


def test_page_on_ops_shows_code_of_the_tree() -> None:
    """Each block stands in the file that its section names first."""
    checked = 0
    for section in (PAGES / "op.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        files = re.findall(r"`(fewbit/[\w/]+\.py)`", section)
        for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
            code = (HERE.parents[1] / files[0]).read_text(encoding="utf-8")
            assert block.rstrip() in code, block
            checked += 1
    assert checked == 5


@pytest.mark.parametrize(("file", "runs"), [("clamp-relu.mlir", 2), ("keep-calls.mlir", 1)])
def test_filechecks_of_the_passes(installed: dict[str, str], file: str, runs: int) -> None:
    commands = re.findall(r"// RUN: (.*)", (HERE / file).read_text(encoding="utf-8"))
    assert len(commands) == runs
    for command in commands:
        done = shell(installed, f"set -o pipefail; {command.replace('%s', file)}", HERE)
        assert done.returncode == 0, done.stderr


def test_passes_of_other_packages_are_listed(installed: dict[str, str]) -> None:
    listed = opt(installed, "--list-passes").stdout
    assert "keep-calls  Forbid inlining of functions" in listed
    assert "clamp-relu  Replace relu of floats" in listed


def test_a_pass_on_bindings_is_inserted_into_a_pipeline(installed: dict[str, str]) -> None:
    fewbit = str(Path(sys.executable).with_name("fewbit"))
    command = [fewbit, "compile", str(HERE.parents[1] / "examples" / "mlp.mlir")]
    done = run(installed, *command, "--stop-after", "memref", "--insert-pass", "memref:keep-calls")
    assert "no_inline" in done.stdout, done.stderr


def test_a_target_and_a_front_end_of_another_package(
    installed: dict[str, str], tmp_path: Path
) -> None:
    """Each is one file and a line in `pyproject.toml`; nothing in fewbit knows them by name."""
    layers = [{"weight": [[1, 2], [-3, 4]], "relu": True}, {"weight": [[0.5, 0.25]]}]
    model, output = tmp_path / "net.layers.json", tmp_path / "net"
    model.write_text(json.dumps({"layers": layers}))
    fewbit = str(Path(sys.executable).with_name("fewbit"))
    done = run(installed, fewbit, "compile", str(model), "-t", "interpreted", "-o", str(output))
    assert done.returncode == 0, done.stderr
    np.save(tmp_path / "x.npy", np.array([[1, 1]], np.float32))
    given = ["--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy")]
    done = run(installed, fewbit, "run", str(output), *given)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), [[1.75]])
    stage = ["--stop-after", "kernel"]
    done = run(installed, fewbit, "compile", str(model), "-t", "interpreted", *stage)
    assert "kernel.matmul" in done.stdout, done.stderr
    done = run(installed, fewbit, "doctor", "--json")
    results = {each["target"]: each["status"] for each in json.loads(done.stdout)["targets"]}
    assert results["interpreted"] == "works"


def test_a_part_on_a_target_of_another_package(installed: dict[str, str], tmp_path: Path) -> None:
    fewbit, output = str(Path(sys.executable).with_name("fewbit")), tmp_path / "net"
    command = [fewbit, "compile", str(HERE.parents[1] / "examples" / "mlp.mlir")]
    place = ["--place", "mlp=interpreted", "--note", "a trial"]
    done = run(installed, *command, *place, "-o", str(output))
    assert done.returncode == 0, done.stderr
    part = json.loads((output / "part0" / "manifest.json").read_text())
    assert (part["target"], part["options"]) == ("interpreted", {"note": "a trial"})
    done = run(installed, fewbit, "run", str(output), "--random", "--stats")
    assert done.returncode == 0, done.stderr
    assert "cpu  interpreted" in done.stdout


def test_an_option_and_a_view_of_a_target_of_another_package(
    installed: dict[str, str], tmp_path: Path
) -> None:
    fewbit, output = str(Path(sys.executable).with_name("fewbit")), tmp_path / "net"
    done = run(installed | {"COLUMNS": "120"}, fewbit, "compile", "--help")
    assert "Options of interpreted" in done.stdout, done.stderr
    assert "A remark that the manifest keeps." in done.stdout
    model = tmp_path / "net.layers.json"
    model.write_text(json.dumps({"layers": [{"weight": [[1, 2]]}]}))
    command = [fewbit, "compile", str(model), "-o", str(output), "--note", "a trial"]
    done = run(installed, *command)
    assert done.returncode == 2
    assert "the target 'cpu' has no option 'note'" in done.stderr
    done = run(installed, *command, "-t", "interpreted")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["options"] == {"note": "a trial"}
    done = run(installed, fewbit, "inspect", "program", str(output))
    assert "kernel.matmul" in done.stdout, done.stderr
