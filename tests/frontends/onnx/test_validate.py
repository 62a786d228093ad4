"""Files that are not what ONNX says are refused, by a message that names what is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewbit.errors import Error
from fewbit.frontends import import_model
from fewbit.frontends.onnx import import_onnx
from tests.frontends.onnx.graphs import floats, model, node, onnx

from onnx import TensorProto, helper  # isort: skip

ROOT = Path(__file__).parents[3]


def linear() -> Any:
    nodes = [node("MatMul", ["x", "fc.weight"], ["m"]), node("Relu", ["m"], ["y"])]
    return model(nodes, {"x": [2, 8]}, ["y"], {"fc.weight": floats(8, 4)})


def weight(made: Any) -> Any:
    return made.graph.initializer[0]


def size(made: Any) -> Any:
    return made.graph.input[0].type.tensor_type.shape.dim[0]


def set_dims(made: Any, *dims: int) -> None:
    del weight(made).dims[:]
    weight(made).dims.extend(dims)


def with_function(made: Any, *bodies: str) -> None:
    for name in bodies:
        called = bodies[(bodies.index(name) + 1) % len(bodies)]
        inner = helper.make_node(called, ["a"], ["b"], domain="own")
        made.functions.append(
            helper.make_function("own", name, ["a"], ["b"], [inner], made.opset_import)
        )


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "dims that ask for more": (lambda m: set_dims(m, 8, 5), r"'fc\.weight' is 8x5 of float.*160 bytes.*has 128"),
    "dims that ask for less": (lambda m: set_dims(m, 8), r"'fc\.weight' is 8 of float"),
    "negative dims": (lambda m: set_dims(m, -8, -4), "none can be negative"),
    "dims beyond memory": (lambda m: set_dims(m, 2**48), "which no memory holds"),
    "dims whose product overflows": (lambda m: set_dims(m, 2**31, 2**31, 4), "which no memory holds"),
    "no data": (lambda m: weight(m).ClearField("raw_data"), "has 0"),
    "a type that does not exist": (lambda m: setattr(weight(m), "data_type", 77), "type 77"),
    "no type": (lambda m: weight(m).ClearField("data_type"), "type 0"),
    "texts as weights": (lambda m: setattr(weight(m), "data_type", TensorProto.STRING), r"'fc\.weight'"),
    "an input of no type": (lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 77), "'x'.*type 77"),
    "an input beyond memory": (lambda m: setattr(size(m), "dim_value", 2**48), "the input 'x'"),
    "an input without a kind": (lambda m: m.graph.input[0].ClearField("type"), "'x'"),
    "a name that is defined twice": (lambda m: m.graph.node.append(m.graph.node[0]), "'m' is defined twice"),
    "a constant that is defined twice": (lambda m: m.graph.initializer.append(weight(m)), r"'fc\.weight' is defined twice"),
    "a cycle": (lambda m: m.graph.node[0].input.__setitem__(0, "y"), "reads 'y', which nothing before it defines"),
    "an output of nothing": (lambda m: setattr(m.graph.output[0], "name", "z"), "output 'z' is not defined"),
    "too few inputs": (lambda m: m.graph.node[0].input.pop(), "has 1 inputs, and MatMul has 2 to 2"),
    "too many inputs": (lambda m: m.graph.node[1].input.extend(["x", "x"]), "has 3 inputs"),
    "no op": (lambda m: m.graph.node[0].ClearField("op_type"), "names no op"),
    "an attribute of no kind": (lambda m: m.graph.node[1].attribute.add(name="axis"), "'axis'.*is of no kind"),
    "a function that calls itself": (lambda m: with_function(m, "f"), "'f' calls itself"),
    "functions that call each other": (lambda m: with_function(m, "f", "g"), "calls itself"),
    "an opset beyond numbers": (lambda m: m.opset_import.append(helper.make_opsetid("own", 2**40)), "opset 'own'"),
    "data elsewhere, without a folder": (lambda m: setattr(weight(m), "data_location", TensorProto.EXTERNAL), "in another file"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case: str) -> None:
    change, message = WRONG[case]
    network = linear()
    change(network)
    with pytest.raises(Error, match=message):
        import_onnx(network)


def attribute_of(made: Any, name: str) -> Any:
    return next(a for a in made.graph.node[0].attribute if a.name == name)


def test_attributes_are_those_of_the_op() -> None:
    network = model([node("Concat", ["x", "x"], ["y"], axis=0)], {"x": [2, 8]}, ["y"])
    attribute_of(network, "axis").CopyFrom(helper.make_attribute("axis", [0, 1]))
    with pytest.raises(Error, match="'axis' of the node 'Concat' is of the kind INTS"):
        import_onnx(network)
    del network.graph.node[0].attribute[:]
    with pytest.raises(Error, match="lacks the attribute 'axis'"):
        import_onnx(network)


@pytest.mark.parametrize("kind", ["UINT4", "INT4", "INT8", "UINT8", "INT64", "BOOL"])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "AveragePool", "Softmax", "Gelu", "LSTM"])
def test_integers_where_an_op_takes_floats(op: str, kind: str) -> None:
    """torch-mlir crashes on a convolution of them."""
    attributes: dict[str, Any] = {
        "AveragePool": {"kernel_shape": [2, 2]},
        "LSTM": {"hidden_size": 4},
    }
    more = attributes.get(op, {})
    count = {"Conv": 2, "ConvTranspose": 2, "LSTM": 3}.get(op, 1)
    network = model(
        [node(op, ["x"] * count, ["y"], **more)], {"x": [1, 1, 4, 4]}, ["y"],
        kinds={"x": getattr(TensorProto, kind)},
    )  # fmt: skip
    with pytest.raises(Error, match=f"{op} takes floats as '.*', and is given {kind.lower()}"):
        import_onnx(network)


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "FLOAT16", "INT8", "UINT8", "INT32", "INT64", "UINT32", "UINT64", "BOOL", "INT4", "UINT4", "BFLOAT16"])  # fmt: skip
@pytest.mark.parametrize("count", [0, 1, 5])
def test_constants_are_read_however_they_are_stored(kind: str, count: int) -> None:
    number = getattr(TensorProto, kind)
    values = np.arange(count) % 2
    listed = helper.make_tensor("k", number, [count], values.tolist())
    raw = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(listed), "k")
    for tensor in (listed, raw):
        network = model([node("Cast", ["k"], ["c"], to=1), node("Add", ["x", "c"], ["y"])], {"x": [count]}, ["y"])  # fmt: skip
        network.graph.initializer.append(tensor)
        x = np.zeros(count, np.float32)
        np.testing.assert_array_equal(import_onnx(network).run(x)[0], values)


def external(folder: Path, **info: str) -> Path:
    network = linear()
    (folder / "data").write_bytes(weight(network).raw_data)
    weight(network).ClearField("raw_data")
    weight(network).data_location = TensorProto.EXTERNAL
    for key, value in ({"location": "data"} | info).items():
        weight(network).external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(network.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"offset": "-8"}, "'-8' of its file, which is no place"),
        ({"offset": "abc"}, "'abc' of its file, which is no place"),
        ({"length": "-1"}, "'-1' of its file"),
        ({"length": "1e3"}, "'1e3' of its file"),
        ({"offset": "4"}, "is 8x4 of float, which is 128 bytes, and has 124"),
        ({"length": "8"}, "has 8"),
        ({"offset": "9" * 30}, "which has 128"),
        ({"length": "129"}, "which has 128"),
        ({"location": ""}, "leaves its folder"),
        ({"location": "../data"}, "leaves its folder"),
        ({"location": "/etc/passwd"}, "leaves its folder"),
        ({"location": "missing"}, "cannot be read"),
        ({"location": "a\0b"}, "leaves its folder"),
    ],
    ids=str,
)
def test_places_of_external_data(tmp_path: Path, info: dict[str, str], message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        import_model(external(tmp_path, **info))
    assert "fc.weight" in str(caught.value)


def test_external_data_of_every_kind_of_constant_stay_in_their_folder(tmp_path: Path) -> None:
    """Also those of attributes and of functions."""
    network = linear()
    inner = helper.make_tensor("inner", TensorProto.FLOAT, [1], [1.0])
    inner.ClearField("float_data")
    inner.data_location = TensorProto.EXTERNAL
    inner.external_data.add(key="location", value="/etc/passwd")
    body = [
        helper.make_node("Constant", [], ["k"], value=inner),
        helper.make_node("Add", ["a", "k"], ["b"]),
    ]
    network.functions.append(
        helper.make_function("own", "f", ["a"], ["b"], body, network.opset_import)
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(network.SerializeToString())
    with pytest.raises(Error, match="'inner' cannot be read"):
        import_model(path)


def test_texts_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(linear().SerializeToString().replace(b"fc.weight", b"fc.w\xff\xfeght"))
    with pytest.raises(Error, match="not in UTF-8"):
        import_model(path)


@pytest.mark.parametrize("size", range(0, 240, 19))
def test_a_file_that_was_cut(tmp_path: Path, size: int) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(linear().SerializeToString()[:size])
    with pytest.raises(Error):
        import_model(path)


def fuzz(how: str, first: int, count: int) -> None:
    command = [sys.executable, "-m", "tests.frontends.onnx.fuzz", how, str(first), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["bytes", "fields"])
@pytest.mark.parametrize("first", [0, 1000])
def test_changed_files_give_errors_of_ours(how: str, first: int) -> None:
    fuzz(how, first, 150)
