import pytest
from tests.runtime.fakes import record

from dspy_mama.core.errors import DeclarationError
from dspy_mama.runtime import check_unscored


def test_unscored_final_verdicts_are_counted_by_kind():
    found = check_unscored([record(), record("parse"), record("infra"), record("parse")], 0.8)

    assert (found.verdicts, found.unscored, found.rate) == (12, 9, 0.75)
    assert found.kinds == {"parse": 6, "infra": 3}
    assert str(found) == (
        "9 of 12 final verdicts unscored (infra 3, parse 6): 75.0%, within runtime.max_unscored_rate=0.8"
    )


@pytest.mark.parametrize(("limit", "exceeded"), [(0.0, True), (0.24, True), (0.25, False), (1.0, False)])
def test_a_run_fails_past_the_limit_and_not_at_it(limit, exceeded):
    assert check_unscored([record(), record(), record(), record("refused")], limit).exceeded is exceeded


def test_a_run_without_verdicts_does_not_pass():
    found = check_unscored([], 1.0)

    assert (found.rate, found.exceeded) == (None, True)
    assert str(found) == "no outcomes at all: nothing was done"


def test_only_the_final_phase_counts():
    one = record()
    one["phases"]["initial"] = record("parse")["phases"]["consensus"]

    assert check_unscored([one], 0.0).unscored == 0


def test_a_record_without_a_final_phase_is_an_error():
    with pytest.raises(DeclarationError):
        check_unscored([{"id": "x", "phases": {}}], 0.5)
