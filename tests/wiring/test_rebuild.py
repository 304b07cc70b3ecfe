"""A run of any system is reported; what needs verdicts refuses the runs that have none."""

import pytest

from dspy_mama.core.chat_request import ChatRequest
from dspy_mama.core.errors import DeclarationError
from dspy_mama.systems.refine import SafetyRefiner, refine_record
from dspy_mama.tracking import RunStore
from dspy_mama.wiring.comparison import Reading, read_systems
from dspy_mama.wiring.errors import load_runs
from dspy_mama.wiring.evidence import load_records
from dspy_mama.wiring.rebuild import rebuild_any
from systems.refine.loops import Loop


@pytest.fixture
def refined(tmp_path):
    request = ChatRequest("r1", "May I?", principle="IV")
    loop = Loop([3, 0], [4, 1])
    prediction = SafetyRefiner(lms={"default": loop.lm})(question=request.question)
    with RunStore.create(tmp_path, {"name": "refine", "experiment": {"resamples": 50}}) as store:
        store.append({**refine_record(request, prediction), "seconds": 1.0, "position": 0})
        return store.folder


def test_a_run_of_the_loop_is_reported_as_one(refined):
    system, summary, page = rebuild_any(refined)
    assert system == "refine"
    assert "May I?" in page.read_text()
    assert summary


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: read_systems([str(folder)], Reading()),
        lambda folder: load_runs([str(folder)]),
        lambda folder: load_records(str(folder), "mlruns"),
    ],
    ids=["compare", "errors", "evidence"],
)
def test_what_needs_verdicts_names_the_run_that_has_none(refined, read):
    with pytest.raises(DeclarationError, match="a run of mama refine, which holds no verdicts of risk"):
        read(refined)
