"""What the pages on recipes and training show is run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fewbit.quant import Recipe, recipe_of

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", ["recipes.md", "qat.md"])
def test_python(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    found = blocks(page, "python")
    assert found
    for block in found:
        exec(block, names)
    if page == "qat.md":
        assert str(names["recipe"]) == "fp,0=w8a8,2=w2a4"
        assert str(recipe_of(names["qat"])) == "fp,0=w4a8-static,2=w4a8-static"  # pyright: ignore[reportArgumentType]


def test_the_file_is_a_recipe(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(blocks("recipes.md", "toml")[0])
    recipe = Recipe.of(path)
    assert str(recipe.layer("layers.0.attn.q")) == "w6a8"
    again = tmp_path / "again.toml"
    recipe.save(again)
    assert again.read_text() == path.read_text()
