"""Programs on several devices: compiled to one artifact, and run as if they were on one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.errors import ShapeError, UnsupportedError, UsageError
from fewbit.passes.graph.place_devices import PlaceDevices
from fewbit.pipeline.compilation import run_passes
from fewbit.program.artifact import open_folder
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.runtime.held_state import HeldState
from fewbit.runtime.placed import PlacedRunner
from fewbit.targets import registry
from fewbit.targets.compile import check_target, lower
from fewbit.targets.target import Target
from tests.targets.placed.networks import inputs, residual, total

V3 = "cpu:x86-64-v3"


@pytest.fixture(scope="module")
def program() -> Program:
    return residual()


@pytest.fixture(scope="module")
def artifact(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("placed") / "net"
    return fewbit.load(fewbit.compile(program, output=folder, place=f"b={V3}").folder)


def fail(*_: object) -> None:
    pytest.fail("it is too early for this")


def targets_of(artifact: Artifact) -> list[str]:
    return [part.target for part in artifact.manifest.parts]


def test_parts_are_called_by_turns(artifact: Artifact, program: Program) -> None:
    assert targets_of(artifact) == ["cpu", V3, "cpu"]
    for rows in (3, 1, 5):
        x = inputs(rows)
        assert np.array_equal(artifact(x), program.run(x)[0])
        assert np.array_equal(artifact(x=x, threads=2), program.run(x)[0])


def test_what_the_manifest_says_of_parts(artifact: Artifact) -> None:
    manifest = artifact.manifest
    assert [part.modules for part in manifest.parts] == [("a", "c"), ("b",), ()]
    assert [(t.value.name, t.source, t.target, t.formula) for t in manifest.transfers] == [
        ("a", "cpu", V3, "32 * x[0]"),
        ("b", V3, "cpu", "32 * x[0]"),
    ]
    assert {name.partition("/")[0] for name in manifest.files} == {"part0", "part1", "part2"}
    assert manifest.weight_bytes == sum(
        fewbit.load(artifact.folder / part.name).manifest.weight_bytes for part in manifest.parts
    )


def test_transfers_are_counted_and_timed(artifact: Artifact) -> None:
    runner = PlacedRunner(open_folder(artifact.folder))
    for rows in (2, 4):
        runner(inputs(rows))
    plain = runner.plain_stats()
    assert [(t["value"], t["count"], t["bytes"]) for t in plain["transfers"]] == [
        ("a", 2, 32 * 6),
        ("b", 2, 32 * 6),
    ]
    assert all(t["seconds"] > 0 for t in (*plain["transfers"], *plain["parts"]))
    assert [part["calls"] for part in plain["parts"]] == [2, 2, 2]
    text = runner.stats()
    assert "all transfers" in text
    assert f"{32 * 12:,}" in text


def test_a_prepared_call_reads_its_inputs_again(artifact: Artifact, program: Program) -> None:
    x = inputs()
    call = artifact.runner.prepare(x)
    assert np.array_equal(call()[0], program.run(x)[0])
    x *= -2
    assert np.array_equal(call()[0], program.run(x)[0])


def test_wrong_inputs_are_refused(artifact: Artifact) -> None:
    with pytest.raises(ShapeError, match="'x' is 3x7"):
        artifact(np.zeros((3, 7), np.float32))
    with pytest.raises(UsageError, match="takes 1 inputs"):
        artifact()


@pytest.mark.parametrize("device", ["iree-cpu", "gemmini", "vexii", "bitfusion"])
def test_each_target_can_have_a_part(program: Program, device: str) -> None:
    artifact = fewbit.compile(program, place={"b": device})
    expected, actual = program.run(inputs())[0], artifact(inputs())
    if device == "iree-cpu":
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
    else:
        assert np.array_equal(actual, expected)


def test_rules_decide_where_functions_run(program: Program) -> None:
    """The first rule that fits decides; one that fits everything is for functions, too."""
    artifact = fewbit.compile(program, place=f"re:[bc]={V3},.*=cpu")
    assert targets_of(artifact) == ["cpu", V3, "cpu"]
    artifact = fewbit.compile(program, place=f"a=cpu,.*={V3}")
    assert targets_of(artifact) == ["cpu", V3]
    assert np.array_equal(artifact(inputs()), program.run(inputs())[0])


def test_devices_that_the_text_names(program: Program, tmp_path: Path) -> None:
    """A program that was saved with its placement needs no rules; `-t` is for the rest."""
    placed = run_passes(program, f'{PlaceDevices.name}{{rules="b={V3}"}}')
    placed.save(tmp_path / "net")
    artifact = fewbit.compile(tmp_path / "net")
    assert targets_of(artifact) == ["cpu", V3, "cpu"]
    assert np.array_equal(artifact(inputs()), program.run(inputs())[0])


def test_names_of_one_device_are_one(program: Program) -> None:
    placed = run_passes(program, f'{PlaceDevices.name}{{rules="c=cpu:x86-64-v2"}}')
    artifact = fewbit.compile(placed, place="b=cpu:x86-64")
    assert targets_of(artifact) == ["cpu", "cpu:x86-64-v2", "cpu"]
    assert np.array_equal(artifact(inputs()), program.run(inputs())[0])


def test_a_device_of_the_text_that_is_no_target(program: Program) -> None:
    placed = run_passes(program, f'{PlaceDevices.name}{{rules="b=npu"}}')
    with pytest.raises(UsageError, match="there is no target 'npu', which @b names"):
        fewbit.compile(placed)
    assert targets_of(fewbit.compile(placed, place="b=cpu")) == ["cpu"]


def test_options_go_to_the_targets_that_have_them(program: Program) -> None:
    artifact = fewbit.compile(program, place="b=iree-cpu", kernels=True, weights="beside")
    parts = [fewbit.load(artifact.folder / part.name) for part in artifact.manifest.parts]
    assert ["weights" in part.manifest.options for part in parts] == [True, False, True]
    assert np.allclose(artifact(inputs()), program.run(inputs())[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"place": "bb=cpu"}, "'bb' matches no name"),
        ({"place": "b=cpux"}, "there is no target 'cpux'"),
        ({"place": "b=cpu:x86-64-v9"}, "there is no target 'cpu:x86-64-v9'"),
        ({"place": "b=gemmini:7x7"}, "7x7"),
        ({"place": "b=c p u"}, "is not a device name"),
        ({"place": "re:(=cpu"}, "is not a regular expression"),
        ({"place": "b=placed"}, "there is no target 'placed'"),
        ({"place": "b=gemmini", "kernels": True}, "has an option 'kernels'"),
        ({"place": "b=iree-cpu", "iree_flags": 3}, "cannot be 3"),
        ({"place": "b=iree-cpu", "passes": {"kernel": ["cse"]}}, "after 'kernel'"),
    ],
)
def test_bad_input_is_named(program: Program, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fewbit.compile(program, **given)


def test_a_target_is_refused_before_the_model_is_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no target 'cpux', which the placement names"):
        fewbit.compile(tmp_path / "missing.onnx", place="b=cpux")


def test_a_machine_without_the_device(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code for it can be made; to run it says which part is for what, and loads nothing."""
    cpu = registry.find_target("cpu")

    def find_obstacle(name: str) -> str | None:
        return "it is of 1970" if ":" in name else None

    monkeypatch.setattr(cpu, "find_obstacle", find_obstacle)
    monkeypatch.setattr(cpu, "load", fail)
    with pytest.raises(UnsupportedError, match=f"cannot run part1, which is for {V3}: it is of"):
        fewbit.load(artifact.folder)(inputs())
    check_target("cpu", place=f"b={V3}")
    assert "this machine compiles for cpu:x86-64-v3 and cannot run it" in capsys.readouterr().err


