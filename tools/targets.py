"""Writes what targets say of themselves into the documentation: the targets, and their options.

python tools/targets.py            write the tables of docs/cli.md and docs/compile.md
python tools/targets.py --check    say whether they are as the targets say
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from fewbit.targets.options import Option
from fewbit.targets.registry import OURS, find_target, shorten
from fewbit.targets.target import Target

DOCS = Path(__file__).resolve().parents[1] / "docs"
END = "<!-- end -->"


def our_targets() -> list[Target]:
    """Those of this package, whatever else is installed."""
    return [find_target(name) for name in OURS]


def target_table() -> str:
    """List what is made for each target; targets that say the same have one row."""
    names: dict[tuple[str, str], list[str]] = {}
    for target in our_targets():
        spelled = [f"`{target.name}`"]
        spelled += [f"`{target.name}:{target.detail}`"] if target.detail else []
        names.setdefault((target.about, target.see), []).extend(spelled)
    rows = [f"| {', '.join(words)} | {about}; see {see} |" for (about, see), words in names.items()]
    return "\n".join(["| target | what is made |", "|---|---|", *rows])


def options() -> list[tuple[Option, str]]:
    """Each option, and the targets that have it."""
    owners: dict[Option, list[str]] = {}
    for target in our_targets():
        for option in target.options.declared():
            owners.setdefault(option, []).append(target.name)
    return [(option, shorten(names)) for option, names in owners.items()]


def flag_table() -> str:
    """Options as the command line has them."""
    rows = [
        f"| `{' '.join(filter(None, (option.flag, option.metavar)))}` | {_code(targets)} "
        f"| {_meaning(option, '; may be repeated')} |"
        for option, targets in options()
    ]
    return "\n".join(["| option | targets | meaning |", "|---|---|---|", *rows])


def argument_table() -> str:
    """Options as `fewbit.compile` has them."""
    rows = [
        f"| `{option.name}` | {_code(targets)} | {option.kind.words} | {_meaning(option)} |"
        for option, targets in options()
    ]
    return "\n".join(["| argument | targets | value | meaning |", "|---|---|---|---|", *rows])


TABLES = {
    "cli.md": {"targets": target_table, "options": flag_table},
    "compile.md": {"options": argument_table},
}


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _meaning(option: Option, repeatable: str = "") -> str:
    text = option.help.rstrip(".").removesuffix(". Repeatable")
    text = f"{text[0].lower()}{text[1:]}"
    text += repeatable if option.kind.is_repeatable else ""
    return f"{text}; see {option.see}" if option.see else text


def rewrite(page: Path) -> str:
    """The text of a page, with its tables as they must be."""
    text = page.read_text(encoding="utf-8")
    for name, make in TABLES[page.name].items():
        begin = f"<!-- {name} of targets, by tools/targets.py -->"
        pattern = re.compile(rf"{re.escape(begin)}\n.*?{re.escape(END)}", flags=re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"{page.name} has no place for the {name}: {begin}")
        block = f"{begin}\n{make()}\n{END}"
        text = pattern.sub(lambda _, block=block: block, text)
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check = parser.parse_args().check
    wrong: list[str] = []
    for name in TABLES:
        page = DOCS / name
        text = rewrite(page)
        if check and page.read_text(encoding="utf-8") != text:
            wrong.append(name)
        elif not check:
            page.write_text(text, encoding="utf-8")
    if wrong:
        print(f"{', '.join(wrong)}: run 'make architecture'", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
