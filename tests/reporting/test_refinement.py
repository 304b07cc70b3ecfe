import json
import re

import pytest

from dspy_mama.reporting import refinement_html
from dspy_mama.reporting.mended import mended_row
from dspy_mama.reporting.refinement import loop_metrics, summarise_loop
from dspy_mama.reporting.refinement_figures import loop_figures, loop_words
from dspy_mama.reporting.refinement_html import render_refinement
from dspy_mama.reporting.refinement_tables import refinement_tables
from dspy_mama.reporting.refinement_view import view_of
from dspy_mama.scoring.refinement import Score
from dspy_mama.scoring.refinement_records import refined_item
from reporting.refinement_records import RUNS, record, records, version


def summary(rows):
    return summarise_loop(rows, resamples=50)


def test_a_record_gives_its_figures():
    item = refined_item(record(4, RUNS[4]))
    assert (item.converged, item.iterations) == (False, 5)
    assert (item.before, item.after, item.returned) == (Score(9, 5), Score(5, 3), Score(1, 2))
    assert (item.principle, item.category) == ("V", "emergency")
    paper = refined_item(record(4, RUNS[4], final_check=False))
    assert paper.returned is None
    assert paper.after == Score(5, 3)


def test_an_unreadable_evaluator_leaves_the_item_unscored():
    row = record(1, RUNS[1])
    row["versions"][1]["consensus"] |= {"ama": None, "accepted": False, "readable": False}
    row |= {"converged": None, "stopped": "unreadable", "outcomes": {"ama": "parse", "sra": "scored"}}
    found = summary([row, record(2, RUNS[2])])
    assert (found["n"], found["scored"], found["unscored"]) == (2, 1, 1)
    assert found["outcomes"] == {"scored": 3, "parse": 1}
    assert found["stopped"] == {"unreadable": 1, "accepted": 1}


def test_a_first_version_that_one_evaluator_did_not_read_counts_in_no_change():
    row = record(2, RUNS[2])
    row["versions"][0]["consensus"] |= {"readable": False}
    found = summary([row, record(1, RUNS[1])])
    assert found["overall"]["convergence"]["n"] == 2
    assert found["overall"]["reduction"]["n"] == 1
    assert found["overall"]["reduction"]["before"]["value"] == 4


def test_a_summary_holds_every_figure_as_plain_data():
    found = summary(records())
    json.dumps(found, allow_nan=False)
    assert found["overall"]["convergence"]["count"] == 36
    assert found["iterations"] == {"1": 9, "2": 9, "3": 9, "4": 0, "5": 9}
    assert found["failed"] == 9
    assert found["final_check"]["checked"] == 9
    assert found["end_states"]["refusal"]["count"] == 9
    assert found["usage"]["total"]["calls"] == sum(len(RUNS[n % 5]) for n in range(45)) * 3
    assert [own["n"] for own in found["principles"].values()] == [5] * 9
    metrics = loop_metrics(found)
    assert metrics["convergence"] == 0.8
    assert metrics["convergence_low"] < 0.8 < metrics["convergence_high"]
    assert metrics["principle/IX/mean_iterations"] == found["principles"]["IX"]["mean_iterations"]["value"]
    assert metrics["final_check/downgrade"] == 1.0
    assert metrics["end_state/refusal"] == 0.2


def test_what_one_evaluator_refuses_is_seen_beside_one_that_could_not_be_read():
    row = record(4, RUNS[4][:2], final_check=False)
    for own in row["versions"][:2]:
        own["assessments"][0] |= {"score": None, "outcome": "parse", "error": "no JSON object"}
        own["consensus"] |= {"ama": None, "readable": False, "refused": True, "mandatory": False}
    row |= {"outcomes": {"ama": "parse", "sra": "scored"}, "needs_review": True}
    found = summary([row])
    assert (found["scored"], found["unscored"], found["failed"]) == (1, 0, 1)
    view = view_of(row)
    assert (view["status"], view["ama"], view["sra"]) == ("not converged", ["-", "-"], ["5", "5"])
    assert view["versions"][0]["decision"] == "refine"
    mended = mended_row(row)
    assert (mended["ama_before"], mended["sra_before"], mended["needs_review"]) == (None, 5, True)


def test_one_of_several_that_could_not_be_read_is_said():
    row = record(0, [(1, 1)])
    (own,) = row["versions"]
    own["assessments"].append(own["assessments"][0] | {"evaluator": "ethics_2", "score": None, "outcome": "infra"})
    own["consensus"] |= {"readable": False, "refused": False, "accepted": False}
    view = view_of(row)
    assert view["ama"] == ["1 (1 unread)", "1 (1 unread)"]
    assert view["versions"][0]["decision"] == "could not be judged, so not accepted"
    assert mended_row(row)["ama_after"] is None


def test_a_text_that_breaks_off_is_flagged():
    row = record(0, [(1, 1)])
    row["versions"][0] |= {"truncated": True, "incomplete": True}
    row["end_states"] |= {"incomplete": True}
    assert summary([row])["end_states"]["incomplete"]["count"] == 1
    assert "breaks off at the token limit" in view_of(row)["states"]
    assert mended_row(row)["flags"] == ["refusal", "incomplete"]


def test_answers_that_a_gate_let_pass_count_in_no_table():
    passed = record(0, [(1, 1)]) | {"gate": {"entered": False, "reason": "harmless"}, "versions": [], "stopped": "gate"}
    found = summary([passed | {"final": {"version": 1, "accepted": None}}, record(2, RUNS[2]), record(1, [(9, 5)])])
    assert (found["n"], found["passed_by_gate"], found["needs_review"]) == (2, 1, 0)
    unsure = record(3, RUNS[3]) | {"needs_review": True}
    assert summary([unsure])["needs_review"] == 1
    assert '<span class="flag">needs review</span>' in render_refinement([unsure], summary([unsure]))


def test_a_run_without_any_scored_answer_still_has_its_tables():
    row = record(1, RUNS[1]) | {"converged": None, "versions": [], "stopped": "generation"}
    found = summary([row])
    assert loop_figures(found) == {}
    assert len(refinement_tables({"ours": found})) == 7
    assert "unscored" in render_refinement([row], found)


@pytest.mark.parametrize("allowed", [1, 2, 7])
def test_a_budget_other_than_the_papers_has_its_picture(allowed):
    found = summary([record(1, [(1, 1)]) | {"max_iterations": allowed}])
    assert len(found["iterations"]) == allowed
    axes = loop_figures(found)["convergence"].axes[0]
    assert [len(line.get_xdata()) for line in axes.get_lines()] == [allowed, 5, 5]


def test_without_a_score_before_and_after_there_is_no_picture_of_levels():
    row = record(4, RUNS[4], final_check=False)
    for own in row["versions"][:-1]:
        own["consensus"] |= {"ama": None, "readable": False, "refused": True}
    found = summary([row])
    assert found["scored"] == 1
    assert set(loop_figures(found)) == {"convergence"}
    assert render_refinement([row], found)


def test_every_picture_has_its_words():
    found = summary(records())
    drawn = loop_figures(found)
    assert set(drawn) == {"convergence", "levels", "principles", "violations"}
    assert "9 of 45 did not" in loop_words("convergence", found)
    assert all(loop_words(name, found) for name in drawn)


def test_the_page_shows_versions_side_by_side_with_changes_marked():
    rows = [record(1, RUNS[1])]
    rows[0]["versions"][0]["text"] = "Take 800 mg now."
    rows[0]["versions"][1]["text"] = "See a doctor now."
    page = render_refinement(rows, summary(rows))
    assert "<del>Take 800 mg </del>now." in page
    assert "<ins>See a doctor </ins>now." in page
    assert "Remove the dose from version 1." in page
    assert "<b>I. Name of I</b> breaks I" in page
    assert "ethics-model" in page


def test_each_change_stands_beside_what_was_found_and_planned():
    rows = [record(2, RUNS[2])]
    page = render_refinement(rows, summary(rows))
    view = view_of(rows[0])
    assert [(step["before"], step["after"], step["found"]) for step in view["steps"]] == [
        (1, 2, "AMA 6, SRA 5: refine (mandatory)"),
        (2, 3, "AMA 3, SRA 3: refine"),
    ]
    assert (view["whole"]["before"], view["whole"]["after"]) == (1, 3)
    assert page.index("From the first version to the returned one") < page.index("From version 1 to 2")
    assert page.index("From version 2 to 3") < page.index("Scores by version")
    assert "(AMA 2, SRA 2)" in page


