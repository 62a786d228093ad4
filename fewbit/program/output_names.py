"""What a model calls its results, as attributes of the entry function's results.

`{fewbit.name = "logits"}` is on every result that the model names: those of a dictionary, of a
dataclass, of an ONNX file. Results by position alone have none, and are `output0`, `output1`. In
signatures and in C a result that has the name of an input is `new_cache`, for `cache`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fewbit.dialects.graph import SubgraphOp

NAME = "fewbit.name"
NEW = "new_"


def name_outputs(entry: FuncOp | SubgraphOp, names: Sequence[str | None]) -> None:
    """Name the results of the entry, as far as `names` has one for each."""
    if not any(names):
        return
    count = len(entry.function_type.outputs)
    wanted = [*names, *[None] * count][:count]
    given = cast("ArrayAttr[DictionaryAttr] | None", entry.properties.get("res_attrs"))
    known = [dict(each.data) for each in given or [DictionaryAttr({})] * count]
    for attributes, name in zip(known, wanted, strict=True):
        if name:
            attributes[NAME] = StringAttr(_word(name))
    entry.properties["res_attrs"] = ArrayAttr([DictionaryAttr(each) for each in known])


def output_names(entry: Operation) -> dict[int, str]:
    """Return the names of results by their numbers."""
    given = cast("ArrayAttr[DictionaryAttr] | None", entry.properties.get("res_attrs"))
    return {
        i: cast(StringAttr, attributes.data[NAME]).data
        for i, attributes in enumerate(given or ())
        if NAME in attributes.data
    }


def _word(name: str) -> str:
    """Return a name that C and Python can spell."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return word if re.match(r"_*[A-Za-z]", word) else f"output{word.strip('_')}"
