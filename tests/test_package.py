"""The package itself: what `import fewbit` costs, what it offers, and that its metadata agree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import fewbit

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "torch_mlir", "iree", "xdsl", "numpy", "rich", "typer", "llvmlite", "pydantic")
IMPORT_SECONDS = 0.3
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
NAMES = {
    "llama-cpp-python": "llama_cpp",
    "scikit-learn": "sklearn",
    "tensorflow-cpu": "tensorflow",
    "zigzag-dse": "zigzag",
}
"""The module that a package is imported by, where that has another name."""
LOADERS = ("import_module", "importorskip", "find_spec", "import_extra")
"""Functions that import the module that their first argument names."""
NEEDED_BY = {
    "flatbuffers": "jax",  # for jax.export, without asking for it
    "onnxscript": "torch",  # for torch.onnx.export, neither
    "six": "zigzag-dse",  # which does not ask for it either
}
USES = {
    "import-linter": "$(BIN)/lint-imports",
    "pyright": "$(BIN)/pyright",
    "pytest-timeout": "\ntimeout = 300",
    "pytest-xdist": "$(BIN)/pytest -n",
    "ruff": "$(BIN)/ruff",
    "nvidia-cuda-nvrtc": '"libnvrtc.so.13"',
    "nvidia-cuda-runtime": '"nvidia/*/include"',  # headers that NVRTC is given
    "nvidia-cuda-crt": '"nvidia/*/include"',
    "nvidia-cuda-cccl": '"nvidia/*/include/cccl"',
    "nvidia-cutlass": '"cutlass_library/source/include"',
    "scipy-openblas32": 'Cblas("", "", prefix="scipy_cblas_")',
}
"""Where packages that nothing imports are used: commands, settings, and files of theirs."""


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_loads_no_library() -> None:
    loaded = run_python("import fewbit, sys; print(*{m.partition('.')[0] for m in sys.modules})")
    assert "fewbit" in loaded.split()
    assert set(loaded.split()).isdisjoint(HEAVY)


def test_import_is_fast() -> None:
    timed = "import time; t = time.perf_counter(); import fewbit; print(time.perf_counter() - t)"
    assert min(float(run_python(timed)) for _ in range(5)) < IMPORT_SECONDS


@pytest.mark.parametrize("name", fewbit.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(fewbit, name) is not None
    assert name in dir(fewbit)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'quantise'"):
        _ = fewbit.quantise  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def test_public_names_lead_to_their_homes() -> None:
    from fewbit.ir.parse import parse_module
    from fewbit.ir.verify import verify

    assert fewbit.parse is parse_module
    assert fewbit.verify is verify
    assert fewbit.errors.Error.__module__ == "fewbit.errors"


def test_the_version_is_the_same_everywhere() -> None:
    assert fewbit.__version__ == PROJECT["version"] == metadata.version("fewbit")


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "fewbit" / "py.typed").is_file()


def test_torch_is_pinned_exactly() -> None:
    assert "torch==2.13.0" in (metadata.requires("fewbit") or [])


def package_of(requirement: str) -> str:
    return re.split(r"[\[<>=~!; ]", requirement)[0]


def our_files() -> list[Path]:
    folders = ("fewbit", "tests", "benchmarks", "tools")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    return [file for file in files if file != Path(__file__)]


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """All packages that our files import."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in our_files())
    return {name.partition(".")[0] for tree in trees for name in imports_of(tree)}


def imports_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (each.name for each in names)
            case ast.ImportFrom(str() as module, _, 0):
                yield module
            case ast.Call(
                ast.Name(name) | ast.Attribute(_, name), [ast.Constant(str() as module), *_]
            ) if name in LOADERS:
                yield module
            case _:
                pass


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_package_of_an_extra_is_used(extra: str, imported: set[str]) -> None:
    for package in map(package_of, EXTRAS[extra]):
        if package in USES:
            files = (ROOT / "Makefile", ROOT / "pyproject.toml", *our_files())
            assert any(USES[package] in file.read_text(encoding="utf-8") for file in files), package
            continue
        needed = NEEDED_BY.get(package, package)
        assert NAMES.get(needed, needed).replace("-", "_") in imported, package


def test_the_lock_has_what_the_project_pins_and_no_addresses() -> None:
    lock = (ROOT / "requirements" / "ci.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, flags=re.MULTILINE))
    for requirement in (*PROJECT["dependencies"], *EXTRAS["dev"]):
        package = package_of(requirement).replace("_", "-")
        if package == "torch":
            assert package not in locked, "its build differs by machine"
            continue
        _, pinned, version = requirement.partition("==")
        assert package in locked, "write the lock file anew: make lock"
        assert not pinned or locked[package] == version, "write the lock file anew: make lock"


def test_an_editable_install_is_not_shadowed_by_a_folder_of_its_name(tmp_path: Path) -> None:
    """A clone in the working directory is a folder `fewbit` without a package in it."""
    clone = tmp_path / "fewbit"
    (clone / "fewbit").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (clone / name).write_bytes((ROOT / name).read_bytes())
    (clone / "fewbit" / "__init__.py").write_text("__version__ = 'of the clone'\n")
    site = tmp_path / "site"
    build = f"import setuptools.build_meta as b; b.build_editable({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=clone, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    code = f"import site; site.addsitedir({str(site)!r}); import fewbit; print(fewbit.__version__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "of the clone", done.stderr
