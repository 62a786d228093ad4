"""`fewbit-opt` as a program: input, output, several modules, diagnostics, mistakes."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fewbit.base.progress import SHOW_AFTER_SECONDS
from fewbit.cli import opt
from fewbit.cli.guard import guarded
from fewbit.ir.parse import parse_module

GOOD = "func.func @f(%x: i32) -> i32 {\n  func.return %x : i32\n}\n"
INVALID = "func.func @f() {\n  func.call @g() : () -> ()\n  func.return\n}\n"
PROGRAM = Path(sys.executable).with_name("fewbit-opt")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "good.mlir"
    file.write_text(GOOD)
    return file


def run(*argv: str | Path) -> int:
    return guarded(opt.run, [str(word) for word in argv])


def test_the_module_goes_to_stdout(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(good) == 0
    shown = capsys.readouterr()
    assert "func.func @f(%x: i32) -> i32" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize("argv", [["-"], []])
def test_stdin_is_read(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(INVALID.encode())))
    assert run(*argv) == 1
    assert capsys.readouterr().err.startswith("verify error: <stdin>:2:3, op 'func.call'")


def test_an_output_file_is_written(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = good.with_name("out.mlir")
    assert run(good, "-o", out) == 0
    assert capsys.readouterr().out == ""
    parse_module(out.read_text())


def test_an_output_file_is_left_alone_on_failure(tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.mlir", tmp_path / "out.mlir"
    bad.write_text(f"{GOOD}// -----\n{INVALID}")
    out.write_text("precious")
    assert run(bad, "--split-input-file", "-o", out) == 1
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.mlir", "out.mlir"]


def test_a_device_is_written_to_and_stays(good: Path) -> None:
    assert run(good, "-o", "/dev/null") == 0
    assert not Path("/dev/null").is_file()


def test_parts_that_are_good_come_out_when_others_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "parts.mlir"
    file.write_text(f"{GOOD}// -----\n{INVALID}// -----\n{GOOD}// -----\n{INVALID}")
    assert run(file, "--split-input-file") == 1
    shown = capsys.readouterr()
    assert shown.out.count("func.func @f(%x: i32)") == 2
    assert shown.out.count("// -----") == 1
    assert [line.split(",")[0] for line in shown.err.splitlines() if "verify error" in line] == [
        f"verify error: {file}:6:3",
        f"verify error: {file}:15:3",
    ]


def test_split_input_keeps_line_numbers() -> None:
    parts = opt.split_input("a\n// -----\nb\nc\n  // -----  \n")
    assert [(part.text, part.first_line) for part in parts] == [("a\n", 1), ("b\nc\n", 3), ("", 6)]


def test_only_newlines_count_as_lines() -> None:
    (first, second) = opt.split_input("a\u2028\x0cb\r\n// -----\r\nc")
    assert (first.text, second.text, second.first_line) == ("a\u2028\x0cb\r\n", "c", 3)


def test_parts_are_dumped_to_folders_of_their_own(tmp_path: Path) -> None:
    file, folder = tmp_path / "parts.mlir", tmp_path / "ir"
    file.write_text(f"{GOOD}// -----\n{GOOD}")
    assert run(file, "--split-input-file", "--dump-ir", folder, "-p", "cse") == 0
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.mlir"))
    assert names == ["01/00-input.mlir", "01/01-cse.mlir", "02/00-input.mlir", "02/01-cse.mlir"]


def test_expected_errors_make_success(tmp_path: Path) -> None:
    file = tmp_path / "t.mlir"
    file.write_text(
        INVALID.replace("()\n  func.return", "() // expected-error {{g}}\n  func.return")
    )
    assert run(file, "--verify-diagnostics") == 0
    assert run(file) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"// expected-error @+1 {{{{no such}}}}\n{GOOD}", "but there was none"),
        (INVALID, "unexpected verify error"),
        (f"// expected-error {{{{g}}}}\n{INVALID}", "unexpected verify error"),
    ],
)
def test_diagnostics_that_differ_fail(
    text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.mlir"
    file.write_text(text)
    assert run(file, "--verify-diagnostics") == 1
    assert complaint in capsys.readouterr().err


def test_timings_go_to_stderr(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(good, "-p", "cse", "--time-passes") == 0
    shown = capsys.readouterr()
    assert "s  cse\n" in shown.err
    assert "total" not in shown.out


def test_verbose_says_each_pass_with_its_time(
    good: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(good, "-v", "-p", "cse,fold-constants{max-bytes=5}") == 0
    shown = capsys.readouterr()
    first, second = shown.err.splitlines()
    assert re.fullmatch(r"cse: \d+\.\d\d s", first)
    assert re.fullmatch(r"fold-constants\{max.bytes=5\}: \d+\.\d\d s", second)
    assert "cse" not in shown.out


@pytest.mark.parametrize(("flags", "shown"), [([], True), (["-q"], False), (["-v", "-q"], False)])
def test_long_work_shows_progress_unless_quiet(
    flags: list[str],
    shown: bool,
    good: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def slow(driver: object, each: object, module: object) -> object:
        time.sleep(SHOW_AFTER_SECONDS + 0.3)
        return module

    monkeypatch.setattr("fewbit.pipeline.driver.Driver._apply", slow)
    assert run(good, "-p", "cse,dce", *flags) == 0
    assert (f"Working on {good}: 33% (1 of 3)" in capsys.readouterr().err) == shown


def test_unknown_ops_need_permission(tmp_path: Path) -> None:
    file = tmp_path / "t.mlir"
    file.write_text('"some.op"() : () -> ()\n')
    assert run(file) == 1
    assert run(file, "--allow-unregistered-dialect") == 0


def test_verification_can_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "t.mlir"
    file.write_text(INVALID)
    assert run(file, "--no-verify") == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--cze"], "there is no option or pass '--cze'"),
        (["-z"], "there is no option or pass '-z'"),
        (["-p", "cse", "--dce"], "passes are given both with -p and as flags"),
        (["-p"], "argument -p/--passes: expected one argument"),
        (["--cse=x=1"], "pass 'cse' has no option 'x'"),
    ],
)
def test_a_mistake_exits_2(
    argv: list[str], message: str, good: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(good, *argv) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f"usage error: {message}")
    assert "hint: " in shown.err
    assert shown.out == ""


def test_a_flag_may_carry_options() -> None:
    from fewbit.cli.opt import _flag_to_spec  # pyright: ignore[reportPrivateUsage]

    assert _flag_to_spec("--cse") == "cse"
    assert _flag_to_spec("--tile=size=4 name=a") == "tile{size=4 name=a}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00", "the input is not text in UTF-8"),
        (b"ML\xefR\x0d", "the input is not text in UTF-8"),
        (b"func.func @f(", "parse error"),
        (b"\0", "NUL"),
    ],
)
def test_a_file_that_is_no_module_is_an_error(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.mlir"
    file.write_bytes(content)
    assert run(file) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert "bad.mlir" in shown
    assert "Traceback" not in shown


def test_missing_files_and_folders_are_errors(
    tmp_path: Path, good: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "none.mlir") == 2
    assert run(tmp_path) == 1
    assert run(good, "--dump-ir", good / "under-a-file") == 1
    shown = capsys.readouterr().err
    assert shown.count("error: ") == 3
    assert "internal" not in shown


def test_the_installed_program_runs() -> None:
    done = subprocess.run(
        [PROGRAM, "-p", "cse"], input=GOOD, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "func.func @f" in done.stdout


def test_generic_output_is_read_by_iree_opt(tmp_path: Path) -> None:
    """The two commands of docs/interop.md."""
    root = Path(__file__).parents[2]
    file = tmp_path / "program.mlir"
    passes = ["-p", "inline,symbol-dce", "--generic", "--properties-as-attributes"]
    assert run(root / "examples" / "mlp.mlir", *passes, "-o", file) == 0
    irdl = root / "docs" / "dialects" / "mico.irdl.mlir"
    command = [Path(sys.executable).with_name("iree-opt"), f"--irdl-file={irdl}", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "mico.bitlinear" in done.stdout
