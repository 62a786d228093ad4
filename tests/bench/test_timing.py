"""How long functions take."""

from __future__ import annotations

from time import perf_counter, process_time

from fewbit.bench.timing import SAMPLE, clock_for, repeats_of, sample, time_together, timing_of


def busy(seconds: float) -> None:
    end = process_time() + seconds
    while process_time() < end:
        pass


def test_the_clock_of_one_thread_is_that_of_the_process() -> None:
    assert clock_for(1) is process_time
    assert clock_for(2) is perf_counter


def test_short_calls_are_repeated() -> None:
    assert repeats_of(lambda: busy(2 * SAMPLE), process_time) == 1
    many = repeats_of(lambda: None, process_time)
    assert many > 100


def test_a_sample_is_the_mean_of_its_calls() -> None:
    assert 0.002 <= sample(lambda: busy(0.002), 5, process_time) < 0.004


def test_times_are_of_single_calls() -> None:
    timing = timing_of([3.0, 1.0, 2.0], 4)
    assert (timing.least, timing.median, timing.rounds) == (1.0, 2.0, 12)


def test_functions_take_turns() -> None:
    order: list[str] = []
    times = time_together(
        {name: lambda name=name: (order.append(name), busy(SAMPLE)) for name in "ab"}, seconds=0.0
    )
    assert times["a"].rounds == times["b"].rounds == 5
    assert "".join(order).endswith("ababababab")
