"""docs/cli.md and the help texts name exactly the options that there are, and every target.

Commands on all pages are made of verbs, subcommands, options and targets that exist; the tables of
targets and their options are what the targets say.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fewbit.cli.main import VERBS, build_app
from fewbit.cli.modes import ModeGroup
from fewbit.cli.target_options import TargetCommand
from fewbit.targets.registry import OURS, find_target, shorten

ROOT = Path(__file__).parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/*.md")
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
PAGES = [page for pattern in PATTERNS for page in sorted(ROOT.glob(pattern))]
SECTIONS: dict[str, str] = dict(
    re.findall(r"^###? (.*?)\n(.*?)(?=^###? |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
)
MOST_OPTIONS = 15
"""The options of a command itself; those of targets and of one kind of model have their panels."""


def all_commands() -> dict[str, Any]:
    """Every command by its words, `tune search`, also those that targets bring."""
    found: dict[str, Any] = {}
    for verb, command in build_app().commands.items():
        if not isinstance(command, ModeGroup):
            found[verb] = command
            continue
        for name in command.list_commands(None):
            found[f"{verb} {name}"] = command.get_command(None, name)
    return found


COMMANDS = all_commands()


def own_params(words: str) -> list[Any]:
    """The options of a command itself that its help lists."""
    shared = {"verbose", "quiet", "debug", "version"}
    params = [param for param in COMMANDS[words].params if param.name not in shared]
    return [param for param in params if not getattr(param, "hidden", False)]


def target_params(words: str) -> list[Any]:
    command = COMMANDS[words]
    return list(command.load_all()) if isinstance(command, TargetCommand) else []


def options_of(words: str) -> set[str]:
    """All options of a command, long and short, as its help lists them."""
    params = [*own_params(words), *target_params(words)]
    spelled = [word for param in params for word in (*param.opts, *param.secondary_opts)]
    return {word for word in spelled if word.startswith("-")}


def rows(section: str) -> list[list[str]]:
    """The rows of the tables of options, as cells."""
    lines = [line for line in section.splitlines() if line.startswith("| `-")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def documented(section: str) -> set[str]:
    spans = [span for row in rows(section) for span in re.findall(r"`([^`]+)`", row[0])]
    return {span.split()[0] for span in spans}


def section_of(words: str) -> str:
    (section,) = (
        text for title, text in SECTIONS.items() if re.match(rf"`fewbit {words}[ `]", title)
    )
    return section


@pytest.mark.parametrize("words", COMMANDS)
def test_a_commands_section_has_its_options_and_no_others(words: str) -> None:
    found, real = documented(section_of(words)), options_of(words)
    if "--calibration-method" in real:
        found |= documented(SECTIONS["Calibration"])
    if words == "compile":
        found |= documented(SECTIONS["Targets"])
    assert found == real


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_has_a_help_text(words: str) -> None:
    for param in (*COMMANDS[words].params, *target_params(words)):
        assert getattr(param, "help", None), param.name


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_has_few_options_of_its_own(words: str) -> None:
    panels = Counter(getattr(param, "rich_help_panel", None) for param in own_params(words))
    assert panels.pop(None, 0) <= MOST_OPTIONS + 1
    assert all(count <= MOST_OPTIONS // 2 for count in panels.values())


def test_tables_are_what_the_targets_say() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "targets.py"), "--check"]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def owners() -> dict[str, str]:
    """The targets that have an option, by how the command line spells it."""
    found: dict[str, list[str]] = {}
    for name in OURS:
        for option in find_target(name).options.declared():
            found.setdefault(option.flag, []).append(name)
    return {flag: shorten(names) for flag, names in found.items()}


def test_options_of_targets_are_documented_with_their_targets() -> None:
    shown = {
        row[0].strip("`").split()[0]: row[1].replace("`", "") for row in rows(SECTIONS["Targets"])
    }
    assert shown == owners()
    assert shown["--tuning-db"] == "cpu, cuda, iree-*"


def test_help_of_a_targets_option_is_in_a_panel_of_its_targets() -> None:
    panels = {param.opts[0]: param.rich_help_panel for param in target_params("compile")}
    assert panels == {flag: f"Options of {names}" for flag, names in owners().items()}


@pytest.mark.parametrize("target", OURS)
def test_every_target_is_in_the_help_and_on_the_page(target: str) -> None:
    target_params("compile")
    (param,) = (param for param in COMMANDS["compile"].params if param.name == "target")
    assert re.search(rf"(?<![\w-]){target}\b", str(getattr(param, "help", "")))
    assert re.search(rf"^\|.*`{target}(:\w+)?`", SECTIONS["Targets"], flags=re.MULTILINE)


FENCED = re.compile(r"^```(?:sh)?\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """The words behind `fewbit` of every command, in blocks and within lines."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in FENCED.findall(text) for line in block.splitlines()]
    spans = re.findall(r"`(fewbit [^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    parts = [part for line in (*lines, *spans) for part in re.split(r"\s(?:&&|#|\|)", line)]
    results = [re.match(r"\s*(?:\w+=\S+ )?(?:\.venv/bin/)?fewbit (.*)", part) for part in parts]
    return [shlex.split(match[1]) for match in results if match]


def command_of(words: list[str]) -> str:
    """The command that is meant; a verb with subcommands has one that is not named."""
    if words[0] in COMMANDS:
        return words[0]
    group = build_app().commands[words[0]]
    assert isinstance(group, ModeGroup)
    named = " ".join(words[:2])
    return named if named in COMMANDS else f"{words[0]} {group.default}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_have_options_that_exist(page: Path) -> None:
    for words in commands(page):
        assert words[0] in VERBS, words
        command = command_of(words)
        known = options_of(command) | {"-v", "-q", "--verbose", "--quiet", "--debug", "--help"}
        if page.name == "CHANGELOG.md":  # says how things were spelled
            continue
        for word in words[1:]:
            option = word.partition("=")[0]
            assert not re.fullmatch(r"--?[a-z][a-z-]*", option) or option in known, (command, word)
        for flag, value in pairwise(words):
            if flag == "-t" and value.isascii() and value[0].islower():
                find_target(value)


def test_every_option_of_a_target_is_on_the_page_for_python() -> None:
    page = (ROOT / "docs" / "compile.md").read_text(encoding="utf-8")
    cells = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    named = {span for cell in cells for span in re.findall(r"`(\w+)`", cell)}
    assert {name for target in OURS for name in find_target(target).options.names()} <= named
