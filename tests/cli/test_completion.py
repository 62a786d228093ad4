"""What the shell is offered: by the functions themselves, and through bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fewbit.cli.completion import (
    RECIPES,
    complete_models,
    complete_recipes,
    complete_targets,
    join_words,
)
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.models.registry import zoo
from fewbit.quant.recipe import Recipe
from fewbit.targets.compile import check_target
from fewbit.targets.registry import target_names
from fewbit.toolchain.isa import names


def test_models_of_the_zoo_are_offered() -> None:
    assert {f"zoo:{name}" for name in zoo()} <= set(complete_models("zoo:"))


def test_files_are_offered_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for name in ("a.onnx", "b.keras", "c.pt2", "net.py", "program.mlir", "notes.txt", "a.json"):
        (tmp_path / "models" / name).write_text("def net(): ...")
    assert complete_models("mod") == [*(f"zoo:{name}" for name in zoo()), "models/"]
    offered = [word for word in complete_models("models/") if not word.startswith("zoo:")]
    assert offered == [
        f"models/{name}" for name in ("a.onnx", "b.keras", "c.pt2", "net.py", "program.mlir")
    ]
    assert complete_models("models/net.py:") == ["models/net.py:net"]
    assert "models/a.json" in complete_recipes("models/")
    assert complete_models("missing/") == [f"zoo:{name}" for name in zoo()]


def test_every_target_that_is_offered_is_one() -> None:
    offered = complete_targets("")
    assert set(target_names()) <= set(offered)
    assert {f"cpu:{name}" for name in names()} <= set(offered)
    assert len(offered) == len(set(offered))
    for name in offered:
        check_target(name)


def test_every_recipe_that_is_offered_is_one() -> None:
    assert [str(Recipe.of(text)) for text in RECIPES] == list(RECIPES)


@pytest.mark.parametrize(
    ("words", "joined", "begun"),
    [
        (["fewbit", "co"], ["fewbit", "co"], ""),
        (["fewbit", "compile", ""], ["fewbit", "compile", ""], ""),
        (["fewbit", "compile", "zoo", ":"], ["fewbit", "compile", "zoo:"], "zoo:"),
        (["fewbit", "compile", "zoo", ":", "le"], ["fewbit", "compile", "zoo:le"], "zoo:"),
        (
            ["fewbit", "compile", "net.py", ":", "net", "-t", "cpu", ":", "a"],
            ["fewbit", "compile", "net.py:net", "-t", "cpu:a"],
            "cpu:",
        ),
    ],
)
def test_words_that_bash_split_are_joined(words: list[str], joined: list[str], begun: str) -> None:
    environment = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    assert join_words(environment) == begun
    assert environment == {"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(len(joined) - 1)}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["fewbit", "comp"], ["compile"]),
        (["fewbit", "compile", "zoo", ":", "lene"], ["lenet"]),
        (["fewbit", "inspect", "lo"], ["loops"]),
        (["fewbit", "inspect", "zoo", ":", "lene"], ["lenet"]),
        (["fewbit", "tune", "search", "zoo", ":", "m5", "-r", "w4a8g"], ["w4a8g128"]),
        (["fewbit", "compile", "zoo", ":", "m5", "-t", "cpu", ":", "riscv64-"], ["riscv64-v"]),
    ],
)
def test_what_bash_is_told(
    words: list[str],
    offered: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_FEWBIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    with pytest.raises(SystemExit) as ended:
        guarded(run, [])
    assert ended.value.code == 0
    assert capsys.readouterr().out.split() == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_the_script_works_in_bash(tmp_path: Path) -> None:
    command = tmp_path / "fewbit"
    start = "from fewbit.cli.main import main; main()"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" "$@"\n')
    command.chmod(0o755)
    script = (
        'eval "$(fewbit --show-completion)"; COMP_WORDS=(fewbit compile zoo : lene); COMP_CWORD=4; '
        '_fewbit_completion fewbit; echo "${COMPREPLY[*]}"; complete -p fewbit'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert done.stdout.split()[0] == "lenet", done.stderr
    assert "-F _fewbit_completion fewbit" in done.stdout
