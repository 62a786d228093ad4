"""What the shell offers where TAB is pressed: models, targets, recipes.

typer writes the shell's part (`fewbit --install-completion`) and asks the functions here. They take
names from the registries, so targets and formats of other packages are offered, too. bash takes
`zoo:lenet` for three words: they are joined before typer sees them, and what it offers is cut to
the part behind the last colon, which is all that bash replaces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

INSTRUCTION = "_FEWBIT_COMPLETE"
"""The variable by which a shell asks for completions."""
WORDS, POSITION = "COMP_WORDS", "COMP_CWORD"
RECIPES = (
    "w8a8",
    "w8a8-static",
    "w8a8h64",
    "w6a8",
    "w4a8",
    "w4a8g128",
    "w4a8-static",
    "w2a8",
    "w1.58a8",
    "w1a8",
)
"""Recipes that are often wanted; there are many more."""

DATA = ("mnist", "fashion-mnist", "none")


def complete_models(incomplete: str) -> list[str]:
    """Return models of the zoo, files that front ends read, and factories of a Python file."""
    from fewbit.frontends.foreign import list_factories
    from fewbit.models.registry import zoo

    file, colon, _ = incomplete.rpartition(":")
    if colon and file.endswith(".py"):
        return [f"{file}:{name}" for name in list_factories(Path(file))]
    return [*(f"zoo:{name}" for name in zoo()), *_paths(incomplete, _is_model)]


def complete_targets(incomplete: str) -> list[str]:
    """Return targets, and with a colon what may follow it, where that can be listed."""
    from fewbit.targets.registry import all_targets

    return [
        name
        for target in all_targets()
        for name in (target.name, *(f"{target.name}:{detail}" for detail in target.details))
    ]


def complete_recipes(incomplete: str) -> list[str]:
    """Return recipes by their names, and files of recipes."""
    from fewbit.quant.recipe_text import SUFFIXES

    return [*RECIPES, *_paths(incomplete, lambda path: path.suffix in SUFFIXES)]


def complete_searchers(incomplete: str) -> list[str]:
    from fewbit.search.searchers import SEARCHERS

    return list(SEARCHERS)


def complete_data(incomplete: str) -> list[str]:
    """Return data by name, and files with loaders."""
    file, colon, _ = incomplete.rpartition(":")
    if colon and file == "text":
        begun = incomplete.partition(":")[2]
        return [f"text:{path}" for path in _paths(begun, lambda path: True)]
    return [*DATA, *_paths(incomplete, lambda path: path.suffix == ".py")]


def is_asked_by_bash() -> bool:
    return os.environ.get(INSTRUCTION) == "complete_bash"


def complete_in_bash(complete: Callable[[], object]) -> None:
    """Let typer complete, whose words bash has split at colons."""
    begun = join_words(os.environ)
    offered = StringIO()
    try:
        with redirect_stdout(offered):
            complete()
    finally:
        for line in offered.getvalue().splitlines():
            print(line.removeprefix(begun))


def join_words(environment: MutableMapping[str, str]) -> str:
    """Join words that bash split at colons; return what it will leave of the one that is typed."""
    words, position = environment[WORDS].split("\n"), int(environment[POSITION])
    joined: list[str] = []
    for word in words[: position + 1]:
        if joined[1:] and (word == ":" or joined[-1].endswith(":")):
            joined[-1] += word
        else:
            joined.append(word)
    environment[WORDS], environment[POSITION] = "\n".join(joined), str(len(joined) - 1)
    typed = joined[-1]
    return typed[: typed.rfind(":") + 1]


def _paths(incomplete: str, is_wanted: Callable[[Path], bool]) -> Iterator[str]:
    """Yield files and folders that begin so, spelled as they were begun."""
    begun = incomplete[: incomplete.rfind("/") + 1]
    try:
        paths = sorted(Path(begun or ".").iterdir())
    except OSError:
        return
    for path in paths:
        if path.name.startswith(".") or not f"{begun}{path.name}".startswith(incomplete):
            continue
        if path.is_dir():
            yield f"{begun}{path.name}/"
        elif is_wanted(path):
            yield f"{begun}{path.name}"


def _is_model(path: Path) -> bool:
    from fewbit.frontends.registry import find_for_file

    return path.suffix in (".py", ".mlir") or find_for_file(path) is not None
