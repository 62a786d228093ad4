"""Recipes: what can be written, that it is read back the same, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import Error, UsageError, WidthError
from fewbit.numerics import WIDTHS, Width
from fewbit.quant.attention_scheme import AttentionScheme
from fewbit.quant.cache_scheme import CacheScheme
from fewbit.quant.calibration import Calibration
from fewbit.quant.recipe import Recipe
from fewbit.quant.scheme import LayerScheme


@st.composite
def schemes(draw: st.DrawFn) -> LayerScheme:
    """Every valid scheme: options only where they mean something."""
    width = st.sampled_from([None, *WIDTHS])
    fields: dict[str, Any] = {"weight": draw(width), "act": draw(width)}
    few_bit = fields["weight"] is not None
    if few_bit:
        fields["granularity"] = draw(st.sampled_from(["tensor", "channel", "group"]))
        fitted = ["mse", "signed-max"] if fields["weight"].bits > 2 else []
        is_shiftable = fields["granularity"] == "group" and fields["weight"].precision >= 2
        offset = ["offset"] if is_shiftable else []
        fields["mode"] = draw(st.sampled_from(["max", "mean", *fitted, *offset]))
        if fields["granularity"] == "group":
            fields["scales"] = draw(st.sampled_from(["f32", "f16"]))
        fields["hadamard"] = draw(st.sampled_from([None, 2, 32, 64, 128]))
    if fields.get("granularity") == "group":
        fields["group"] = draw(st.integers(1, 4096))
    fields["static"] = fields["act"] is not None and draw(st.booleans())
    in_groups = "group" in fields or not few_bit
    if fields["act"] is not None and not fields["static"] and in_groups:
        fields["blocks"] = draw(st.booleans())
    affected = [fields["weight"]] * few_bit + [fields["act"]] * fields["static"]
    plain = (fields.get("mode", "max"), fields.get("scales", "f32")) == ("max", "f32")
    if affected and plain and all(w.precision >= 2 for w in affected):
        fields["symmetric"] = draw(st.booleans())
    return LayerScheme(**fields)


plain_names = st.from_regex(r"[a-z_]\w{0,6}(\.[a-z0-9_]\w{0,4}){0,3}", fullmatch=True)
odd_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: not text.startswith("re:")
)
patterns = st.sampled_from([r"re:conv.*", r"re:layers\.\d+\.fc[12]", "re:a{1,2}", "re:(?=x).*"])
attentions = st.sampled_from([None, *map(AttentionScheme.of, ("q8k8", "q4k8v8s8", "v8", "s1.58"))])
caches = st.sampled_from([None, *map(CacheScheme.of, ("f32", "f16", "q8", "q4", "q4h64"))])
text_recipes = st.builds(
    Recipe,
    default=schemes(),
    layers=st.dictionaries(plain_names, schemes(), max_size=4),
    cache=caches,
    attention=attentions,
)
named_recipes = st.builds(
    Recipe,
    default=schemes(),
    layers=st.dictionaries(plain_names | odd_names | patterns, schemes(), max_size=4),
    cache=caches,
    attention=attentions,
)
ordered_recipes = st.builds(
    Recipe,
    order=st.lists(schemes(), max_size=5).map(tuple),
    cache=caches,
    attention=attentions,
)
recipes = named_recipes | ordered_recipes


@given(schemes())
def test_scheme_text_is_read_back(scheme: LayerScheme) -> None:
    assert LayerScheme.of(str(scheme)) == scheme
    assert LayerScheme.of(str(scheme).upper()) == scheme


@given(schemes(), schemes())
def test_scheme_texts_are_equal_only_for_equal_schemes(a: LayerScheme, b: LayerScheme) -> None:
    assert (str(a) == str(b)) == (a == b)


@given(recipes)
def test_text_is_read_back(recipe: Recipe) -> None:
    again = Recipe.of(str(recipe))
    assert again == recipe
    assert hash(again) == hash(recipe)
    assert (again.default, again.layers, again.order) == (
        recipe.default,
        recipe.layers,
        recipe.order,
    )


@given(text_recipes)
def test_ordinary_names_need_no_json(recipe: Recipe) -> None:
    assert not str(recipe).startswith("{")


@given(recipes)
def test_dict_and_json_are_read_back(recipe: Recipe) -> None:
    assert Recipe.of(recipe.model_dump()) == recipe
    assert Recipe.of(json.loads(recipe.model_dump_json())) == recipe
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe


@pytest.mark.parametrize("suffix", [".json", ".toml"])
@given(recipe=recipes)
def test_file_is_read_back(
    suffix: str, recipe: Recipe, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("recipes") / f"recipe{suffix}"
    recipe.save(path)
    again = Recipe.of(path)
    assert again == recipe == Recipe.of(str(path))
    assert list(again.layers) == list(recipe.layers)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("w4a8", {"weight": Width(4), "act": Width(8)}),
        ("w4a8g128", {"granularity": "group", "group": 128}),
        ("w8a8h64", {"hadamard": 64, "granularity": "channel", "group": None}),
        ("w4a8g32h128-static", {"hadamard": 128, "group": 32, "static": True}),
        ("w1.58a8", {"weight": Width(1.58)}),
        ("w4afp", {"weight": Width(4), "act": None}),
        ("wfpa8", {"weight": None, "act": Width(8)}),
        ("wfpafp", {"weight": None, "act": None}),
        ("fp", {"weight": None, "act": None}),
        ("w4a8-tensor-mean", {"granularity": "tensor", "mode": "mean"}),
        ("w4a8-mse", {"mode": "mse"}),
        ("w4a8g32-signed", {"mode": "signed-max", "group": 32}),
        ("w4a8g32-offset", {"mode": "offset", "group": 32, "symmetric": True}),
        ("w4a8g32-f16-mse", {"mode": "mse", "scales": "f16"}),
        ("w4a8g32-blocks", {"blocks": True, "group": 32, "act_group": 32}),
        ("wfpa8-blocks", {"blocks": True, "act_group": None}),
        ("w4a8-asym-static", {"static": True, "symmetric": False}),
    ],
)
def test_grammar(text: str, expected: dict[str, Any]) -> None:
    scheme = LayerScheme.of(text)
    assert {name: getattr(scheme, name) for name in expected} == expected


def test_canonical_text() -> None:
    assert str(LayerScheme.of("W4A8-static-mean-tensor")) == "w4a8-tensor-mean-static"
    assert str(LayerScheme.of("wfpafp")) == "fp"
    assert str(LayerScheme.of("W4A8G32H64-MEAN")) == "w4a8g32h64-mean"
    assert str(LayerScheme.of({"weight": 8, "act": 8, "hadamard": 32})) == "w8a8h32"
    assert str(Recipe.of(" w8a8 , fc1 = w4a8 , re:(?=c).* = w6a8 ")) == (
        "w8a8,fc1=w4a8,re:(?=c).*=w6a8"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("w8a8h48", "rotation of blocks of 48"),
        ("w8a8h1", "rotation of blocks of 1"),
        ("w8a8h0", "rotation of blocks of 0"),
        ("wfpa8h64", "rotation of a weight that stays float"),
        ("w8a8h64g32", "not a scheme"),
        ("w8a8h", "not a scheme"),
        ("w2a8-mse", "2 bits have no mode 'mse'"),
        ("w1.58a8-signed", "1.58 bits have no mode 'signed-max'"),
        ("w4a8-asym-mse", "asymmetric weight has no mode 'mse'"),
        ("w4a8-mse-mean", "says 'mode' twice"),
        ("wfpa8-signed", "weight that stays float"),
        ("w4a8-f16", "scales of f16 of a weight without groups"),
        ("w4a8g32-asym-f16", "scales of f16 beside zero points"),
        ("wfpa8-f16", "weight that stays float|without groups"),
        ("w4a8-blocks", "blocks beside a weight without groups"),
        ("w4afpg32-blocks", "blocks of activations that stay float"),
        ("w4a8g32-blocks-static", "static scales for blocks"),
        ("w4a8-offset", "offsets of a weight without groups"),
        ("w4a8g32-asym-offset", "asymmetric weight has no mode 'offset'"),
    ],
)
def test_schemes_that_there_are_not(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        LayerScheme.of(text)


def test_one_bit_and_ternary_never_collide() -> None:
    ways = [
        (Recipe.of("w1a1"), Recipe.of("w1.58a1.58")),
        (Recipe.of([[1], [8]]), Recipe.of([[1.58], [8]])),
        (Recipe.of({"layers": {"a": "w1a8"}}), Recipe.of({"layers": {"a": "w1.58a8"}})),
    ]
    for one, ternary in ways:
        assert one != ternary
        assert hash(one) != hash(ternary)
        assert str(one) != str(ternary)
        assert len({one: 0, ternary: 1}) == 2
    assert Recipe.of([[1.5], [8]]) == Recipe.of([[1.58], [8]])


def test_order_of_patterns_is_part_of_a_recipe() -> None:
    first = Recipe.of("fp,re:a.*=w4a8,re:.*b=w2a8")
    second = Recipe.of("fp,re:.*b=w2a8,re:a.*=w4a8")
    assert first != second
    assert str(first.layer("ab")) == "w4a8"
    assert str(second.layer("ab")) == "w2a8"


def test_the_nearest_name_wins() -> None:
    recipe = Recipe.of("w8a8,re:.*fc.*=w2a8,blocks.1=w6a8,blocks.1.fc=w4a8")
    resolved = recipe.resolve(["blocks.1.fc", "blocks.1.conv", "blocks.10.conv", "blocks.10.fc"])
    assert [str(scheme) for scheme in resolved.values()] == ["w4a8", "w6a8", "w8a8", "w2a8"]


def test_a_name_selects_what_is_below_it() -> None:
    resolved = Recipe.of("fp,re:blocks\\.[01]=w4a8").resolve(["blocks.0.fc", "blocks.2.fc"])
    assert {name: str(scheme) for name, scheme in resolved.items()} == {
        "blocks.0.fc": "w4a8",
        "blocks.2.fc": "fp",
    }


def test_mico_lists_follow_the_order_of_layers() -> None:
    recipe = Recipe.of([[8, 6, 6, 4, 4], [8, 8, 8, 8, 8]])
    names = ["conv1", "conv2", "fc1", "fc2", "fc3"]
    assert [str(s) for s in recipe.resolve(names).values()] == [
        "w8a8",
        "w6a8",
        "w6a8",
        "w4a8",
        "w4a8",
    ]
    assert Recipe.of("[[8, 6], [8, 8]]") == Recipe.in_order([8, 6], [8, 8])
    per_tensor = Recipe.in_order([8, "fp"], [8, 8], granularity="tensor")
    assert [str(s) for s in per_tensor.resolve(["a", "b"]).values()] == ["w8a8-tensor", "wfpa8"]


def test_mico_lists_of_a_wrong_length() -> None:
    with pytest.raises(UsageError, match="3 layers, the model has 2") as caught:
        Recipe.of([[8, 8, 8], [8, 8, 8]]).resolve(["fc1", "fc2"])
    assert "fc1, fc2" in str(caught.value.hint)
    with pytest.raises(UsageError, match="3 widths of weights with 2"):
        Recipe.of([[8, 8, 8], [8, 8]])
    with pytest.raises(UsageError, match="knows no names"):
        Recipe.of([[8], [8]]).layer("fc1")


@pytest.mark.parametrize("pattern", ["fc3", "re:conv[0-9]"])
def test_a_pattern_that_matches_nothing(pattern: str) -> None:
    with pytest.raises(UsageError, match="matches no layer") as caught:
        Recipe.of(f"w8a8,{pattern}=w4a8").resolve(["fc1", "fc2", "head.conv"])
    assert "fc1" in str(caught.value.hint) or "head.conv" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "scheme"), [("int8", "w8a8"), ("INT4", "w4a8"), ("fp32", "fp"), ("ternary", "w1.58a8")]
)
def test_names_of_other_tools_get_the_scheme_that_is_meant(name: str, scheme: str) -> None:
    with pytest.raises(UsageError, match="is not a scheme") as caught:
        Recipe.of(name)
    assert caught.value.hint == f"write '{scheme}'"
    Recipe.of(scheme)


def test_weights_are_quantized_as_the_scheme_says() -> None:
    w = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    shapes = {"w4a8": (3,), "w4a8-tensor": (), "w4a8g4": (3, 2)}
    for text, shape in shapes.items():
        assert LayerScheme.of(text).quantize_weight(w).scale.shape == shape
    assert LayerScheme.of("w4a8-asym").quantize_weight(w).zero_point is not None
    with pytest.raises(UsageError, match="leaves the weight"):
        LayerScheme.of("wfpa8").quantize_weight(w)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("", "is not a scheme"),
        ("w4", "is not a scheme"),
        ("w4a8x", "is not a scheme"),
        ("w4a8-", "no option '-'"),
        ("w4a8-statik", "no option '-statik'"),
        ("w4a8-mean-mean", "twice"),
        ("w4a8g8-tensor", "groups and for one scale"),
        ("w4a8g0", "group of 0"),
        ("w4a8g" + "9" * 5000, "is not a scheme"),
        ("wfpa8g32", "weight that stays float"),
        ("wfpa8-mean", "weight that stays float"),
        ("w4afp-static", "activations that stay float"),
        ("wfpa8-asym", "nothing here can be asymmetric"),
        ("w4a8-mean-asym", "no mode 'mean'"),
        ("w4a8,fc1", "not 'name=scheme'"),
        ("w4a8,fc1=w4a8,fc1=w2a8", "twice"),
        ("w4a8,re:(=w4a8", "not a regular expression"),
        ("w4a8,=w4a8", "empty name"),
        ("{", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"default": "w4a8", "default": "w2a8"}', "given twice"),
        ([8, 8], "a list is not a recipe"),
        ([[8], [8], [8]], "a list is not a recipe"),
        (5, "int is not a recipe"),
        ({"version": 2}, "version 2"),
        ({"version": True}, "version True"),
        ({"defaults": "w4a8"}, "no field 'defaults'"),
        ({"default": 4}, "4 is not a scheme"),
        ({"default": {"weight": 4, "bits": 8}}, "no field 'bits'"),
        ({"default": {"weight": 4, "act": 8, "mode": "median"}}, "'mode'"),
        ({"default": {"weight": 4, "granularity": "group"}}, "with group None"),
        ({"default": {"weight": 4, "act": 8, "static": "yes"}}, "'static'"),
        ({"layers": ["fc1"]}, "maps names to schemes"),
        ({"order": "w4a8"}, "one scheme for every layer"),
        ({"default": "w4a8", "order": ["w4a8"]}, "no default and no names"),
    ],
)
def test_refused(value: Any, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        Recipe.of(value)


@pytest.mark.parametrize(
    "value", ["w9a8", "w0a8", "w16a8", "w4a1.5", "w1a8-asym", [[8, 9], [8, 8]], [[True], [8]]]
)
def test_widths_that_do_not_exist(value: Any) -> None:
    with pytest.raises(WidthError) as caught:
        Recipe.of(value)
    assert caught.value.hint


def test_close_matches_are_named() -> None:
    for value, meant in [
        ("w4a8-statik", "static"),
        ({"defalt": "w4a8"}, "default"),
        ({"default": {"wieght": 4}}, "weight"),
    ]:
        with pytest.raises(UsageError) as caught:
            Recipe.of(value)
        assert meant in str(caught.value.hint)


def test_schemes_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        LayerScheme.of("w4a8").static = True  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="frozen"):
        Recipe.of("w4a8").default = LayerScheme()  # pyright: ignore[reportAttributeAccessIssue]


TOML = """\
version = 1
default = "w8a8"

