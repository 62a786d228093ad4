"""Running what was compiled: an artifact, loaded and called like a function."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fewbit.base.files import PathLike
from fewbit.program.artifact import Folder, Manifest, open_folder

if TYPE_CHECKING:
    from fewbit.runtime.profile import CallProfile
    from fewbit.runtime.session import Session


class Artifact:
    """A compiled program: `art(x)` runs it, `art.folder` is where its files are."""

    def __init__(self, folder: Folder, temporary: TemporaryDirectory[str] | None = None) -> None:
        self._folder = folder
        self._temporary = temporary
        self._loaded: Any = None

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def manifest(self) -> Manifest:
        return self._folder.manifest

    @property
    def runner(self) -> Any:
        """What executes it here, loaded when first asked for."""
        if self._loaded is None:
            from fewbit.targets.registry import find_target

            self._loaded = find_target(self.manifest.target).load(self._folder)
        return self._loaded

    def __call__(self, *arrays: Any, **options: Any) -> Any:
        """Run the program and return one output, or a tuple of several."""
        outputs = self.run(*arrays, **options)
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, *arrays: Any, **options: Any) -> tuple[Any, ...]:
        return self.runner(*arrays, **options)

    def session(self, *, threads: int | None = None) -> Session:
        """Call a program that has a state step by step; the session keeps it."""
        from fewbit.runtime.session import Session

        return Session(self.runner, threads)

    def profile(self, *, reset: bool = False) -> list[CallProfile]:
        """Return where the time of all calls went, if it was compiled with `profile=True`."""
        rows = self.runner.profile.rows()
        if reset:
            self.runner.profile.reset()
        return rows

    @property
    def variant(self) -> str | None:
        """Which variant of its code runs here, if it was compiled with `cpu_variants`."""
        return self.runner.variant

    def use_variant(self, name: str) -> None:
        """Use another variant in all calls from now on; "auto" is the best for this machine."""
        self.runner.use_variant(name)

    def __repr__(self) -> str:
        return f"Artifact({self.manifest.name!r}, target={self.manifest.target!r})"


def load(path: PathLike) -> Artifact:
    """Load an artifact that was compiled earlier."""
    return Artifact(open_folder(path))
