"""Draws the house: the packages of `fewbit/`, floor by floor, and what each imports.

    python tools/architecture.py            write docs/architecture.svg and the table of its page
    python tools/architecture.py --check    say whether both are as the code is

Floors are those of the contract in `pyproject.toml` that `make lint` checks; what a package is for
is the first line of its docstring. Imports inside functions count, those for types alone do not.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "fewbit"
PAGE, PICTURE = ROOT / "docs" / "architecture.md", ROOT / "docs" / "architecture.svg"
BEGIN, END = "<!-- drawn by tools/architecture.py -->", "<!-- end -->"
WIDTH, ROW, GAP, MARGIN = 860, 44, 8, 16


def floors() -> list[list[str]]:
    """The packages of each floor, from the roof to the ground."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return [[name.strip() for name in layer.split(":")] for layer in contract["layers"]]


def files_of(package: str) -> list[Path]:
    folder = PACKAGE / package
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def purpose_of(package: str) -> str:
    folder = PACKAGE / package
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.partition("\n")[0].replace("|", "\\|")


def imported_by(path: Path) -> Iterator[str]:
    """The packages that a file imports."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in for_types or not isinstance(node, ast.ImportFrom) or node.level:
            continue
        parts = (node.module or "").split(".")
        if parts[0] == "fewbit":
            yield from [parts[1]] if len(parts) > 1 else (alias.name for alias in node.names)


def measure() -> tuple[Counter[str], dict[str, set[str]]]:
    """Lines of each package, and the packages that it imports."""
    lines: Counter[str] = Counter()
    imports: dict[str, set[str]] = defaultdict(set)
    known = {name for floor in floors() for name in floor}
    for package in known:
        for path in files_of(package):
            lines[package] += path.read_text().count("\n")
            imports[package] |= set(imported_by(path)) & known - {package}
    return lines, imports


def table() -> str:
    lines, imports = measure()
    total = sum(lines.values())
    rows = ["| package | what is in it | share | imports |", "|---|---|---|---|"]
    order = [name for floor in reversed(floors()) for name in floor]
    for name in order:
        used = ", ".join(f"`{each}`" for each in order if each in imports[name])
        rows.append(f"| `{name}` | {purpose_of(name)} | {lines[name] / total:.0%} | {used} |")
    return "\n".join(rows)


def picture() -> str:
    """The house as SVG: a row for each floor, boxes as wide as their share of the code allows."""
    lines, _ = measure()
    rows, total = floors(), sum(lines.values())
    # In whole percents, so that the picture changes when the house does, not with every line.
    percent = {name: round(100 * lines[name] / total) for name in lines}
    height = 2 * MARGIN + len(rows) * (ROW + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    largest = max(percent.values())
    for number, floor in enumerate(rows):
        y = MARGIN + number * (ROW + GAP)
        room = (WIDTH - 2 * MARGIN - GAP * (len(floor) - 1)) / len(floor)
        for i, name in enumerate(floor):
            x = MARGIN + i * (room + GAP)
            filled = room * (percent[name] / largest)
            parts += [
                f'<rect x="{x:.0f}" y="{y}" width="{room:.0f}" height="{ROW}" rx="4" '
                'fill="#f3f5f9" stroke="#8a94a6"/>',
                f'<rect x="{x:.0f}" y="{y}" width="{filled:.0f}" height="{ROW}" rx="4" '
                'fill="#b9cdf0"/>',
                f'<text x="{x + 10:.0f}" y="{y + 27}" font-weight="bold">{escape(name)}</text>',
                f'<text x="{x + room - 10:.0f}" y="{y + 27}" text-anchor="end" '
                f'fill="#4a5568">{percent[name]}%</text>',
            ]
    return "\n".join([*parts, "</svg>", ""])


def page() -> str:
    head, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if something is old")
    wanted = {PAGE: page(), PICTURE: picture()}
    if parser.parse_args().check:
        old = [path.name for path, text in wanted.items() if path.read_text() != text]
        if old:
            print(f"{', '.join(old)}: not as the code is; run 'make architecture'", file=sys.stderr)
        return int(bool(old))
    for path, text in wanted.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
