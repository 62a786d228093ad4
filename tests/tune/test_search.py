"""The search for one op, on a device that is a formula."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fewbit.cost.hardware import find_hardware
from fewbit.cost.loops import LoopNest
from fewbit.tune.analytic import Analytic
from fewbit.tune.database import Database, Key, Trial
from fewbit.tune.schedule import Schedule
from fewbit.tune.search import Tried, diverse, neighbours, search
from fewbit.tune.space import schedules
from tests.cost.loops.nests import matmul

HOST = find_hardware("h200").model_copy(update={"kind": "cpu", "vector_bits": 512, "registers": 32})
NEST = matmul(64, 64, 64)
KEY = Key("t", NEST.signature, "h", "v")


@dataclass
class Device:
    """Times that the model nearly knows; some schedules fail."""

    model: Analytic
    scale: float = 0.5
    asked: list[Schedule] = field(default_factory=list[Schedule])

    def __call__(self, wanted: Sequence[Schedule]) -> Tried:
        self.asked += wanted
        return Tried([self._one(s) for s in wanted], 1e-3, 0.005, 0.98)

    def _one(self, schedule: Schedule) -> Trial:
        if schedule.vector[2] == 16:
            return Trial(schedule, None, "cannot be compiled")
        best = 1e-5
        return Trial(schedule, self.scale * (self.model.seconds(NEST, schedule) / best) ** 0.1)


def run(database: Database, device: Device, **options: float) -> Schedule | None:
    model = Analytic(HOST)
    outcome = search(KEY, NEST, schedules(NEST, HOST), model, device, database, **options)  # pyright: ignore
    return outcome.schedule


def test_the_fastest_is_kept(tmp_path: Path) -> None:
    database, device = Database(tmp_path / "t.db"), Device(Analytic(HOST))
    chosen = run(database, device)
    timed = {s: t for s, t in database.trials(KEY).items() if t.ratio is not None}
    assert chosen is not None
    assert chosen == min(timed, key=lambda s: timed[s].ratio or 0)
    stored = database.get(KEY)
    assert stored is not None
    assert stored.schedule == chosen
    assert stored.trials == len(database.trials(KEY))


def test_the_default_stays_where_it_is_not_beaten(tmp_path: Path) -> None:
    database = Database(tmp_path / "t.db")
    assert run(database, Device(Analytic(HOST), scale=5.0)) is None
    stored = database.get(KEY)
    assert stored is not None
    assert stored.ratio == 1.0
    assert "not beaten" in stored.reason


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    database, model = Database(tmp_path / "t.db"), Analytic(HOST)
    first, second = Device(model), Device(model)
    chosen = run(database, first)
    assert run(database, second) == chosen
    assert second.asked == [chosen]  # once more, alone


def test_without_time_nothing_is_said(tmp_path: Path) -> None:
    database = Database(tmp_path / "t.db")
    assert run(database, Device(Analytic(HOST)), deadline=0.0) is None
    assert database.get(KEY) is None


def test_what_is_tried_differs() -> None:
    ranked = list(schedules(NEST, HOST))
    first = diverse(ranked, 6, NEST)
    assert len({s.vector for s in first}) == 6
    assert max(Counter(s.vector[:2] for s in first).values()) == 2  # of one shape
    near = neighbours(first[0], ranked, 6)
    assert first[0] not in near
    for schedule in near:
        pairs = zip(schedule.vector, first[0].vector, strict=True)
        assert sum(a != b for a, b in pairs) <= 1


def test_every_schedule_fits() -> None:
    results = list(schedules(NEST, HOST))
    assert len(set(results)) == len(results) > 100
    for schedule in results:
        assert check(NEST, schedule)


def test_columns_that_are_no_whole_vectors() -> None:
    """Parts of a vector that divide them; masks where nothing does."""
    assert {s.vector[1] for s in schedules(matmul(8, 24, 8), HOST)} == {8, 4}
    assert {s.vector[1] for s in schedules(matmul(8, 48, 8), HOST)} == {16}
    assert {s.vector[1] for s in schedules(matmul(8, 99, 8), HOST)} == {9, 11, 16, 32}


def check(nest: LoopNest, schedule: Schedule) -> bool:
    rows, columns, _ = schedule.vector
    fits = rows * columns // 16 <= HOST.registers
    whole = all(e % t == 0 for e, t in zip(nest.extents, schedule.vector, strict=True))
    return fits and whole and schedule.distribution[2] == 0