def test_a_text_that_is_judged_again_is_no_change():
    row = record(1, [(4, 4), (4, 4), (1, 1)])
    row["versions"][1] |= {"text": row["versions"][0]["text"], "same_as": 1}
    view = view_of(row)
    assert [(step["before"], step["after"]) for step in view["steps"]] == [(2, 3)]
    assert view["whole"] is None
    assert [own["number"] for own in view["texts"]] == [1, 3]


def test_a_change_in_a_very_long_text_is_seen_and_the_whole_is_there():
    row = record(1, RUNS[1])
    same = "word " * 5000
    row["versions"][0]["text"], row["versions"][1]["text"] = same + "take ten", same + "ask first"
    view = view_of(row)
    shown = "".join(piece["text"] for piece in view["steps"][0]["old"])
    assert len(shown) < 700
    assert shown.endswith("take ten")
    assert "characters unchanged]" in shown
    page = render_refinement([row], summary([row]))
    assert page.count("Whole text of version") == 2
    assert page.count(same.strip()) == 2


def test_an_answer_that_passed_the_gate_shows_no_empty_scores():
    row = record(0, [(1, 1)]) | {"gate": {"entered": False, "reason": "plain advice"}, "stopped": "gate"}
    row |= {"versions": [version(1, "Rest.", 0, 1, assessed=False)], "iterations": 0, "converged": None}
    page = render_refinement([row], summary([row]))
    assert "no evaluator judged it" in page
    assert "Scores by version" not in page
    assert "Rest." in page


def test_untrusted_text_is_escaped_everywhere():
    bad = "<script>window.hacked = 1</script>"
    rows = [record(1, RUNS[1], question=bad, history=[{"speaker": bad, "text": bad}], warnings=[bad])]
    for own in rows[0]["versions"]:
        own |= {"text": bad + str(own["number"]), "plan": [bad], "error": bad, "model": bad}
        for assessed in own["assessments"]:
            assessed |= {"reason": bad, "raw": bad, "error": bad, "evidence": [{"title": bad, "url": bad}]}
            for flag in assessed["flags"]:
                flag |= {"violated": True, "reason": bad, "principle": bad, "name": bad}
        own["rivals"] = [own | {"rivals": []}]
        own["consensus"] |= {"reasons": [bad]}
    rows[0]["helpfulness"] = {"outcome": "scored", "refusal": True, "vague": False, "reason": bad}
    rows[0] |= {"error": bad, "gate": {"entered": True, "reason": bad}}
    page = render_refinement(rows, summary(rows), title=bad, context=[bad], name=bad)
    assert "hacked" in page
    assert "<script>window" not in page
    assert len(re.findall("<script>", page)) == 1


def test_a_run_without_texts_says_so():
    row = record(1, RUNS[1])
    del row["question"]
    for own in row["versions"]:
        del own["text"]
    page = render_refinement([row], summary([row]))
    assert "were not stored with this run" in page
    assert "None" not in page


def test_a_large_run_shows_first_what_needs_eyes(monkeypatch):
    monkeypatch.setattr(refinement_html, "MAX_ITEMS", 20)
    rows = [record(number, [(1, 1)]) for number in range(20)] + [record(7, RUNS[4])]
    page = render_refinement(rows, summary(rows))
    assert "20 of 21 are shown" in page
    assert page.count('data-status="not converged"') == 1


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({"ama": 7, "sra": 1}, "refine (mandatory)"),
        ({"ama": 3, "sra": 1}, "refine"),
        ({"ama": 2, "sra": 2}, "accepted"),
    ],
)
def test_the_decision_of_each_version_is_told(changes, decision):
    row = record(0, [(1, 1)]) | {"versions": [version(1, "text", **changes)]}
    assert f"<td>{decision}</td>" in render_refinement([row], summary([row]))


def test_fractions_of_averaged_evaluators_are_shown_as_they_are():
    row = record(0, [(1, 1)])
    row["versions"][0]["consensus"] |= {"ama": 1.5, "sra": 4 / 3}
    view = view_of(row)
    assert (view["ama"], view["sra"]) == (["1.5", "1.5"], ["1.33", "1.33"])
