"""Archives of `torch.export.save`: ordinary ones load, and crafted ones run nothing."""

from __future__ import annotations

import io
import json
import pickle
import sys
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch._export.serde import schema

from fewbit.errors import Error
from fewbit.frontends.locate import find_module, import_named
from fewbit.frontends.torch.archive_graph import RULES

Parts = dict[str, bytes]
MODEL, INPUTS = "models/model.json", "data/sample_inputs/model.pt"
WEIGHTS, CONSTANTS = (
    "data/weights/model_weights_config.json",
    "data/constants/model_constants_config.json",
)


class Bomb:
    """An object whose unpickling makes a file."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.made,)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("offset", torch.arange(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x) + self.offset) * x.shape[0] + torch.tensor([1.0, 2, 3])


def save(path: Path, model: nn.Module | None = None) -> Path:
    rows = torch.export.Dim("rows", min=2, max=64)
    example = (torch.randn(4, 4),)
    exported = torch.export.export(model or Net().eval(), example, dynamic_shapes=({0: rows},))
    torch.export.save(exported, path)
    return path


def parts_of(path: Path) -> Parts:
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def write(path: Path, parts: Parts, root: str = "net/") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(root + name, data)
    return path


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def test_an_ordinary_archive_computes_what_the_model_does(tmp_path: Path) -> None:
    model = Net().eval()
    path = save(tmp_path / "net.pt2", model)
    x = torch.randn(6, 4)
    (result,) = import_named(str(path)).run(x.numpy())
    np.testing.assert_allclose(result, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    module = find_module(str(path))
    assert module is not None
    assert [tuple(given.shape) for given in module.inputs] == [(4, 4)]
    torch.testing.assert_close(module.model(x), model(x))


def test_weights_that_share_memory_and_odd_names_load(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleDict({"a-b c": nn.Linear(4, 4, bias=False)})
            self.other = nn.Linear(4, 4, bias=False)
            self.other.weight = self.layers["a-b c"].weight  # pyright: ignore
            self.empty = nn.Buffer(torch.zeros(0, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.other(self.layers["a-b c"](x)) + self.empty.sum()

    model = Tied().eval()
    path = save(tmp_path / "net.pt2", model)
    x = torch.randn(6, 4)
    (result,) = import_named(str(path)).run(x.numpy())
    np.testing.assert_allclose(result, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def edit_json(part: str) -> Callable[[Callable[[Any, Path], None]], Callable[[Parts, Path], None]]:
    def decorate(change: Callable[[Any, Path], None]) -> Callable[[Parts, Path], None]:
        def craft(parts: Parts, made: Path) -> None:
            tree = json.loads(parts[part])
            change(tree, made)
            parts[part] = json.dumps(tree).encode()

        return craft

    return decorate


def python_that_touches(made: Path) -> str:
    return f"__import__('pathlib').Path('{made}').touch()"


def craft_inputs(parts: Parts, made: Path) -> None:
    parts[INPUTS] = saved(((Bomb(made),), {}))


def craft_legacy_inputs(parts: Parts, made: Path) -> None:
    parts[INPUTS] = pickle.dumps(((Bomb(made),), {}), protocol=2)


def craft_weight(parts: Parts, made: Path) -> None:
    config = json.loads(parts[WEIGHTS])
    name = next(iter(config["config"]))
    config["config"][name]["use_pickle"] = True
    parts[WEIGHTS] = json.dumps(config).encode()
    parts[f"data/weights/{config['config'][name]['path_name']}"] = saved(Bomb(made))


def craft_opaque_constant(parts: Parts, made: Path) -> None:
    config = json.loads(parts[CONSTANTS])
    config["config"]["more"] = {
        "path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None
    }  # fmt: skip
    parts[CONSTANTS] = json.dumps(config).encode()
    parts["data/constants/opaque_obj_0"] = pickle.dumps(Bomb(made))


def craft_custom_object(parts: Parts, made: Path) -> None:
    craft_opaque_constant(parts, made)
    parts[CONSTANTS] = parts[CONSTANTS].replace(b"opaque_obj_0", b"custom_obj_0")
    parts["data/constants/custom_obj_0"] = parts["data/constants/opaque_obj_0"]


def craft_whole_weights(parts: Parts, made: Path) -> None:
    parts["data/weights/model.pt"] = saved({"layer.weight": Bomb(made)})


def craft_whole_constants(parts: Parts, made: Path) -> None:
    parts["data/constants/model.pt"] = saved({"layer.weight": Bomb(made)})


@edit_json(MODEL)
def craft_size(tree: Any, made: Path) -> None:
    values = tree["graph_module"]["graph"]["tensor_values"]["x"]["sizes"]
    values[0]["as_expr"]["expr_str"] = python_that_touches(made)


@edit_json(MODEL)
def craft_hint(tree: Any, made: Path) -> None:
    values = tree["graph_module"]["graph"]["tensor_values"]["x"]["sizes"]
    values[0]["as_expr"]["hint"] = {"as_int": python_that_touches(made)}


@edit_json(MODEL)
def craft_guard(tree: Any, made: Path) -> None:
    tree["guards_code"] = [python_that_touches(made)]


@edit_json(MODEL)
def craft_target(tree: Any, made: Path) -> None:
    nodes = tree["graph_module"]["graph"]["nodes"]
    command = {"name": "", "arg": {"as_string": f"touch {made}"}, "kind": 1}
    nodes.insert(0, {
        "target": "torch.os.system", "inputs": [command], "outputs": [], "metadata": {}, "name": "more"
    })  # fmt: skip


@edit_json(MODEL)
def craft_file_op(tree: Any, made: Path) -> None:
    nodes = tree["graph_module"]["graph"]["nodes"]
    inputs = [
        {"name": "item", "arg": {"as_int": 1}, "kind": 1},
        {"name": "filename", "arg": {"as_string": str(made)}, "kind": 1},
    ]
    nodes.insert(0, {
        "target": "torch.ops.aten.save.default", "inputs": inputs, "outputs": [], "metadata": {}, "name": "more"
    })  # fmt: skip


@edit_json(MODEL)
def craft_name(tree: Any, made: Path) -> None:
    graph = tree["graph_module"]["graph"]
    (last,) = graph["outputs"]
    old, new = last["as_tensor"]["name"], f"a = 1\n{python_that_touches(made)}\n\ndef f():\n    b"
    text = json.dumps(tree).replace(json.dumps(old), json.dumps(new))
    tree.update(json.loads(text))


@edit_json(MODEL)
def craft_weight_name(tree: Any, made: Path) -> None:
    text = json.dumps(tree)
    new = f'x" + str({python_that_touches(made)}) + "'
    tree.update(json.loads(text.replace('"offset"', json.dumps(new))))


@edit_json(MODEL)
def craft_structure(tree: Any, made: Path) -> None:
    """An import of a module that lies in the folder where fewbit runs."""
    (made.parent / "hostile_module.py").write_text(python_that_touches(made))
    signature = tree["graph_module"]["module_call_graph"][0]["signature"]
    protocol, spec = json.loads(signature["in_spec"])
    spec["children_spec"][1]["context"] = json.dumps(
        [{"__enum__": True, "fqn": "hostile_module:A", "name": "B"}]
    )
    signature["in_spec"] = json.dumps([protocol, spec])


def craft_key(parts: Parts, made: Path) -> None:
    tree = json.loads(parts[MODEL])
    signature = tree["graph_module"]["module_call_graph"][0]["signature"]
    protocol, spec = json.loads(signature["in_spec"])
    spec["children_spec"][0] = {"type": "builtins.tuple", "context": "null", "children_spec": []}
    leaf: Any = {"type": None, "context": None, "children_spec": []}
    key = f"x': {python_that_touches(made)}, 'y"
    spec["children_spec"][1] = {
        "type": "builtins.dict",
        "context": json.dumps([key]),
        "children_spec": [leaf],
    }
    signature["in_spec"] = json.dumps([protocol, spec])
    parts[MODEL] = json.dumps(tree).encode()


CRAFTED = [
    craft_inputs, craft_legacy_inputs, craft_weight, craft_opaque_constant, craft_custom_object,
    craft_whole_weights, craft_whole_constants, craft_size, craft_hint, craft_target, craft_file_op,
    craft_name, craft_weight_name, craft_structure, craft_key,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CRAFTED)))
def test_a_crafted_archive_is_refused_and_runs_nothing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, path = tmp_path / "made", save(tmp_path / "net.pt2")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    parts = parts_of(path)
    CRAFTED[number](parts, made)
    with pytest.raises(Error) as caught:
        import_named(str(write(path, parts)))
    assert not made.exists()
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_conditions_on_inputs_are_not_executed(tmp_path: Path) -> None:
    made, path = tmp_path / "made", save(tmp_path / "net.pt2")
    parts = parts_of(path)
    craft_guard(parts, made)
    import_named(str(write(path, parts)))
    module = find_module(str(path))
    assert module is not None
    assert not made.exists()


def test_a_library_in_an_archive_is_not_loaded(tmp_path: Path) -> None:
    path = save(tmp_path / "net.pt2")
    parts = parts_of(path)
    parts["data/aotinductor/model/model.so"] = b"no library"
    import_named(str(write(path, parts)))


def test_of_two_parts_of_one_name_the_one_that_is_checked_is_used(tmp_path: Path) -> None:
    made, path = tmp_path / "made", save(tmp_path / "net.pt2")
    for first in (True, False):
        parts = parts_of(path)
        crafted = dict(parts)
        craft_inputs(crafted, made)
        craft_size(crafted, made)
        both = tmp_path / f"both-{first}.pt2"
        with zipfile.ZipFile(both, "w") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for some in (crafted, parts) if first else (parts, crafted):
                for name, data in some.items():
                    archive.writestr(f"net/{name}", data)
        with suppress(Error):
            import_named(str(both))
        assert not made.exists()


def test_a_program_in_a_nested_archive_is_not_loaded(tmp_path: Path) -> None:
    made, path = tmp_path / "made", save(tmp_path / "net.pt2")
    parts = parts_of(path)
    craft_inputs(parts, made)
    inner = write(tmp_path / "inner.pt2", parts).read_bytes()
    with pytest.raises(Error):
        import_named(str(write(path, {"inner.pt2": inner})))
    assert not made.exists()


def test_the_old_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    made, path = tmp_path / "made", save(tmp_path / "net.pt2")
    parts = parts_of(path)
    old = {
        "version": b"8.8",
        "serialized_exported_program.json": parts[MODEL],
        "serialized_state_dict.pt": saved(Bomb(made)),
        "serialized_constants.pt": saved(Bomb(made)),
        "serialized_example_inputs.pt": saved(Bomb(made)),
    }
    with pytest.raises(Error, match=r"torch 2\.7 and older"):
        import_named(str(write(path, old, root="")))
    assert not made.exists()


S0 = "Symbol('s0', positive=True, integer=True)"


@pytest.mark.parametrize(
    "expression",
    [
        S0, f"Mul(Integer(-2), {S0})", f"Max(Integer(1), FloorDiv({S0}, Integer(4)))", "true",
        f"floor(Mul(Rational(1, 2), {S0}))", f"Pow({S0}, Integer(2))", f"LessThan({S0}, Integer(5))",
        f"Mul(Float('1.5', precision=53), {S0})",
    ],
)  # fmt: skip
def test_expressions_of_sizes_are_arithmetic(expression: str) -> None:
    assert RULES[schema.SymExpr]["expr_str"](expression)


@pytest.mark.parametrize(
    "expression",
    [
        "eval(s0)", f"{S0}.func", "[s0]", "lambda: 0", "'a'", "Add('__import__(1)')", "Max(*s0)",
        "Max(a=s0)", "s0 if s1 else 2", "Max(s0)(1)", "Pow(Integer(9), Pow(Integer(9), Integer(9)))",
        f"{S0}\n", f"{S0} # a", "(s0", "f'{s0}'", "s0[0]", 3, "Symbol('a b')", "Symbol(Symbol)",
        "Float('exec()')", "Pow(Integer(9), Integer(99999999))",
    ],
)  # fmt: skip
def test_anything_else_is_no_expression_of_sizes(expression: Any) -> None:
    assert not RULES[schema.SymExpr]["expr_str"](expression)