[layers]
fc1 = "w4a8"
"re:conv.*" = "w9a8"
"""


def test_errors_name_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(TOML)
    with pytest.raises(WidthError) as caught:
        Recipe.of(path)
    place = caught.value.place
    assert (place.file, place.line, place.layer) == (str(path), 6, "re:conv.*")

    path.write_text('default = "w8a8"\nlyers = 1\n')
    with pytest.raises(UsageError) as unknown:
        Recipe.of(path)
    assert unknown.value.place.line == 2
    assert "layers" in str(unknown.value.hint)

    path.write_text('default = "w8a8\n')
    with pytest.raises(UsageError, match="not TOML") as broken:
        Recipe.of(path)
    assert broken.value.place.line == 1

    path = tmp_path / "recipe.json"
    path.write_text('{\n  "default": "w8a8",\n  "layers": {\n    "a.b": "w3"\n  }\n}')
    with pytest.raises(UsageError) as scheme:
        Recipe.of(path)
    assert scheme.value.place.line == 4

    path.write_text('{\n  "default": }')
    with pytest.raises(UsageError, match="not JSON") as syntax:
        Recipe.of(path)
    assert syntax.value.place.line == 2


def test_dotted_names_in_toml_must_be_quoted(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text('[layers]\nfeatures.0 = "w4a8"\n')
    with pytest.raises(UsageError) as caught:
        Recipe.of(path)
    assert '"features.0"' in str(caught.value.hint)


def test_a_layer_may_be_a_table(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("[layers.fc1]\nweight = 1.58\nact = 8\ngroup = 32\n")
    assert str(Recipe.of(path).layer("fc1")) == "w1.58a8g32"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        Recipe.of(tmp_path / "missing.json")
    with pytest.raises(UsageError, match=r"ends in \.json or \.toml"):
        Recipe.of(tmp_path / "recipe.yaml")
    with pytest.raises(UsageError, match=r"ends in \.json or \.toml"):
        Recipe.of("w4a8").save(tmp_path / "recipe.yaml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        Recipe.of(tmp_path / "binary.toml")


@given(*[st.sampled_from([None, *WIDTHS])] * 3)
def test_attention_schemes_are_read_back(
    both: Width | None, value: Width | None, score: Width | None
) -> None:
    scheme = AttentionScheme(both, both, value, score)
    assert AttentionScheme.of(str(scheme)) == scheme


@pytest.mark.parametrize("text", ["", "q8", "k8v8", "k8q8", "w4a8"])
def test_attention_schemes_that_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        AttentionScheme.of(text)


def test_calibration_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    found = Calibration({"a.b": float(np.float32(0.1)), "c": 1e-7}, {"c": -3})
    found.save(path)
    assert Calibration.load(path) == found == Calibration.of(path)
    assert dict(found) == {"a.b": float(np.float32(0.1)), "c": 1e-7}
    assert Calibration.of({"a": 0.5})["a"] == 0.5


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 1}', '{"version": 1, "scales": {"a": "x"}}']
)
def test_calibrations_that_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        Calibration.load(path)
    assert caught.value.place.file == str(path)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_scales_are_positive_numbers(scale: float) -> None:
    with pytest.raises(Error, match="not a positive number"):
        Calibration({"a": scale})


def test_recipes_do_not_load_torch() -> None:
    code = (
        "import sys, fewbit.quant; from fewbit.quant import Recipe, Calibration; "
        "Recipe.of('w4a8'); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_narrow_weights_have_no_offsets() -> None:
    for text in ("w1a8g32-offset", "w1.58a8g32-offset"):
        with pytest.raises(WidthError, match="have no offset"):
            LayerScheme.of(text)


def test_attention_is_no_layer() -> None:
    recipe = Recipe.of("w8a8,attention=q8k8s4,head=fp")
    assert str(recipe.attention) == "q8k8s4"
    assert recipe.resolve(["attention.q", "head"])["attention.q"] == LayerScheme.of("w8a8")
    assert Recipe.of({"default": "w8a8", "attention": "q8k8s4", "layers": {"head": "fp"}}) == recipe
    # Layers below a module of that name have schemes of layers.
    layers = Recipe.of("w8a8,attention=w4a8")
    assert layers.attention is None
    assert layers.layer("attention.q") == LayerScheme.of("w4a8")
    with pytest.raises(UsageError, match="'attention' is a text"):
        Recipe.of({"default": "w8a8", "attention": 8})
    with pytest.raises(UsageError, match="not a scheme for attention"):
        Recipe.of({"default": "w8a8", "attention": "k8q8"})


def test_the_cache_is_no_layer() -> None:
    recipe = Recipe.of("w4a8g32,cache=q8h64,lm_head=w8a8")
    assert recipe.cache == CacheScheme("q8", 64)
    assert str(recipe) == "w4a8g32,lm_head=w8a8,cache=q8h64"
    assert recipe.resolve(["lm_head"]) == {"lm_head": LayerScheme.of("w8a8")}
    assert Recipe.of({"default": "w4a8", "cache": "q4"}) == Recipe.of("w4a8,cache=q4")
    assert Recipe.of("w4a8") != Recipe.of("w4a8,cache=q4")
    layer = Recipe.of("w4a8,cache=w8a8")
    assert layer.cache is None
    assert layer.layer("cache") == LayerScheme.of("w8a8")


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("w4a8,cache=q5", "'q5' is not a scheme"),
        ("w4a8,cache=q8,cache=q4", "'q4' is not a scheme"),
        ({"default": "w4a8", "cache": "q5"}, "not kept as 'q5'"),
        ({"default": "w4a8", "cache": 8}, "'cache' is a text"),
    ],
)
def test_caches_that_there_are_not(value: Any, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        Recipe.of(value)
