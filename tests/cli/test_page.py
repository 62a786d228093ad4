"""docs/cli.md and the help texts name exactly the options that there are, and every target.

Commands on all pages are made of verbs, options and targets that exist.
"""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from fewbit.cli.main import VERBS, build_app
from fewbit.targets.registry import OURS, find_target

ROOT = Path(__file__).parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/*.md")
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
PAGES = [page for pattern in PATTERNS for page in sorted(ROOT.glob(pattern))]
SECTIONS: dict[str, str] = dict(
    re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
)
COMMANDS = build_app().commands
IN_PYTHON = {"--iree-flag": "iree_flags"}
"""Options that `fewbit.compile` takes under another name, since it takes several at once."""


def options_of(verb: str) -> set[str]:
    """The options of a verb itself, long and short, as its help lists them."""
    shared = {"verbose", "quiet", "debug", "version"}
    params = [param for param in COMMANDS[verb].params if param.name not in shared]
    words = [word for param in params for word in (*param.opts, *param.secondary_opts)]
    return {word for word in words if word.startswith("-")}


def rows(section: str) -> list[list[str]]:
    """The rows of the tables of options, as cells."""
    lines = [line for line in section.splitlines() if line.startswith("| `-")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def documented(section: str) -> set[str]:
    spans = [span for row in rows(section) for span in re.findall(r"`([^`]+)`", row[0])]
    return {span.split()[0] for span in spans}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verbs_section_has_its_options_and_no_others(verb: str) -> None:
    (section,) = (text for title, text in SECTIONS.items() if f"`fewbit {verb}" in f"{title} ")
    found, real = documented(section), options_of(verb)
    if "--calibration-method" in real:
        found |= documented(SECTIONS["Calibration"])
    assert found == real


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_a_help_text(verb: str) -> None:
    for param in COMMANDS[verb].params:
        assert getattr(param, "help", None), param.name


def families(option: str) -> str:
    """The targets that have an option, IREE's as one word: `cpu, iree-*`."""
    with_it = [name for name in OURS if option in find_target(name).options]
    iree = [name for name in OURS if name.startswith("iree-")]
    assert set(iree) <= set(with_it) or not set(iree) & set(with_it)
    return ", ".join(dict.fromkeys("iree-*" if name in iree else name for name in with_it))


def option_names() -> dict[str, str]:
    """Options of targets, by how `compile` spells them, with how Python does."""
    in_python = {name for target in OURS for name in find_target(target).options}
    spelled = {IN_PYTHON.get(option, option[2:].replace("-", "_")) for option in COMPILE}
    assert in_python <= spelled, "an option that the command line does not have"
    return {
        option: name
        for option in COMPILE
        if (name := IN_PYTHON.get(option, option[2:].replace("-", "_"))) in in_python
    }


COMPILE = sorted(option for option in options_of("compile") if option.startswith("--"))


def test_options_of_targets_are_documented_with_their_targets() -> None:
    (section,) = (text for title, text in SECTIONS.items() if title.startswith("`fewbit compile"))
    shown = {
        row[0].strip("`").split()[0]: row[1].replace("`", "")
        for row in rows(section)
        if len(row) == 3
    }
    assert shown == {option: families(name) for option, name in option_names().items()}


def test_help_of_a_targets_option_begins_with_its_targets() -> None:
    names = option_names()
    for param in COMMANDS["compile"].params:
        name = names.get(param.opts[0])
        if name is not None:
            help_text = str(getattr(param, "help", ""))
            assert help_text.partition(":")[0] == families(name), param.opts[0]


@pytest.mark.parametrize("target", OURS)
def test_every_target_is_in_the_help_and_on_the_page(target: str) -> None:
    (param,) = (param for param in COMMANDS["compile"].params if param.name == "target")
    assert re.search(rf"(?<![\w-]){target}\b", str(getattr(param, "help", "")))
    (section,) = (text for title, text in SECTIONS.items() if title.startswith("`fewbit compile"))
    assert re.search(rf"^\|.*`{target}(:\w+)?`", section, flags=re.MULTILINE)


FENCED = re.compile(r"^```(?:sh)?\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """The words behind `fewbit` of every command, in blocks and within lines."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in FENCED.findall(text) for line in block.splitlines()]
    spans = re.findall(r"`(fewbit [^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    parts = [part for line in (*lines, *spans) for part in re.split(r"\s(?:&&|#|\|)", line)]
    found = [re.match(r"\s*(?:\w+=\S+ )?(?:\.venv/bin/)?fewbit (.*)", part) for part in parts]
    return [shlex.split(match[1]) for match in found if match]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_have_options_that_exist(page: Path) -> None:
    for words in commands(page):
        verb = words[0]
        assert verb in VERBS, words
        known = options_of(verb) | {"-v", "-q", "--verbose", "--quiet", "--debug", "--help"}
        for word in words[1:]:
            option = word.partition("=")[0]
            assert not re.fullmatch(r"--?[a-z][a-z-]*", option) or option in known, (verb, word)
        for flag, value in pairwise(words):
            if flag == "-t" and value.isascii() and value[0].islower():
                find_target(value)


def test_every_option_of_a_target_is_on_the_page_for_python() -> None:
    page = (ROOT / "docs" / "compile.md").read_text(encoding="utf-8")
    cells = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    named = {span for cell in cells for span in re.findall(r"`(\w+)`", cell)}
    assert {name for target in OURS for name in find_target(target).options} <= named
