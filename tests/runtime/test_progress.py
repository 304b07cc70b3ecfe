import io

import pytest
from tests.runtime.fakes import record

from dspy_mama.runtime import make_progress
from dspy_mama.runtime.progress import BarProgress, LineProgress, Tally


class Terminal(io.StringIO):
    def isatty(self):
        return True


def usage(cost):
    return {"initial": {"calls": 1, "cost": cost}, "routing": {"calls": 0, "cost": None}}


def test_rate_time_left_cost_and_unscored_are_told():
    tally = Tally(total=10, skipped=2, started=100.0)
    for outcome in ("scored", "parse"):
        tally.add(record(outcome, usage=usage(0.25)))

    assert tally.describe(now=160.0) == "2.0 pairs/min, 3:00 left, cost 0.5000, 3 unscored"
    assert Tally(total=10, noun="diagnosis", started=100.0).describe(now=160.0).startswith("- diagnoses/min")


@pytest.mark.parametrize(
    ("costs", "expected"),
    [([None], "cost unknown"), ([0.5, None], "cost 0.5000 + unknown"), ([0.0], "cost 0.0000"), ([], "cost 0.0000")],
)
def test_an_unknown_cost_is_never_shown_as_nothing(costs, expected):
    tally = Tally(started=0.0)
    for cost in costs:
        tally.add(record(usage=usage(cost)))

    assert expected in tally.describe(now=1.0).split(", ")


def test_without_a_terminal_a_line_comes_about_every_tenth():
    out = io.StringIO()
    progress = LineProgress(out, clock=lambda: 5.0)
    progress.start(100)
    for _ in range(100):
        progress.add(record())
    progress.close()

    lines = out.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("audited 10/100: ")
    assert lines[-1].startswith("audited 100/100: ")


def test_without_a_terminal_a_slow_run_is_heard_of_every_half_minute():
    out, now = io.StringIO(), [0.0]
    progress = LineProgress(out, clock=lambda: now[0])
    progress.start(None)
    for _ in range(7):
        now[0] += 10
        progress.add(record())
    progress.close()

    assert [line.split(":")[0] for line in out.getvalue().splitlines()] == ["audited 3", "audited 6", "audited 7"]


def test_unwanted_progress_is_silent_but_for_messages():
    out = io.StringIO()
    progress = make_progress(False, out)
    progress.start(2)
    progress.skip()
    progress.add(record())
    progress.say("Stopping")
    progress.close()

    assert out.getvalue() == "Stopping\n"


def test_a_terminal_gets_a_bar():
    out = Terminal()
    progress = make_progress(True, out)
    progress.start(3)
    progress.skip()
    progress.add(record("parse", usage=usage(None)))
    progress.say("[Stopping]: 1 pair")
    progress.close()

    assert isinstance(progress, BarProgress)
    assert "2/3" in out.getvalue()
    assert "cost unknown, 3 unscored" in out.getvalue()
    assert "[Stopping]: 1 pair" in out.getvalue()


def test_a_file_gets_lines():
    assert isinstance(make_progress(True, io.StringIO()), LineProgress)


def test_a_closed_pipe_does_not_end_a_run():
    out = io.StringIO()
    progress = make_progress(True, out)
    out.close()
    progress.start(1)
    progress.add(record())
    progress.say("x")
    progress.close()
