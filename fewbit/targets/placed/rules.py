"""Rules that say which module of a model runs on which target: `layers.0=gpu,re:.*attn=npu`.

They are those of the pass `place-devices`, whose devices are the names of targets here. The first
rule that selects a module decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from fewbit.errors import UsageError
from fewbit.passes.graph.names import REGEX_PREFIX

Rules: TypeAlias = str | Sequence[str] | Mapping[str, str]
"""A text with commas, a list of `pattern=target`, or targets by patterns."""
_SPECIAL = re.compile(r"[*+?()\[\]|^\\{}]")
"""What no module has in its name: a pattern with it is a regular expression."""
HINT = "write PATTERN=TARGET, with commas between rules: layers.0=iree-cpu,re:.*=cpu"


def parse_rules(given: Rules) -> tuple[str, ...]:
    """Return rules as `place-devices` takes them."""
    rules = tuple(map(_spell, _split(given)))
    if not rules:
        raise UsageError("no rule says what is placed where", hint=HINT)
    return rules


def _split(given: object) -> Iterable[str]:
    if isinstance(given, str):
        return _cut(given)
    if isinstance(given, Mapping):
        return [f"{k}={v}" for k, v in cast("Mapping[object, object]", given).items()]
    rules = list(cast("Iterable[object]", given)) if isinstance(given, Iterable) else [given]
    if not all(isinstance(rule, str) for rule in rules):
        raise UsageError("rules of a placement are texts", hint=HINT)
    return cast("list[str]", rules)


def _cut(text: str) -> list[str]:
    """Cut at commas; what has no `=` is the start of a pattern with a comma in it."""
    rules, begun = list[str](), ""
    for piece in text.split(","):
        begun += piece
        if "=" in piece:
            rules.append(begun)
            begun = ""
        else:
            begun += ","
    left = begun.rstrip(",").strip()
    return [*rules, left] if left else rules


def _spell(rule: str) -> str:
    pattern, equals, target = (each.strip() for each in rule.rpartition("="))
    if not equals or not pattern or not target:
        raise UsageError(f"'{rule.strip()}' is not a placement rule", hint=HINT)
    if not pattern.startswith(REGEX_PREFIX) and _SPECIAL.search(pattern):
        pattern = f"{REGEX_PREFIX}{pattern}"
    return f"{pattern}={target}"