def test_a_part_that_its_target_refuses_is_named(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts that are not on the default target, which may refuse them, are compiled first."""

    def refuse(*_: Any) -> None:
        raise UnsupportedError("nothing of 8 bits")

    monkeypatch.setattr(registry.find_target("gemmini"), "compile", refuse)
    monkeypatch.setattr(registry.find_target("cpu"), "compile", fail)
    with pytest.raises(UnsupportedError, match="nothing of 8 bits, in part1 on gemmini"):
        fewbit.compile(program, place="b=gemmini")


def test_stages(program: Program, tmp_path: Path) -> None:
    text = lower(program, "place", place=f"b={V3}")
    assert f"graph.subgraph @b on <{V3}>" in text
    text = lower(program, "parts", place=f"b={V3}")
    assert f"graph.subgraph @part1 on <{V3}>" in text
    with pytest.raises(UsageError, match="no stage 'kernel'"):
        lower(program, "kernel", place="b=cpu")


@pytest.mark.parametrize("rules", [f"add={V3}", f"look={V3}", "add=iree-cpu", f"re:.*={V3}"])
def test_state_stays_with_the_part_that_updates_it(rules: str) -> None:
    """It is read by another part too: what was before the update, and what is after it."""
    artifact = fewbit.compile(total(), place=rules)
    x, session = np.ones(4, np.float32), artifact.session()
    assert session(x).tolist() == [2, 6, 12, 20]
    assert session(x).tolist() == [6, 12, 20, 30]
    assert np.asarray(session.state["s"]).tolist() == [3, 4, 5, 6]
    session.reset()
    assert session(x).tolist() == [2, 6, 12, 20]
    start = np.zeros(4, np.float32)
    y, after = artifact.run(x, start)
    assert (y.tolist(), after.tolist(), start.tolist()) == ([0] * 4, [1] * 4, [0] * 4)


def test_state_on_a_device_is_written_by_assign() -> None:
    """It is copied neither to the device nor from there between calls."""
    artifact = fewbit.compile(total(), place="add=iree-cpu")
    session, x = artifact.session(threads=2), np.ones(4, np.float32)
    held = session.state["s"]
    assert isinstance(held, HeldState)
    session(x)
    on_device = held.on()
    assert not isinstance(on_device, np.ndarray)
    held.assign(np.zeros(4, np.float32))
    assert session(x).tolist() == [0] * 4
    assert np.asarray(held).tolist() == [1] * 4


def test_states_that_take_each_others_place() -> None:
    t = "tensor<2xf32>"
    program = Program.parse(
        f"""
mico.constant @a : {t} = dense<[1.0, 2.0]>
mico.constant @b : {t} = dense<[3.0, 4.0]>
graph.subgraph @add(%x: {t}, %y: {t}) -> {t} {{
  %z = mico.add(%x, %y) : ({t}, {t}) -> {t}
  graph.return %z : {t}
}}
func.func @main(%x: {t}, %a: {t}, %b: {t}) -> ({t},
    {t} {{fewbit.updates = 1 : i64, fewbit.initial = @a}},
    {t} {{fewbit.updates = 2 : i64, fewbit.initial = @b}}) {{
  %y = graph.call @add(%x, %a) : ({t}, {t}) -> {t}
  func.return %y, %b, %a : {t}, {t}, {t}
}}
"""
    )
    session = fewbit.compile(program, place=f"add={V3}").session()
    x = np.zeros(2, np.float32)
    assert [session(x).tolist() for _ in range(3)] == [[1, 2], [3, 4], [1, 2]]


def test_the_target_is_no_name_to_ask_for() -> None:
    assert registry.COMPOSED not in registry.target_names()
    with pytest.raises(UsageError, match="is no target by itself"):
        fewbit.compile(residual(), registry.COMPOSED)


class TestCommandLine:
    @pytest.fixture
    def saved(self, program: Program, tmp_path: Path) -> Path:
        program.save(tmp_path / "program")
        return tmp_path

    def call(self, *argv: object) -> int:
        return guarded(run, ["-q", *map(str, argv)]) or 0

    def test_compile_run_and_inspect(
        self, saved: Path, capsys: pytest.CaptureFixture[str], program: Program
    ) -> None:
        folder, dump = saved / "net", saved / "dump"
        place = ["--place", "b=vexii", "--place", f"c={V3}"]
        command = ["compile", saved / "program", *place, "--dump-ir", dump, "-o", folder]
        assert self.call(*command) == 0
        assert {"00-graph.mlir", "02-place.mlir", "03-parts.mlir"} <= {
            p.name for p in dump.iterdir()
        }
        assert (dump / "part0-cpu" / "01-kernel.mlir").is_file()
        assert (dump / "part1-vexii").is_dir()
        assert "vexii, cpu" in " ".join(capsys.readouterr().out.split())
        assert self.call("inspect", "artifact", folder) == 0
        shown = capsys.readouterr().out
        assert "32 * x[0]" in shown
        assert self.call("inspect", "artifact", folder, "--json") == 0
        assert len(json.loads(capsys.readouterr().out)["transfers"]) == 4
        np.save(saved / "x.npy", inputs())
        given = ["--input", saved / "x.npy", "--output", saved / "y.npy"]
        assert self.call("run", folder, *given, "--stats", "--threads", 2) == 0
        assert "all transfers" in capsys.readouterr().out
        assert np.array_equal(np.load(saved / "y.npy"), program.run(inputs())[0])

    def test_errors_end_with_the_status_of_usage(
        self, saved: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.call("compile", saved / "program", "--place", "bb=cpu") == 2
        assert "names are, for example" in capsys.readouterr().err
        assert self.call("compile", saved / "program", "--place", "b") == 2
        assert "PATTERN=TARGET" in capsys.readouterr().err


def test_no_target_is_known_by_name() -> None:
    """Not even those of this package: a part can be on a target of another one."""
    code = "\n".join(
        path.read_text() for path in (Path(fewbit.__file__).parent / "targets/placed").glob("*.py")
    )
    names = [name for name in registry.OURS if name != registry.DEFAULT_TARGET]
    assert not [name for name in names if f'"{name}' in code]
    assert isinstance(registry.find_target("cpu"), Target)
