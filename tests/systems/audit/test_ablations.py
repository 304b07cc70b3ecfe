import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.systems.audit import ABLATIONS, SYSTEMS
from scripted import kind_of, scripted_lm, user_of
from systems.audit.parts import PAIR, MemoryRetriever, auditor, calls, kinds

FULL = ["consensus", "initial", "routing", "verification", "verification", "verification"]
KINDS = {
    "full": FULL,
    "ma": [kind for kind in FULL if kind != "routing"],
    "ma_mpa": FULL,
    "ma_ek": [kind for kind in FULL if kind != "routing"],
    "ma_without_ma2": ["consensus", "initial"],
    "mpa": ["routing", "verification", "verification", "verification"],
    "ek": ["initial"],
}


def run(system, ablation, **overrides):
    lm, retriever = scripted_lm(), MemoryRetriever()
    audit = auditor(lm, system, ablation, retriever, **overrides)(**PAIR)
    return audit, lm, retriever


@pytest.mark.parametrize("ablation", ABLATIONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_an_ablation_makes_the_calls_of_its_phases(system, ablation):
    audit, lm, _ = run(system, ablation)
    assert kinds(lm) == sorted(KINDS[ablation])
    phases = {"initial": "initial" in KINDS[ablation], "verification": "verification" in KINDS[ablation]}
    phases["consensus"] = "consensus" in KINDS[ablation]
    assert list(audit.phases) == [name for name, runs in phases.items() if runs]
    assert audit.final_phase == list(audit.phases)[-1]


@pytest.mark.parametrize("ablation", [name for name in ABLATIONS if name != "full"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_an_ablation_changes_the_calls_of_its_system(system, ablation):
    full, other = calls(run(system, "full")[1]), calls(run(system, ablation)[1])
    if ablation == "ma_mpa" and SYSTEMS[system].context == "none":
        # These systems read no documents: to take external knowledge away from them takes nothing away.
        assert other == full
    else:
        assert other != full


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_ablations_of_a_system_differ_from_one_another(system):
    seen = {name: tuple(calls(run(system, name)[1])) for name in ABLATIONS}
    reads = SYSTEMS[system].context != "none"
    # Without documents, `full` is `ma_mpa` and `ma_ek` is `ma`.
    assert len(set(seen.values())) == (len(ABLATIONS) if reads else len(ABLATIONS) - 2)


@pytest.mark.parametrize("ablation", ABLATIONS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_evidence_is_shown_exactly_where_knowledge_is_on(system, ablation):
    _, lm, retriever = run(system, ablation)
    knowledge = SYSTEMS[system].context != "none" and ABLATIONS[ablation].knowledge
    reader = "initial" if ablation == "ek" else "verification"
    shown = [kind_of(request) for request in lm.requests if "evidence on" in user_of(request)]
    assert set(shown) == ({reader} if knowledge else set())
    assert bool(retriever.queries) is knowledge


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_roles_are_named_exactly_where_professional_roles_are_on(ablation):
    _, lm, _ = run("rag", ablation)
    named = {line for r in lm.requests for line in user_of(r).splitlines() if line.startswith(("lawyer", "general"))}
    verifies = "verification" in KINDS[ablation]
    if not verifies:
        assert named == set()
    else:
        assert all(line.startswith("lawyer" if ABLATIONS[ablation].roles else "general") for line in named)


def test_systems_differ_only_in_context_and_in_the_judges_prompt():
    prompts = {
        name: {k: s for k, s, _ in calls(run(name, "full")[1]) if k in ("initial", "consensus")} for name in SYSTEMS
    }
    assert len({prompt["initial"] for prompt in prompts.values()}) == 1
    assert prompts["baseline"]["consensus"] != prompts["enhanced"]["consensus"]
    assert len({prompts[name]["consensus"] for name in SYSTEMS if name != "baseline"}) == 1


@pytest.mark.parametrize(
    ("evidence", "notes", "passages"), [("notes", True, False), ("topk", False, True), ("hybrid", True, True)]
)
@pytest.mark.parametrize("prompt", ["base", "enhanced"])
def test_the_judge_sees_the_evidence_that_was_chosen(prompt, evidence, notes, passages):
    _, lm, _ = run("rag", "full", evidence=evidence, judge_prompt=prompt)
    (judge,) = [request for request in lm.requests if kind_of(request) == "consensus"]
    assert ("- verification by" in user_of(judge)) is notes
    assert ("evidence on" in user_of(judge)) is passages
    assert ("Where they differ, say which reason" in judge.system) is (prompt == "enhanced")


def test_passages_for_the_judge_need_documents():
    with pytest.raises(DeclarationError, match="context=none"):
        auditor(None, "baseline", evidence="topk")


def test_without_knowledge_the_judge_of_a_passage_system_reads_the_notes():
    _, lm, _ = run("rag", "ma_mpa", evidence="topk")
    (judge,) = [request for request in lm.requests if kind_of(request) == "consensus"]
    assert "- verification by" in user_of(judge)


def test_without_ma2_the_judge_has_a_simplified_prompt():
    _, lm, _ = run("rag", "ma_without_ma2")
    judge = next(request for request in lm.requests if kind_of(request) == "consensus")
    assert "specialists" not in judge.system.split("Task:")[1]


@pytest.mark.parametrize("probability", ["token", "stated", "none"])
def test_the_source_of_probabilities_changes_what_is_asked(probability):
    lm = scripted_lm(lambda r: {n: {"noul": 0.8} if n.endswith("risk") else "x" for n in _fields(r)})
    if probability != "stated":
        lm = scripted_lm()
    audit = auditor(lm, ablation="ma", probability=probability)(**PAIR)
    asked = [request.config.logprobs for request in lm.requests]
    assert asked == [5 if probability == "token" else None] * 5
    assert audit.phases["verification"].legal.probability_source == ("stated" if probability == "stated" else "none")
    assert audit.medical_verdict == "risky"


def _fields(request):
    from scripted import fields_of

    return fields_of(request)


@pytest.mark.parametrize(
    ("system", "ablation", "overrides", "named"),
    [
        ("raggy", "full", {}, "rag_foreign"),
        ("rag", "fully", {}, "ma_without_ma2"),
        ("rag", "full", {"evidence": "all"}, "evidence"),
        ("rag", "full", {"colour": "red"}, "colour"),
        ("rag", "full", {"thresholds": {"medical": 2.0}}, "thresholds"),
        ("rag", "full", {"thresholds": {"financial": 0.5}}, "thresholds"),
    ],
)
def test_a_wrong_name_or_setting_is_a_declaration_error_that_names_it(system, ablation, overrides, named):
    with pytest.raises(DeclarationError, match=named):
        auditor(None, system, ablation, **overrides)
