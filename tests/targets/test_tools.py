"""What is found of packages and programs, including when it is not there."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from fewbit.errors import MissingToolError
from fewbit.toolchain import tools
from fewbit.toolchain.tools import packages, tool_path


def by_name() -> dict[str, tools.Package]:
    return {package.name: package for package in packages()}


def test_core_packages_are_found_with_their_versions() -> None:
    found = by_name()
    for name in ("torch", "xdsl", "numpy", "typer"):
        assert found[name].found == metadata.version(name)
        assert found[name].extra is None
        assert found[name].suits


def test_packages_of_extras_name_their_extra() -> None:
    assert by_name()["pytest"].extra == "dev"
    assert by_name()["onnx"].extra == "onnx"
    assert by_name()["openvino"].extra == "bench"


def test_packages_that_extras_share_are_there_once() -> None:
    names = [package.name for package in packages()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("found", "suits"), [("0.74.0", True), ("0.75.0", False), (None, False)])
def test_a_version_that_was_not_asked_for_does_not_suit(
    found: str | None, suits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "version", version)
    assert by_name()["xdsl"].suits == suits
    assert by_name()["xdsl"].found == found


def test_a_local_build_of_the_pinned_version_suits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "2.13.0+cpu")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert by_name()["torch"].suits


def test_without_an_installation_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    with pytest.raises(MissingToolError, match="make setup"):
        packages()


def test_tools_of_the_wheels_are_found_beside_python() -> None:
    for name in ("iree-compile", "iree-opt", "torch-mlir-opt"):
        assert tool_path(name) == str(Path(sys.executable).with_name(name))
    linker = tool_path("iree-lld")
    assert linker is not None
    assert Path(linker).is_file()


def test_a_tool_reports_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, body in {"gcc": "echo 'gcc (Some Linux) 12.2.0'", "clang": "exit 1"}.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    results = {tool.name: tool for tool in tools.tools()}
    assert (results["gcc"].path, results["gcc"].version) == (str(tmp_path / "gcc"), "12.2.0")
    assert (results["clang"].path, results["clang"].version) == (str(tmp_path / "clang"), None)
    assert results["node"].path is None
