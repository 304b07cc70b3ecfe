import json

import pytest

from dspy_mama.cli import main
from scripted import default_values, fields_of


@pytest.fixture
def runs(mama, workplace):
    """Two runs over the same pairs, with and without evidence."""
    folders = []
    for ablation in ("full", "ma_mpa"):
        code, out, err = mama("evaluate", "data.limit=2", f"ablation={ablation}", "tracking=none", "--json")
        assert code == 0, err
        folders.append(json.loads(out)["folder"])
    return folders


def checking(request):
    fields = fields_of(request)
    if "support" in fields:
        return {"findings": "f", "support": "partly"}
    return default_values(fields)


def test_a_runs_evidence_is_diagnosed_compared_and_checked(mama, runs, capsys):
    code, out, err = mama("evidence", runs[0], "--without", runs[1], "--check", "--json", script=checking)
    assert code == 0, err
    document = json.loads(out)
    assert document["retrieval"]["by_domain"]["legal"]["searched"] == 2
    assert document["retrieval"]["hit_rate"] == 1.0
    assert document["effect"]["pairs"] == 2
    support = document["support"]
    assert support["missing"] == 0
    assert sum(row["checked"] for row in support["by_domain"].values()) == document["retrieval"]["citations"] == 6
    assert support["by_domain"]["medical"]["verdicts"] == {"partly": 2}
    assert main(["evidence", runs[0], "--without", runs[1]]) == 0
    shown = capsys.readouterr().out
    for part in ("Nothing found", "Where the passages come from", "Verdicts that evidence changed"):
        assert part in shown


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [([], "one run folder"), (["no-such-run"], "no-such-run"), (["a", "b"], "one run folder")],
)
def test_what_is_no_run_is_said_in_one_line(workplace, capsys, arguments, reason):
    assert main(["evidence", *arguments]) == 2
    err = capsys.readouterr().err
    assert reason in err
    assert len(err.strip().splitlines()) == 1


def test_settings_that_nothing_uses_are_refused(mama, runs, capsys):
    assert main(["evidence", runs[0], "lm=openai"]) == 2
    assert "--check" in capsys.readouterr().err
