import re

import numpy as np
import pytest

from dspy_mama.core.disease_knowledge import DIMENSIONS
from dspy_mama.reporting import diagnosis_published as published
from dspy_mama.reporting.diagnosis import diagnosis_metrics, summarise_diagnoses
from dspy_mama.reporting.diagnosis_html import render_diagnosis_report
from dspy_mama.reporting.diagnosis_paper import paper_table, sweep_table
from dspy_mama.reporting.diagnosis_tables import diagnosis_tables
from dspy_mama.stats import mcnemar_exact

USAGE = {"calls": 2, "prompt_tokens": 100, "completion_tokens": 20, "seconds": 1.0, "cost": 0.01}


def grade(score, second=None):
    orders = zip(("truth_first", "answer_first"), (score, score if second is None else second), strict=True)
    readings = [
        {"order": o, "repeat": 0, "outcome": "scored", "score": s, "error": None, "reason": "r"} for o, s in orders
    ]
    return {
        "outcome": "scored", "score": score, "error": None, "by": "grader", "reason": "why",
        "agreement": 1.0, "readings": readings,
    }  # fmt: skip


def turn(number, speaker, disease, **more):
    base = {
        "turn": number, "round": number, "speaker": speaker, "role": speaker.split()[0].lower(),
        "specialty": None, "outcome": "scored", "error": None, "raw": None, "argument": f"argument {number}",
        "disagreement": None, "most_likely": disease, "differentials": [], "tests": [], "agrees": None,
        "consensus": None, "accepted": None, "next_speaker": None, "selection": {"by": "order"}, "usage": USAGE,
    }  # fmt: skip
    return {**base, **more}


def record(name, method="mac", score=5, *, stage="primary", repeat=0, **more):
    units = ("most_likely", "possible", "tests") if stage == "primary" else ("most_likely", "possible")
    final = {"outcome": "scored", "error": None, "raw": None, "by": "answer", "most_likely": "Fabry disease",
             "possible": ["Gaucher disease"], "tests": ["enzyme"] if stage == "primary" else []}  # fmt: skip
    base = {
        "id": f"{name}/{stage}/{method}", "key": f"{name}{stage}{method}{repeat}", "source": "mac", "repeat": repeat,
        "system": "diagnosis", "case_id": name, "stage": stage, "method": method, "case": "burning feet",
        "gold": {"diagnosis": "Fabry disease", "group": "renal"}, "leak": False, "notices": [], "notes": [],
        "panel": None, "specialties": None, "turns": [], "attempts": [], "rounds": 0, "consensus_round": None,
        "stopped": None, "final": final, "cuts": [], "usage": {"doctor": USAGE, "grader": USAGE},
        "grades": {unit: grade(max(score, 1) if unit == "tests" else score) for unit in units},
        "match": {u: {"kind": "exact", "likeness": 1} for u in units[:2]},
        "outcomes": dict.fromkeys(("diagnosis", *units), "scored"), "models": {"doctor": "m", "grader": "g"},
        "seconds": 1.0,
    }  # fmt: skip
    return {**base, **more}


def cells(table, first, second):
    return next(row for row in table.rows if row[:2] == (first, second))


def test_only_the_highest_level_of_a_diagnosis_is_right_and_two_of_tests():
    found = summarise_diagnoses([record(f"c{n}", score=level) for n, level in enumerate((5, 4, 3, 2))])
    scores = found["scores"]["primary"]["mac"]
    assert scores["most_likely"]["right"] == 1
    assert scores["tests"]["right"] == 2
    assert scores["most_likely"]["mean_level"] == 3.5
    assert scores["most_likely"]["levels"] == {"5": 1, "4": 1, "3": 1, "2": 1}


def test_unscored_diagnoses_are_counted_and_in_no_mean():
    lost = {
        "outcome": "refused",
        "error": "x",
        "raw": "x",
        "by": None,
        "most_likely": None,
        "possible": [],
        "tests": [],
    }
    rows = [record("a"), record("b", final=lost, grades={}, match={}, outcomes={"diagnosis": "refused"})]
    found = summarise_diagnoses(rows)
    score = found["scores"]["primary"]["mac"]["most_likely"]
    assert (score["n"], score["value"]) == (1, 1.0)
    assert score["unscored"] == {"n": 1, "of": 2, "by_kind": {"refused": 1}}
    assert found["unscored_rate"] == pytest.approx(1 / 5)


