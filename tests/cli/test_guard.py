"""Every way a command can end: its exit status and what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fewbit import errors
from fewbit.cli import main, opt
from fewbit.cli.guard import INTERRUPTED, UNREAD, InternalError, guarded
from fewbit.errors import Error, ParseError, Place, UnsupportedError, UsageError


def run(exception: BaseException, *argv: str) -> int:
    def main(arguments: list[str]) -> int:
        raise exception

    return guarded(main, argv)


def test_the_status_of_a_command_that_ends_well_is_its_own() -> None:
    assert guarded(lambda argv: None, []) == 0
    assert guarded(lambda argv: 3, []) == 3
    assert guarded(lambda argv: len(argv), ["a", "b"]) == 2


def test_an_error_shows_what_where_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    error = ParseError(
        "expected a type",
        place=Place(file="net.mlir", line=2, column=5),
        excerpt="  %0 = [red]x[/red]\n       ^",
        hint="write one",
    )
    assert run(error) == 1
    assert capsys.readouterr() == (
        "",
        "parse error: net.mlir:2:5: expected a type\n"
        "  %0 = [red]x[/red]\n       ^\n"
        "hint: write one\n",
    )


def test_a_long_line_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Error("x" * 500)) == 1
    assert "x" * 500 in capsys.readouterr().err


def test_a_usage_error_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(UsageError("no pass 'cze'")) == 2
    assert capsys.readouterr().err == "usage error: no pass 'cze'\n"


def test_what_is_not_supported_exits_3() -> None:
    assert run(UnsupportedError("no op 'aten.fft'")) == 3


def test_the_page_has_every_status() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    table = page.partition("| exit status | meaning |")[2].partition("\n\n")[0]
    listed = {
        int(n) for cell in re.findall(r"^\| ([\d, ]+) \|", table, re.M) for n in cell.split(",")
    }
    kinds = [Error, InternalError, *vars(errors).values()]
    raised = {kind.status for kind in kinds if isinstance(kind, type) and issubclass(kind, Error)}
    assert listed == {0, INTERRUPTED, UNREAD} | raised


MISSING = {
    "compile": ["compile", "nope"],
    "compile a factory": ["compile", "nope.py:net"],
    "quantize": ["quantize", "nope", "-r", "w8a8", "-o", "out"],
    "run": ["run", "nope"],
    "bench": ["bench", "nope"],
    "inspect": ["inspect", "nope"],
    "inspect artifact": ["inspect", "artifact", "nope"],
    "inspect asm": ["inspect", "asm", "nope"],
    "inspect loops": ["inspect", "loops", "nope"],
    "tune": ["tune", "nope"],
    "tune measure": ["tune", "measure", "nope"],
    "fewbit-opt": ["nope.mlir"],
}


@pytest.mark.parametrize("name", MISSING)
def test_a_name_of_nothing_exits_2_in_every_verb(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    program = opt.run if name == "fewbit-opt" else main.run
    assert guarded(program, MISSING[name]) == 2
    assert "nope" in capsys.readouterr().err


def test_debug_adds_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Error("no luck"), "file", "--debug") == 1
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last)" in shown
    assert shown.endswith("error: no luck\n")


def test_a_fault_of_ours_is_one_line_and_how_to_report_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(KeyError("fc1")) == 70
    shown = capsys.readouterr().err
    assert shown.startswith("internal error: KeyError: 'fc1'\nhint: ")
    assert "--debug" in shown
    assert "Traceback" not in shown


def test_a_file_that_the_system_refuses_is_an_ordinary_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(FileNotFoundError(2, "No such file or directory", "net.mlir")) == 1
    assert capsys.readouterr().err == "error: net.mlir: No such file or directory\n"


def test_an_interrupt_exits_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(KeyboardInterrupt()) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("printer", ["print", "rich.console.Console().print"])
def test_a_reader_that_goes_away_makes_no_noise(printer: str) -> None:
    code = (
        "import sys, rich.console; from fewbit.cli.guard import guarded\n"
        f"def main(argv):\n    for i in range(100000): {printer}(i)\n"
        "sys.exit(guarded(main, []))"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    assert writer.stdout.readline() == "0\n"
    writer.stdout.close()
    with writer.stderr:
        assert writer.stderr.read() == ""
    assert writer.wait() == 141


def test_other_ways_to_exit_pass_through() -> None:
    with pytest.raises(SystemExit):
        run(SystemExit(3))


OUTPUTS = {
    "full": (">/dev/full", "error: cannot write the output: No space left on device\n"),
    "closed": (">&-", "error: the standard output is closed\nhint: "),
}


@pytest.mark.parametrize("lines", [1, 100_000])
@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_that_takes_nothing_is_an_ordinary_error(output: str, lines: int) -> None:
    redirection, message = OUTPUTS[output]
    code = (
        "import sys; from fewbit.cli.guard import guarded\n"
        f"sys.exit(guarded(lambda argv: [print(i) for i in range({lines})] and 0, []))"
    )
    command = f'exec "$0" -c "$1" {redirection}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, code], stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr
