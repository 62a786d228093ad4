"""Parts and transfers of a placed program as tables and as JSON: what they are, what they took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fewbit.program.artifact import Manifest, Part, Transfer
from fewbit.targets.device_report import table
from fewbit.targets.view import Seen

if TYPE_CHECKING:
    from fewbit.runtime.placed import Count

SHOWN = 3
"""Modules of a part that are named."""


def summarize_parts(manifest: Manifest) -> Seen:
    """Return parts and transfers as the manifest has them."""
    parts = table(
        ("part", "target", "inputs", "outputs", "modules"),
        [
            (p.name, p.target, str(len(p.inputs)), str(len(p.outputs)), _modules(p))
            for p in manifest.parts
        ],
    )
    moved = table(
        ("transfer", "from", "to", "bytes"),
        [(t.value.name, t.source, t.target, _bytes(t)) for t in manifest.transfers],
    )
    plain = {
        "parts": [part.model_dump(mode="json") for part in manifest.parts],
        "transfers": [transfer.model_dump(mode="json") for transfer in manifest.transfers],
    }
    return Seen(plain, _join(manifest, parts, moved))


def stats_text(manifest: Manifest, parts: Sequence[Count], transfers: Sequence[Count]) -> str:
    """Return how long parts and transfers took, all calls together."""
    called = [
        (part.name, part.target, f"{each.count:,}", _milliseconds(each))
        for part, each in zip(manifest.parts, parts, strict=True)
    ]
    called.append(("all parts", "", "", _milliseconds(*parts)))
    moved = [
        (t.value.name, t.source, t.target, f"{n.count:,}", f"{n.bytes:,}", _milliseconds(n))
        for t, n in zip(manifest.transfers, transfers, strict=True)
    ]
    total = sum(each.bytes for each in transfers)
    count = sum(each.count for each in transfers)
    moved.append(("all transfers", "", "", f"{count:,}", f"{total:,}", _milliseconds(*transfers)))
    return _join(
        manifest,
        table(("part", "target", "calls", "ms"), called),
        table(("transfer", "from", "to", "count", "bytes", "ms"), moved),
    )


def plain_stats(
    manifest: Manifest, parts: Sequence[Count], transfers: Sequence[Count]
) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "parts": [
            {"part": part.name, "target": part.target, "calls": n.count, "seconds": n.seconds}
            for part, n in zip(manifest.parts, parts, strict=True)
        ],
        "transfers": [
            {
                "value": t.value.name,
                "from": t.source,
                "to": t.target,
                "count": n.count,
                "bytes": n.bytes,
                "seconds": n.seconds,
            }
            for t, n in zip(manifest.transfers, transfers, strict=True)
        ],
    }


def _join(manifest: Manifest, parts: str, transfers: str) -> str:
    nothing = "nothing is transferred: all is on one device"
    return f"{parts}\n\n{transfers if manifest.transfers else nothing}"


def _modules(part: Part) -> str:
    more = len(part.modules) - SHOWN
    return ", ".join(part.modules[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _bytes(transfer: Transfer) -> str:
    return transfer.formula if transfer.bytes is None else f"{transfer.bytes:,}"


def _milliseconds(*counts: Count) -> str:
    return f"{sum(each.seconds for each in counts) * 1e3:,.3f}"
