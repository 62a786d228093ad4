"""Verbs with subcommands: the one that is meant, and what was a flag before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import build_app, run
from fewbit.cli.modes import ModeGroup

TEXT = """
mico.constant @fc.scale : tensor<4xf32> = dense<[0.5, 0.25, 1.0, 2.0]>
mico.constant @fc.weight : tensor<4x8x!mico.int<8>> = dense<1> scale @fc.scale
func.func @main(%x: tensor<1x8xf32>) -> tensor<1x4xf32> {
  %s = arith.constant 0.03125 : f32
  %y = mico.bitlinear(%x, @fc.weight) act_scale(%s) {act_bits = 8}
    : (tensor<1x8xf32>, f32) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}
"""


def spell(verb: str, *args: str) -> list[str]:
    """Return what is parsed of the words behind a verb."""
    group = build_app().commands[verb]
    assert isinstance(group, ModeGroup)
    return group.spell(None, list(args))


@pytest.mark.parametrize(
    ("verb", "given", "meant"),
    [
        ("tune", "", "search"),
        ("tune", "zoo:mlp -t cpu", "search zoo:mlp -t cpu"),
        ("tune", "-q zoo:mlp", "search -q zoo:mlp"),
        ("tune", "-q show --json", "-q show --json"),
        ("tune", "--calibrate --quick", "calibrate --quick"),
        ("tune", "--show --json", "show --json"),
        ("tune", "zoo:mlp --prepare d -t cuda", "prepare zoo:mlp --output d -t cuda"),
        ("tune", "zoo:mlp --prepare=d", "prepare zoo:mlp --output d"),
        ("tune", "--measure d --tuning-db f", "measure d --tuning-db f"),
        ("tune", "--help", "--help"),
        ("inspect", "zoo:mlp --cost", "layers zoo:mlp --cost"),
        ("inspect", "layers zoo:mlp", "layers zoo:mlp"),
        ("inspect", "zoo:mlp --loops --json", "loops zoo:mlp --json"),
        ("inspect", "d --asm dot_*", "asm d --functions dot_*"),
        ("inspect", "--asm=dot_* d", "asm --functions dot_* d"),
        ("inspect", "d --commands", "commands d"),
        ("inspect", "d --dispatches --json", "dispatches d --json"),
        ("inspect", "asm d", "asm d"),
        ("bench", "zoo:mlp --seconds 1", "model zoo:mlp --seconds 1"),
        ("bench", "conv2d -t cuda", "conv2d -t cuda"),
        ("bench", "-r w8a8 zoo:mlp", "model -r w8a8 zoo:mlp"),
    ],
)
def test_what_is_meant(verb: str, given: str, meant: str) -> None:
    assert spell(verb, *given.split()) == meant.split()


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modes") / "net"
    fewbit.compile(fewbit.Program(fewbit.parse(TEXT)), "vexii", folder, name="net")
    return folder


def printed(capsys: pytest.CaptureFixture[str], *argv: object) -> Any:
    assert guarded(run, ["-q", *map(str, argv)]) == 0
    return json.loads(capsys.readouterr().out)


def test_old_and_new_spelling_show_the_same(
    artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = printed(capsys, "inspect", "asm", artifact, "--functions", "dot_*", "--json")
    assert new == printed(capsys, "inspect", artifact, "--asm", "dot_*", "--json")
    assert new["functions"]
    summary = printed(capsys, "inspect", "artifact", artifact, "--json")
    assert summary == printed(capsys, "inspect", artifact, "--json")
    assert {each["name"] for each in summary["functions"]} >= set(new["functions"])


def test_a_view_that_the_target_has_not(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["inspect", "dispatches", str(artifact)]) == 2
    shown = capsys.readouterr().err
    assert "it is for the target 'vexii'" in shown
    assert "iree-*" in shown


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["compile", "zoo:mlp", "--precision", "f16"], "'cpu' has no option 'precision'"),
        (["compile", "zoo:mlp", "-t", "cuda", "--precision", "f8"], "one of f32, tf32, f16"),
        (["compile", "zoo:mlp", "-t", "cuda", "--sizes", "2by3"], "shapes such as 32x3x224x224"),
        (["compile", "zoo:mlp", "-t", "vexii", "--nonsense"], "No such option: --nonsense"),
        (["tune", "zoo:mlp", "-t", "cpu", "--precision", "f16"], "no option 'precision'"),
        (["tune", "prepare", "zoo:mlp", "-o", "d", "-t", "cpu"], "-t cuda or -t iree-cuda"),
        (["tune", "export", "f", "-t", "cpu"], "cannot be exported"),
        (["tune", "calibrate", "--slow"], "see 'fewbit tune calibrate --help'"),
        (["bench", "conv2d", "-t", "cpu"], "conv2d is not measured on 'cpu'"),
    ],
)
def test_mistakes(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, argv) == 2
    assert words in capsys.readouterr().err
