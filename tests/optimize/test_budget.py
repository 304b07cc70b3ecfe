"""Budgets stop, and a compilation that was killed repeats no call."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import dspy
import pytest
from dspy.lm15 import Usage
from dspy.utils.exceptions import LMAuthError

from dspy_mama.core import DeclarationError
from dspy_mama.lm.profile import profile_of
from dspy_mama.optimize import compile_nested, compile_program
from dspy_mama.optimize.budget import Budget, BudgetSpentError
from dspy_mama.optimize.journal import Journal, call_key
from dspy_mama.optimize.ledger import note_look
from dspy_mama.optimize.metering import Meter, metered
from dspy_mama.settings import BudgetSettings, OptimizerSettings, SplitSettings
from optimize import killed
from optimize.compile_parts import auditor, from_demos, gold_pairs, proposes, reflect, rule_bound, scripted
from optimize.helped import HELPED, QUICK
from scripted import response, scripted_lm, user_of


@pytest.mark.parametrize("name", [name for name in HELPED if name != "reanchor"])
@pytest.mark.parametrize("calls", [70, 100])
def test_no_call_is_made_past_the_budget_and_the_best_so_far_is_given_back(name, calls):
    script, options = HELPED[name]
    lm = scripted(script() if isinstance(script, type) else script)
    result = compile_program(auditor(lm), gold_pairs(), name, budget={"calls": calls}, **{**QUICK, **options})
    assert len(lm.requests) <= calls
    assert result.spent.calls == len(lm.requests)
    # What is needed to measure is kept back from the search, so that whatever was kept was also proven.
    assert result.test is not None or not result.kept
    assert result.program(question="Q?", answer="A.") is not None


def test_a_search_that_is_cut_short_says_so_and_keeps_what_it_found():
    proposals = []

    def never_content(request):
        """Gets one pair in ten wrong whatever it is told, and is told something new each time."""
        if proposes(request):
            proposals.append(request)
            return {name: f"{text} Think {len(proposals)} times." for name, text in reflect(request).items()}
        values = rule_bound(request)
        hard = re.search(r"Question p \d*4\?", user_of(request))
        return {n: not v if hard and n.endswith("risk") else v for n, v in values.items()}

    lm = scripted(never_content)
    options = {**QUICK, "rounds": 60, "threads": 1}
    result = compile_program(auditor(lm), gold_pairs(), "gepa", budget={"calls": 250}, **options)
    assert len(lm.requests) <= 250
    assert "the budget of 250 calls is spent" in result.stopped
    assert result.kept
    assert result.test.after.value("joint_accuracy") > 0.7
    assert result.to_dict()["stopped"] == result.stopped


def test_a_budget_that_does_not_even_measure_keeps_nothing():
    lm = scripted(from_demos)
    result = compile_program(auditor(lm), gold_pairs(), "labelled", budget={"calls": 5}, **QUICK)
    assert len(lm.requests) == 5
    assert not result.kept
    assert result.test is None
    assert "5 calls" in result.stopped


@pytest.mark.parametrize(
    ("limits", "dearer"),
    [({"tokens": 6000}, lambda spent: spent.tokens - 6000), ({"cost": 0.006}, lambda spent: spent.cost - 0.006)],
)
def test_tokens_and_money_stop_the_search_too(limits, dearer):
    lm = scripted(rule_bound)
    profile = profile_of(lm)
    profile.price_input, profile.price_output = 1.0, 1.0  # dollars per million: 120 tokens a call
    result = compile_program(auditor(lm), gold_pairs(), "gepa", budget=limits, **{**QUICK, "threads": 1})
    assert result.stopped
    # A call's price is known when it is answered: those in flight are the most that it can be passed by.
    assert dearer(result.spent) <= (8 * 120 if "tokens" in limits else 8 * 0.00012)
    assert len(lm.requests) <= 60


@pytest.mark.parametrize("role", ["task", "reflection_lm", "teacher_lm"])
def test_a_budget_in_money_is_refused_where_a_price_is_unknown(role):
    lms = {name: scripted(rule_bound, name=f"scripted/{name}") for name in ("task", "reflection_lm", "teacher_lm")}
    for name, lm in lms.items():
        if name != role:
            profile_of(lm).price_input = profile_of(lm).price_output = 1.0
    task = lms.pop("task")
    with pytest.raises(DeclarationError, match=rf"scripted/{role}.*price_input"):
        compile_program(auditor(task), gold_pairs(), "gepa", budget={"cost": 0.5}, **lms, **QUICK)
    assert not any(lm.requests for lm in (task, *lms.values()))


def test_a_budget_in_money_stops_an_lm_that_tells_no_tokens(monkeypatch):
    def silent(request):
        reply = response(json.dumps(rule_bound(request)), request)
        return replace(reply, usage=Usage())

    lm = scripted(silent)
    profile_of(lm).price_input = profile_of(lm).price_output = 1000.0
    result = compile_program(auditor(lm), gold_pairs(), "labelled", budget={"cost": 5.0}, **QUICK)
    assert "5 US dollars" in result.stopped


def test_minutes_stop_the_search(monkeypatch):
    from dspy_mama.optimize import budget

    now = [0.0]
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])

    def slow(request):
        now[0] += 6
        return rule_bound(request)

    lm = scripted(slow)
    result = compile_program(auditor(lm), gold_pairs(), "gepa", budget={"minutes": 8}, **{**QUICK, "threads": 1})
    assert "8 minutes" in result.stopped
    assert len(lm.requests) <= 80 + QUICK["threads"]


def test_unknown_prices_are_unknown_and_not_free():
    result = compile_program(auditor(scripted(from_demos)), gold_pairs(), "labelled", **QUICK)
    assert result.spent.to_dict()["cost"] is None
    assert result.spent.to_dict()["tokens"] == 120 * result.spent.calls


def test_the_limit_holds_over_threads():
    budget = Budget(BudgetSettings(calls=50))
    admitted = []

    def ask():
        for _ in range(20):
            try:
                budget.admit()
            except BudgetSpentError:
                return
            admitted.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == budget.spent.calls == 50


def test_a_reflecting_lm_that_is_called_by_dspys_own_predict_is_charged_and_journalled():
    lm = scripted_lm(lambda request: "[[ ## text ## ]]\nfine\n\n[[ ## completed ## ]]")
    meter = Meter(Budget(), Journal())
    mind = metered(lm, meter)
    with dspy.context(lm=mind, adapter=dspy.ChatAdapter()):
        answers = [dspy.Predict("question -> text")(question="why?").text for _ in range(2)]
    assert answers == ["fine", "fine"]
    assert len(lm.requests) == 1
    assert meter.budget.spent.calls == 1
    assert meter.budget.spent.tokens == 120
    assert meter.budget.spent.from_journal == 1
    assert mind.history == []


def test_rollouts_and_temperatures_are_calls_of_their_own_and_keys_hold_no_secret():
    lm = scripted_lm()
    keys = {
        call_key(lm.copy(**change), None, [{"role": "user", "content": "x"}], {})
        for change in ({}, {"rollout_id": 1}, {"temperature": 1.0}, {"rollout_id": 1, "temperature": 1.0})
    }
    assert len(keys) == 4
    plain = call_key(lm, None, [], {})
    assert call_key(lm, None, [], {"api_key": "secret", "timeout": 3}) == plain


def test_a_line_that_a_kill_left_half_written_is_dropped(tmp_path):
    path = tmp_path / "calls.jsonl"
    first = Journal(path)
    first.put("a", {"outputs": ["one"]})
    first.close()
    with path.open("ab") as file:
        file.write(b'{"key": "b", "repl')
    again = Journal(path)
    assert again.get("a") == {"outputs": ["one"]}
    assert again.get("b") is None
    again.put("b", {"outputs": ["two"]}, (9, 0.5, 0))
    again.close()
    third = Journal(path)
    assert len(third) == 2
    assert [third.price_of("b"), third.price_of("b")] == [(9, 0.5, 0), None]


def killed_at(name, folder, last):
    """Compiles in a process that kills itself; returns how it ended."""
    folder.mkdir(exist_ok=True)
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), name, str(folder), str(last)]
    return subprocess.run(command, capture_output=True, env=environment, timeout=300, check=False).returncode


def paid(folder):
    return len((folder / "calls.txt").read_text().splitlines())


@pytest.mark.parametrize("name", ["bootstrap", "gepa"])
def test_after_a_kill_the_same_command_goes_on_and_repeats_no_call(name, tmp_path):
    (tmp_path / "whole").mkdir()
    one = killed.main(name, tmp_path / "whole", 0)
    assert killed_at(name, tmp_path / "cut", 40) == -signal.SIGKILL
    assert paid(tmp_path / "cut") == 40
    two = killed.main(name, tmp_path / "cut", 0)
    assert paid(tmp_path / "cut") == paid(tmp_path / "whole")
    assert one["values"] == two["values"]
    # The budget is one over all starts: what the killed one spent is spent.
    assert two["spent"]["calls"] == one["spent"]["calls"] == paid(tmp_path / "whole")
    assert two["spent"]["tokens"] == one["spent"]["tokens"]
    assert not (tmp_path / "cut" / "run" / "calls.jsonl").exists()


def test_a_second_look_at_the_same_test_pairs_is_counted_and_a_resumed_run_is_not(tmp_path):
    ledger, pairs = tmp_path / "looks.jsonl", gold_pairs(6)
    assert note_look(ledger, pairs, "a") == 0
    assert note_look(ledger, pairs, "a") == 0
    assert note_look(ledger, pairs[::-1], "b") == 1
    assert note_look(ledger, pairs[:5], "c") == 0
    assert note_look(None, pairs, "d") == 0


def test_nested_folds_that_broke_off_are_gone_on_with_fold_by_fold(tmp_path):
    asked, limit = [], [10**6]

    def script(request):
        if len(asked) >= limit[0]:
            return LMAuthError("the key has run out")
        asked.append(request)
        return from_demos(request)

    settings = OptimizerSettings(name="labelled", split=SplitSettings(folds=2), **QUICK)

    def compile_all(name):
        return compile_nested(auditor(scripted(script)), gold_pairs(18), settings, journal=tmp_path / name)

    compile_all("whole")
    whole = len(asked)
    asked.clear()
    limit[0] = whole - 20
    with pytest.raises(DeclarationError, match="cannot be used"):
        compile_all("cut")
    limit[0] = 10**6
    assert compile_all("cut").measured is not None
    assert len(asked) == whole
    assert list(tmp_path.iterdir()) == []