def test_paired_differences_rest_on_cases_judged_in_both_and_equal_mcnemar():
    rng = np.random.default_rng(3)
    rights = rng.random((40, 2)) < (0.7, 0.3)
    rows = [record(f"c{n}", m, 5 if rights[n, k] else 0) for n in range(40) for k, m in enumerate(("mac", "direct"))]
    rows.append(record("alone", "mac", 5))
    found = summarise_diagnoses(rows, resamples=300)
    row = next(r for r in found["differences"] if r["unit"] == "most_likely")
    assert (row["first"], row["second"], row["n"]) == ("mac", "direct", 40)
    assert row["value"] == pytest.approx(rights[:, 0].mean() - rights[:, 1].mean())
    assert (row["only_first"], row["only_second"], row["p"]) == mcnemar_exact(rights[:, 0], rights[:, 1])
    assert row["p"] <= row["p_holm"]
    assert row["ci95"][0] <= row["value"] <= row["ci95"][1]


def test_none_right_of_six_is_no_certainty():
    statsmodels = pytest.importorskip("statsmodels.stats.proportion")
    found = summarise_diagnoses([record(f"c{n}", score=0) for n in range(6)])
    low, high = found["scores"]["primary"]["mac"]["most_likely"]["ci95"]
    assert (low, high) == pytest.approx(statsmodels.proportion_confint(0, 6, method="wilson"), abs=1e-9)
    assert high > 0.3


def test_cases_that_leak_are_in_one_table_and_not_in_the_other():
    rows = [record("a", leak=True), record("b", score=0)]
    found = summarise_diagnoses(rows)
    assert found["scores"]["primary"]["mac"]["most_likely"]["value"] == 0.5
    assert found["without_leaks"]["primary"]["mac"]["most_likely"]["value"] == 0.0
    titles = [table.title for table in diagnosis_tables(found)]
    assert any("primary 1" in title for title in titles)
    assert not any("without cases" in t.title for t in diagnosis_tables(summarise_diagnoses([record("b")])))


def test_repeats_agree_as_much_as_they_do():
    same = [record(f"c{n}", score=(5, 0)[n % 2], repeat=r) for n in range(6) for r in range(3)]
    assert summarise_diagnoses(same)["agreement"]["primary"]["mac"]["most_likely"]["levels"]["kappa"] == pytest.approx(
        1
    )
    rng = np.random.default_rng(1)
    levels = rng.choice([0, 2, 3, 4, 5], (300, 3))
    random = [record(f"c{n}", score=int(levels[n, r]), repeat=r) for n in range(300) for r in range(3)]
    kappa = summarise_diagnoses(random, resamples=50)["agreement"]["primary"]["mac"]["most_likely"]["levels"]["kappa"]
    assert abs(kappa) < 0.06


def test_a_grader_whose_orders_differ_or_who_grades_itself_is_shown_as_such():
    rows = [record(f"c{n}", models={"doctor": "m", "grader": "m"}) for n in range(4)]
    rows[0]["grades"]["most_likely"] = grade(3, 5)
    rows[1]["grades"]["possible"] = grade(0)
    found = summarise_diagnoses(rows)["grader"]
    assert found["units"]["most_likely"]["orders"]["agreement"] == 0.75
    assert found["units"]["most_likely"]["orders"]["shift"] == 0.5
    assert found["units"]["most_likely"]["matcher"]["only_matcher"] == 1
    assert (found["contradictions"], found["self_graded"]) == (1, 4)


def test_what_a_method_costs_is_without_its_grading_and_unknown_is_not_0():
    unknown = {**USAGE, "cost": None}
    found = summarise_diagnoses([record("a"), record("b", usage={"doctor": unknown, "speaker": USAGE})])
    used = found["usage"]["primary"]["mac"]
    assert used["method"]["calls"] == 6
    assert used["roles"]["speaker"]["calls"] == 2
    assert used["per_case"]["calls"] == 3
    assert used["method"]["unknown"]["cost"] == 1
    every = summarise_diagnoses([record("a", usage={"doctor": unknown})])["usage"]["primary"]["mac"]
    assert every["per_case"]["cost"] is None


def test_the_panels_differences_come_first_and_those_between_single_models_last():
    found = summarise_diagnoses([record("a", method) for method in ("mac", "direct", "cot")])
    tables = {table.title: table for table in diagnosis_tables(found)}
    assert len(tables["Paired differences"].rows) == 2 * 3
    assert all("MAC panel" in row[2] for row in tables["Paired differences"].rows)
    assert list(tables)[-1] == "Paired differences between single models"
    assert len(tables["Paired differences between single models"].rows) == 3
    alone = diagnosis_tables(summarise_diagnoses([record("a", method) for method in ("direct", "cot")]))
    assert [len(table.rows) for table in alone if table.title.startswith("Paired")] == [3]


