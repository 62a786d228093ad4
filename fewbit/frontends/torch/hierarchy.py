"""The module hierarchy of a traced graph: which nodes each module's forward ran.

Every node carries the stack of modules in which it ran. Walking the nodes in order and comparing
stacks gives a tree of frames: a module that is called twice gives two frames, the second named
`name$1`. What flows between frames is found from the uses.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from torch.fx import Graph, Node

ROOT = "model"


@dataclass
class Frame:
    """One call of a module: its nodes and inner calls, in order."""

    path: str
    name: str
    items: list[Node | Frame] = field(default_factory=list["Node | Frame"])

    def nodes(self) -> Iterator[Node]:
        """All nodes, inner calls' included."""
        for item in self.items:
            if isinstance(item, Frame):
                yield from item.nodes()
            else:
                yield item

    def live_ins(self) -> list[Node]:
        """Values from outside, in the order of their first use."""
        inside = set(self.nodes())
        used = {arg: None for node in self.nodes() for arg in node.all_input_nodes}
        return [node for node in used if node not in inside and node.op != "get_attr"]

    def live_outs(self) -> list[Node]:
        """Values that are used outside, in the order of their definition."""
        inside = set(self.nodes())
        return [
            node
            for node in self.nodes()
            if node.op != "get_attr" and any(user not in inside for user in node.users)
        ]


def build_frames(graph: Graph) -> Frame:
    root = Frame("", ROOT)
    stack: list[tuple[str, Frame]] = [("", root)]
    seen: Counter[str] = Counter()
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.target is operator.getitem and isinstance(node.args[0], Node):
            home = _frame_of(root, node.args[0])
            if home is not None:
                home.items.append(node)
                continue
        path = module_stack(node)
        depth = 0
        while depth < min(len(path), len(stack) - 1) and stack[depth + 1][0] == path[depth][0]:
            depth += 1
        del stack[depth + 1 :]
        for key, module in path[depth:]:
            count = seen[module]
            seen[module] += 1
            name = f"{ROOT}.{module}" + (f"${count}" if count else "")
            frame = Frame(module, name)
            stack[-1][1].items.append(frame)
            stack.append((key, frame))
        stack[-1][1].items.append(node)
    _dissolve_single_ops(root)
    return root


def _dissolve_single_ops(frame: Frame) -> None:
    """A module that is one op is that op; it needs no subgraph."""
    items: list[Node | Frame] = []
    for item in frame.items:
        if isinstance(item, Node):
            items.append(item)
            continue
        _dissolve_single_ops(item)
        ops = [i for i in item.items if isinstance(i, Frame) or i.target is not operator.getitem]
        items += item.items if len(ops) == 1 and isinstance(ops[0], Node) else [item]
    frame.items = items


def rename_modules(graph: Graph, first_names: Mapping[str, str]) -> None:
    """Call every module by the first of its names, so that a shared one has a single name."""
    for node in graph.nodes:
        stack = node.meta.get("nn_module_stack")
        if stack:
            renamed = {k: (first_names.get(v[0], v[0]), *v[1:]) for k, v in stack.items()}
            node.meta["nn_module_stack"] = renamed


def module_stack(node: Node) -> list[tuple[str, str]]:
    """Key and path of the modules around a node, from the outside in, without the root."""
    stack: Mapping[str, Sequence[str]] = node.meta.get("nn_module_stack") or {}
    entries = [(key, value[0]) for key, value in stack.items()]
    return [(k, path) for k, path in entries if path and not path.startswith("_empty_nn_module")]


def layer_of(node: Node) -> str:
    """The path of the innermost module around a node."""
    stack = module_stack(node)
    return stack[-1][1] if stack else ""


def _frame_of(frame: Frame, node: Node) -> Frame | None:
    """A getitem belongs to where its tuple was made."""
    for item in reversed(frame.items):
        if item is node:
            return frame
        if isinstance(item, Frame) and (inner := _frame_of(item, node)) is not None:
            return inner
    return None
