"""The README does as it says, and docs/cli.md explains every verb and option."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fewbit.cli import demo, opt
from fewbit.cli.main import VERBS
from fewbit.targets.registry import OURS
from tests.commands import run_command

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLI_PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


COMMANDS = [
    line for block in blocks("sh") for line in block.splitlines() if line.startswith("fewbit")
]


def run(command: list[str], folder: Path) -> str:
    """Return what a command prints in a copy of the examples; PATH has this Python's programs."""
    (folder / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) >= 4


def shown_diff(command: str) -> list[str]:
    """The lines of the page that a command must print."""
    if "--diff" not in command:
        return []
    (shown,) = blocks("diff")
    return [line for line in shown.splitlines() if line != "..."]


def test_a_diff_is_shown() -> None:
    assert any(map(shown_diff, COMMANDS))


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    run_command(command)
    printed = capsys.readouterr().out
    assert printed
    assert [line for line in shown_diff(command) if line not in printed] == []


@pytest.mark.parametrize(
    "command", [COMMANDS[-1], *(pytest.param(c, marks=pytest.mark.slow) for c in COMMANDS[:-1])]
)
def test_commands_run_in_a_shell(command: str, tmp_path: Path) -> None:
    run(["bash", "-c", command], tmp_path)


def test_python_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    first, code = blocks("python")
    run([sys.executable, "-c", first], tmp_path)
    made = {path.name for path in (tmp_path / "build" / "lenet").iterdir()}
    assert made == {"liblenet.so", "liblenet.a", "lenet.h", "manifest.json"}
    (tmp_path / "examples").unlink()
    assert run([sys.executable, "-c", code], tmp_path).strip() == code.rpartition("# ")[2].strip()


def test_the_program_is_the_example() -> None:
    (program,) = blocks("mlir")
    assert program in (ROOT / "examples" / "mlp.mlir").read_text(encoding="utf-8")


def test_the_table_of_the_demo_is_what_the_demo_prints() -> None:
    heading = f"| {' | '.join(demo.COLUMNS)} |"
    assert heading in README
    rows = README.partition(heading)[2].splitlines()[2 : 3 + len(demo.RECIPES)]
    assert [row.split("`")[1] for row in rows] == ["float", *demo.RECIPES]


def test_every_target_is_in_the_table_of_targets() -> None:
    section = README.partition("## On real and simulated hardware")[2].partition("\n## ")[0]
    missing = [name for name in OURS if not re.search(rf"`{name}\b", section)]
    assert missing == []


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"^make ([a-z-]+)", README, flags=re.MULTILINE))
    assert named == {"demo", "test"}
    for target in named:
        assert re.search(rf"^{target}:.*## ", makefile, flags=re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_section(verb: str) -> None:
    assert re.search(rf"^## `fewbit {verb}\b", CLI_PAGE, flags=re.MULTILINE)


def test_every_option_of_fewbit_opt_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        opt.run(["--help"])
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", capsys.readouterr().out))
    examples = {"--cse", "--output"}
    assert {option for option in options - examples if option not in CLI_PAGE} == set()
