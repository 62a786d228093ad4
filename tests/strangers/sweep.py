"""All strangers, each in a process of its own, with results that outlive a crash.

A result is a JSON file in the cache folder, one for each stranger, and says which commit it is of.
A process that dies or takes too long is a result as well.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.base.cache import cache_folder
from tests.strangers.catalog import find
from tests.strangers.check import Kind, Result, check
from tests.strangers.stranger import Stranger

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 600
"""What the check of one stranger may take."""
SETTINGS = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
"""The environment of all checks: one thread, and no network."""


def results_folder() -> Path:
    """Return where results are kept."""
    return cache_folder() / "strangers"


def load_result(stranger: Stranger, folder: Path) -> Result | None:
    """Return the newest result of a stranger, if there is one."""
    path = _path(stranger, folder)
    return Result(**json.loads(path.read_text())) if path.is_file() else None


def sweep(
    strangers: Iterable[Stranger], folder: Path, commit: str, tell: Callable[[Result], None]
) -> None:
    """Check strangers one after the other, and keep each result."""
    for stranger in strangers:
        result = check_apart(stranger)
        result.commit = commit
        path = _path(stranger, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(result), indent=1) + "\n")
        tell(result)


def check_apart(stranger: Stranger, timeout_s: float = TIMEOUT_S) -> Result:
    """Check a stranger in a process of its own, forked from one that has loaded all libraries."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.strangers.warm"])
    os.environ.update(SETTINGS)
    with TemporaryDirectory(prefix="fewbit-strangers-") as name:
        output, log = Path(name) / "result.json", Path(name) / "log"
        process = context.Process(target=_check_here, args=(stranger.key, output, log), daemon=True)
        process.start()
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
            process.join()
            return Result(stranger.key, Kind.TIMEOUT, f"not done after {timeout_s:.0f} s")
        if output.is_file():
            return Result(**json.loads(output.read_text()))
        end = log.read_text(errors="replace")[-4000:] if log.is_file() else ""
    last = end.splitlines()[-1] if end else ""
    reason = f"the process ended with status {process.exitcode}: {last}"
    return Result(stranger.key, Kind.INTERNAL, reason, detail=end)


def _check_here(key: str, output: Path, log: Path) -> None:
    """Check a stranger in this process, whose messages go to a file."""
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        result = check(find(key))
        output.write_text(json.dumps(asdict(result), indent=1) + "\n")


def current_commit() -> str:
    """Return the commit of the working tree, with a mark where the package differs from it."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.check_output([*git, "rev-parse", "--short=9", "HEAD"], text=True).strip()
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "fewbit"], check=False)
    return f"{commit}+" if changed.returncode else commit


def _path(stranger: Stranger, folder: Path) -> Path:
    return folder / stranger.group / f"{stranger.name}.json"
