"""The entry under a name that no function of the C interface can have."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from fewbit.pipeline.entry import ENTRY, entry_of


@dataclass(frozen=True)
class RenameEntry(ModulePass):
    """Call the entry `program.entry`, or as the option says."""

    name = "rename-entry"

    to: str = ENTRY

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        entry_of(op).properties["sym_name"] = StringAttr(self.to)