def test_usage_is_shown_per_case_for_every_role():
    rows = [record(n, usage={"doctor": USAGE, "speaker": {**USAGE, "cost": None}}) for n in "ab"]
    table = next(t for t in diagnosis_tables(summarise_diagnoses(rows)) if t.title == "Calls, tokens and cost")
    each = {row[2]: row[-1] for row in table.rows}
    assert each["doctor"] == "2.0 calls, 100.0 + 20.0 tokens, US$ 0.0100"
    assert each["speaker"] == "2.0 calls, 100.0 + 20.0 tokens, cost unknown"
    assert each["all but the grader"].startswith("4.0 calls, 200.0 + 40.0 tokens")


def test_the_papers_figures_are_the_printed_ones_and_stand_beside_ours():
    printed = {(row.stage, row.setting): row for row in published.ACCURACIES}
    best = printed["primary", "MAC, GPT-4, 4 doctors"]
    assert (best.most_likely, best.possible, best.tests) == (34.11, 48.12, 78.26)
    assert printed["follow_up", "GPT-4 alone"].possible == 59.71
    found = summarise_diagnoses([record("a"), record("a", stage="follow_up")])
    table = paper_table(found)
    assert cells(table, "Primary", "ours: MAC panel")[2] == "100.00"
    assert cells(table, "Primary", "paper: GPT-3.5 alone")[2:5] == ("16.23", "-", "-")
    assert "do not compare" in " ".join(table.notes)
    assert len(sweep_table({"doctors=2": found, "doctors=3": found}).rows) == 4 + len(published.ACCURACIES)


def test_metrics_have_names_and_bounds():
    metrics = diagnosis_metrics(summarise_diagnoses([record(f"c{n}", score=(5, 0)[n % 2]) for n in range(8)]))
    assert metrics["primary/mac/most_likely/accuracy"] == 0.5
    assert metrics["primary/mac/most_likely/accuracy_low"] < 0.5 < metrics["primary/mac/most_likely/accuracy_high"]


def page(rows):
    return render_diagnosis_report(rows, summarise_diagnoses(rows, resamples=50))


def test_the_report_shows_who_said_what_and_how_diagnoses_moved():
    turns = [
        turn(1, "Doctor 1", "Gaucher disease"), turn(2, "Doctor 2", "Fabry disease"),
        turn(3, "Supervisor", "Fabry disease", disagreement="the spleen", consensus=True, accepted=False),
        turn(4, "Doctor 1", "Fabry's disease", agrees=True),
        turn(5, "Doctor 2", None, outcome="parse", error="no JSON object", raw="hm"),
    ]  # fmt: skip
    shown = page([record("a", turns=turns, stopped="rounds", rounds=5)])
    assert shown.count("changed its mind") == 1
    assert "the spleen" in shown
    assert "not everybody was heard" in shown
    assert "no JSON object" in shown
    moves = shown.split('class="moves"')[1].split("</table>")[0]
    assert '<td class="c0" dir="auto">Gaucher disease</td>' in moves
    assert '<td class="c1" dir="auto">Fabry&#39;s disease</td>' in moves
    assert moves.count('class="c1"') == 3
    assert "2 in all" in shown


def test_the_report_shows_what_the_concluder_says_and_crowns_nothing_that_could_not_be_read():
    final = {"outcome": "scored", "error": None, "raw": None, "by": "concluder", "most_likely": "Fabry disease",
             "possible": ["Gaucher disease"], "tests": [], "argument": "the enzyme decides"}  # fmt: skip
    shown = page([record("a", turns=[turn(1, "Doctor 1", "Gaucher disease")], stopped="rounds", rounds=1, final=final)])
    assert "the enzyme decides" in shown.split("No consensus after 1 rounds.")[1]
    lost = {**final, "outcome": "parse", "by": "refined", "most_likely": None, "possible": []}
    attempt = {"number": 1, "kind": "candidate", "outcome": "parse", "error": "no JSON object", "most_likely": None,
               "possible": [], "tests": [], "reasoning": None, "group": None, "chosen": True, "score": None,
               "feedback": None, "kept": True}  # fmt: skip
    shown = page([record("a", "self_refine", final=lost, grades={}, match={}, attempts=[attempt])])
    assert "refined" not in shown.split("<h3>Outcome</h3>")[1]
    assert ">chosen<" not in shown


def knowledge(name, method, text="an entry", level=4):
    sides = tuple(DIMENSIONS)
    draft = {"by": "Doctor 1", "outcome": "scored", "text": text, "error": None, "raw": None, "score": None,
             "feedback": text, "kept": None, "usage": USAGE}  # fmt: skip
    entry = {"outcome": "scored", "text": text, "error": None, "raw": None, "by": "supervisor", "disagreement": text,
             "drafts": [draft], "usage": USAGE}  # fmt: skip
    row = record(name, method, stage="knowledge", case=name, gold={"diagnosis": name, "group": None})
    row |= {"answers": dict.fromkeys(sides, entry), "grades": {side: grade(level) for side in sides}, "match": {}}
    row["outcomes"] = dict.fromkeys((*sides, *(f"{side}_entry" for side in sides)), "scored")
    del row["final"]
    return row


