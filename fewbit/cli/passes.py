"""The list of passes that `fewbit-opt --list-passes` prints."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from xdsl.universe import Universe

from fewbit.pipeline.registry import GROUP, OwnPass, available_passes, load_pass, options_of


def describe_passes() -> str:
    """Return every pass with its options, in groups by where it comes from, fewbit's first."""
    available = available_passes()
    lines: list[str] = []
    for group in _ours_first("xdsl.universe"):
        universe: Universe = group.load()
        lines.append(f"passes of {group.name}:")
        for name in sorted(universe.all_passes):
            lines.extend(_describe_pass(name, load_pass(name, available[name])))
        lines.append("")
    for group in _ours_first(GROUP):
        lines.append(f"passes of {group.name} on upstream's MLIR, and conversions:")
        for name in sorted(group.load()):
            lines.extend(_describe_pass(name, load_pass(name, available[name])))
        lines.append("")
    lines += ["upstream's passes are written as mlir-opt takes them", ""]
    return "\n".join(lines)


def _ours_first(group: str) -> list[EntryPoint]:
    return sorted(entry_points(group=group), key=lambda e: (e.name != "fewbit", e.name))


def _describe_pass(name: str, kind: OwnPass) -> list[str]:
    summary = (kind.__dict__.get("__doc__") or "").strip().partition("\n")[0]
    # A dataclass without a docstring gets its signature as one.
    is_signature = summary.startswith(f"{kind.__name__}(")
    options = [f"      {option}" for option in options_of(kind)]
    return [f"  {name}" + (f"  {summary}" if summary and not is_signature else ""), *options]
