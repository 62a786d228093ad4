"""`fewbit` itself: help, version, shared options, and mistakes on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fewbit
from fewbit.base import progress
from fewbit.cli import main
from fewbit.cli.guard import guarded
from fewbit.errors import Error

PROGRAM = Path(sys.executable).with_name("fewbit")
HELP_SECONDS = 0.5


@pytest.fixture(autouse=True)
def normal_verbosity() -> Iterator[None]:
    yield
    progress.set_verbosity(progress.NORMAL)


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verb `tell` that prints the verbosity, and a verb `fail`."""

    def tell() -> None:
        print(progress.verbosity())

    def fail() -> None:
        raise Error("no luck")

    monkeypatch.setattr(main, "VERBS", {"tell": tell, "fail": fail})


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main.run, ["--help"]) == 0
    shown = capsys.readouterr().out
    for name in main.VERBS:
        assert f" {name} " in shown


def test_no_arguments_means_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main.run, []) == 0
    assert "Usage: fewbit" in capsys.readouterr().out


@pytest.mark.parametrize("verb_name", main.VERBS)
def test_every_verb_has_help(verb_name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main.run, [verb_name, "--help"]) == 0
    assert f"Usage: fewbit {verb_name}" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["--version"], ["doctor", "--version"]])
def test_version(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main.run, argv) == 0
    assert capsys.readouterr().out == f"fewbit {fewbit.__version__}\n"


@pytest.mark.usefixtures("verb")
@pytest.mark.parametrize(
    ("argv", "level"),
    [
        (["tell"], 0),
        (["-v", "tell"], 1),
        (["tell", "-v"], 1),
        (["-v", "tell", "-vv"], 3),
        (["-q", "tell"], -1),
        (["tell", "--quiet"], -1),
    ],
)
def test_shared_options_stand_before_or_after_the_verb(
    argv: list[str], level: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(main.run, argv) == 0
    assert capsys.readouterr().out == f"{level}\n"


@pytest.mark.usefixtures("verb")
@pytest.mark.parametrize("argv", [["fail", "--debug"], ["--debug", "fail"]])
def test_debug_shows_the_traceback(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main.run, argv) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.usefixtures("verb")
def test_an_error_shows_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(main.run, ["fail"]) == 1
    assert capsys.readouterr().err == "error: no luck\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["docter"], "No such command 'docter'. Did you mean 'doctor'?"),
        (["doctor", "--jsom"], "No such option: --jsom"),
        (["doctor", "extra"], "Got unexpected extra argument"),
        (["-v"], "Missing command"),
    ],
)
def test_a_mistake_exits_2_and_points_to_help(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(main.run, argv) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"usage error: {message}")
    assert "hint: see 'fewbit" in shown


def test_help_is_fast_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; from fewbit.cli.main import run; run(['--help'])\n"
        "print('loaded', *{m.partition('.')[0] for m in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert loaded[0] == "loaded"
    assert set(loaded).isdisjoint({"torch", "torch_mlir", "iree", "xdsl", "numpy", "llvmlite"})

    assert min(processor_seconds([str(PROGRAM), "--help"]) for _ in range(3)) < HELP_SECONDS


def processor_seconds(command: list[str]) -> float:
    """Return how long a command computes, which a busy machine does not change much."""
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    return (
        after.children_user - before.children_user + after.children_system - before.children_system
    )