def test_knowledge_has_a_table_of_its_own_and_its_entries_are_escaped():
    bad = "<script>alert(1)</script>"
    rows = [knowledge("Fabry disease", "mac", bad), knowledge("Gout", "mac", level=2), record("a")]
    found = summarise_diagnoses(rows, resamples=50)
    assert (found["cases"], found["diseases"], found["stages"]) == (1, 2, ["primary", "knowledge"])
    table = next(table for table in diagnosis_tables(found) if "2 diseases" in table.title)
    assert cells(table, "MAC panel", "Definition")[2:5] == ("3.00", "1/2 = 0.500 (0.000 to 1.000)", "4: 1, 2: 1")
    assert cells(table, "MAC panel", "all of them")[2] == "3.00"
    shown = page(rows)
    assert "<script>alert" not in shown
    assert shown.count("They differ in:") == 2 * len(DIMENSIONS)
    assert "level 2" in shown


def test_everything_that_an_lm_or_a_case_says_is_escaped():
    bad = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    final = {
        "outcome": "scored",
        "error": None,
        "raw": None,
        "by": "answer",
        "most_likely": bad,
        "possible": [bad],
        "tests": [bad],
    }
    row = record(
        "a", case=bad, final=final, turns=[turn(1, "Doctor 1", bad, argument=bad)], stopped="rounds",
        attempts=[{"number": 1, "kind": "path", "outcome": "scored", "error": None, "most_likely": bad,

                   "possible": [bad], "tests": [], "reasoning": bad, "group": 1, "chosen": True,
                   "score": None, "feedback": None,
                   "kept": None}],
    )  # fmt: skip
    row["grades"]["most_likely"]["reason"] = bad
    shown = page([row])
    assert "<script>alert" not in shown
    assert "<img" not in shown
    assert shown.count("&lt;script&gt;alert(1)") >= 8
    assert len(re.findall("<script", shown)) == 1


def doubted(name="a", held=("Fabry disease", "<b>Lyme</b>"), **more):
    turns = [turn(n, f"Doctor {n}", disease, agrees=n > 1) for n, disease in enumerate(held, 1)]
    turns.append(turn(3, "Supervisor", "Fabry disease", consensus=True, accepted=True))
    return record(name, turns=turns, stopped="consensus", rounds=3, consensus_round=3, **more)


def test_a_consensus_that_the_doctors_contradict_is_counted_and_flagged():
    rows = [doubted(), doubted("b", ("Fabry", "Fabry disease")), doubted("c", ("Gout", "Gout")), record("d", "direct")]
    found = summarise_diagnoses(rows, resamples=50)
    talk = found["discussion"]["primary"]
    assert (talk["contradicted_consensus"], talk["doctors_differ"], talk["outcome_unheld"]) == (2, 1, 1)
    table = next(table for table in diagnosis_tables(found) if table.title == "The panel's discussions")
    shown = dict(zip(table.header, table.rows[0], strict=True))
    assert (shown["Consensus contradicted"], shown["Outcome nobody holds"]) == ("2 of 3", "1/3")
    assert diagnosis_metrics(found)["primary/mac/consensus_contradicted"] == 2
    html = page(rows)
    assert "<b>2 of 3</b><span>consensuses that the doctors&#39; latest diagnoses contradict</span>" in html
    cases = html.split('<details class="pair"')[1:]
    said = "Consensus declared while the doctors&#39; latest diagnoses differ (Doctor 1: Fabry disease; Doctor 2: &lt;b"
    assert [said in case for case in cases] == [True, False, False, False]
    assert ["held by no doctor" in case for case in cases] == [False, False, True, False]
    assert ['data-doubt="1"' in case for case in cases] == [True, False, True, False]
    assert ["consensus contradicted</span>" in case for case in cases] == [True, False, True, False]
    assert ["diagnoses contradict</span>" in case for case in cases] == [True, False, True, False]


def test_what_the_record_says_of_its_consensus_goes_before_the_matcher():
    """A run with a dictionary knows better than spellings alone."""
    known = {"consensus": True, "held": {}, "differ": False, "unheld": [], "contradicted": False, "warnings": []}
    found = summarise_diagnoses([doubted(standing=known)], resamples=50)
    assert found["discussion"]["primary"]["contradicted_consensus"] == 0
    ended = record("a", turns=[turn(1, "Doctor 1", "Gout"), turn(2, "Doctor 2", "Lyme")], stopped="rounds", rounds=2)
    table = diagnosis_tables(summarise_diagnoses([ended], resamples=50))
    assert (
        next(dict(zip(t.header, t.rows[0], strict=True)) for t in table if "discussions" in t.title)[
            "Consensus contradicted"
        ]
        == "-"
    )
