"""Runs the `// RUN:` lines of every .mlir file below this folder, in this process.

A line is a pipeline of `fewbit-opt` and `filecheck`, each optionally behind `not`, with `%s` for
the file, `%t` for a fresh temporary path, `2>&1`, and `\\` at the end to continue on the next
`// RUN:` line. Every command of a pipeline must succeed.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from fewbit.cli import opt
from fewbit.cli.guard import guarded

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.mlir"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(HERE).as_posix())
def test_filecheck(file: Path, tmp_path: Path) -> None:
    lines = run_lines(file.read_text(encoding="utf-8"))
    assert lines, "the file has no '// RUN:' line, so it checks nothing"
    for line in lines:
        run_pipeline(line.replace("%s", str(file)).replace("%t", str(tmp_path / "t")))


def run_lines(text: str) -> list[str]:
    joined = re.sub(r"\\\n\s*// RUN:", "", text)
    return re.findall(r"^\s*// RUN:\s*(.+?)\s*$", joined, flags=re.MULTILINE)


def run_pipeline(line: str) -> None:
    text = ""
    for command in split_pipeline(line):
        result = run_command(command, text)
        negated = command[0] == "not"
        assert (result.status != 0) == negated, (
            f"status {result.status} of: {shlex.join(command)}\n{result.output}{result.errors}"
        )
        text = result.output


def split_pipeline(line: str) -> list[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    for word in lexer:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


@dataclass(frozen=True)
class Result:
    status: int
    output: str
    errors: str


def run_command(words: list[str], stdin: str) -> Result:
    output = io.StringIO()
    errors = output if "2>&1" in words else io.StringIO()
    program, *arguments = [word for word in words if word not in ("not", "2>&1")]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        if program == "fewbit-opt":
            status = guarded(opt.run, arguments)
        elif program == "filecheck":
            status = filecheck(arguments, stdin)
        else:
            pytest.fail(f"a RUN line may call fewbit-opt and filecheck, not '{program}'")
    return Result(status, output.getvalue(), errors.getvalue() if errors is not output else "")


def filecheck(arguments: list[str], text: str) -> int:
    options = parse_argv_options(["filecheck", *arguments])
    return Matcher(options, FInput("-", text), Parser.from_opts(options)).run()


def test_every_pipeline_is_really_checked(tmp_path: Path) -> None:
    file = tmp_path / "wrong.mlir"
    file.write_text("// RUN: fewbit-opt %s | filecheck %s\n// CHECK: no such text\nmodule {}\n")
    with pytest.raises(AssertionError, match="status 1 of: filecheck"):
        test_filecheck(file, tmp_path)


def test_not_demands_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "fine.mlir"
    file.write_text("// RUN: not fewbit-opt %s\nmodule {}\n")
    with pytest.raises(AssertionError, match="status 0 of: not fewbit-opt"):
        test_filecheck(file, tmp_path)


def test_lines_are_joined_and_split() -> None:
    text = "// RUN: fewbit-opt %s -p 'cse,some-pass{a=\"x|y\"}' \\\n// RUN:   2>&1 | filecheck %s\n"
    (line,) = run_lines(text)
    assert split_pipeline(line) == [
        ["fewbit-opt", "%s", "-p", 'cse,some-pass{a="x|y"}', "2>&1"],
        ["filecheck", "%s"],
    ]
