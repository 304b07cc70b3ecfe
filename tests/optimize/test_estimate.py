"""Estimates before spending: held against calls that a scripted LM counted, and never 0 where nothing is known."""

import json

import dspy
import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.prices import price_of
from dspy_mama.optimize.estimate import OtherCalls, PlanStep, Range, estimate_plan, estimate_table
from dspy_mama.optimize.estimate_dry import measure_program
from dspy_mama.retrieval.budget import estimate_tokens
from scripted import default_values, fields_of, scripted_lm, system_of, text_of
from systems.audit.parts import PAIR, auditor

PAIRS = [
    PAIR,
    {"question": "膝が痛いです。", "answer": "薬を二倍飲んでください。" * 20},
    {"question": "Q?", "answer": "A" * 900},
]
GPT = "openai/gpt-4o"


def priced(**settings):
    return dspy.LM(GPT, api_key="x", max_tokens=400, **settings)


def long_values(request):
    values = default_values(fields_of(request))
    return {name: "so " * 30 if isinstance(value, str) else value for name, value in values.items()}


def tokens_of(requests):
    texts = [system_of(request) + "".join(text_of(m) for m in request.messages) for request in requests]
    return sum(map(estimate_tokens, texts))


@pytest.mark.parametrize("system", ["baseline", "rag"])
@pytest.mark.parametrize("ablation", ["full", "ma", "ek", "ma_without_ma2", "mpa"])
def test_calls_are_exact_and_tokens_are_bounded_for_every_program(system, ablation):
    lm = scripted_lm(long_values, max_tokens=400)
    program = auditor(lm, system=system, ablation=ablation)
    costs = measure_program(program, PAIRS)
    assert not lm.requests, "an estimate must ask no LM"
    estimate = estimate_plan([PlanStep("evaluate", len(PAIRS), len(PAIRS))], costs)
    for pair in PAIRS:
        program(**pair)
    assert estimate.calls.expected == len(lm.requests)
    assert estimate.calls.most == 2 * len(lm.requests)
    sent = tokens_of(lm.requests)
    assert 0.5 * sent < sum(row.prompt_tokens.expected for row in estimate.rows) < 2 * sent
    assert sent < sum(row.prompt_tokens.most for row in estimate.rows)


def test_the_bound_holds_even_where_every_reply_is_asked_for_twice_and_cut():
    lm = scripted_lm(lambda request: "no JSON at all " * 250, max_tokens=400)
    program = auditor(lm)
    estimate = estimate_plan([PlanStep("evaluate", 3, 3)], measure_program(program, PAIRS))
    for pair in PAIRS:
        program(**pair)
    assert len(lm.requests) > estimate.calls.expected
    assert len(lm.requests) <= estimate.calls.most
    assert tokens_of(lm.requests) <= sum(row.prompt_tokens.most for row in estimate.rows)


def test_demonstrations_make_prompts_longer_by_a_material_and_a_reply_each():
    (first, *_), demos = measure_program(auditor(priced(), ablation="ma"), [PAIR]), 4
    assert first.prompt(demos) - first.prompt() == demos * (first.user_most + first.reply)
    lm = scripted_lm(max_tokens=400)
    program = auditor(lm, ablation="ma_without_ma2", system="baseline")
    shown = dspy.Example(**PAIR, **{f"{d}_{k}": "x" * 240 if k == "reason" else True
                                    for d in ("medical", "ethical", "legal") for k in ("reason", "risk")})  # fmt: skip
    costs = {cost.name: cost for cost in measure_program(program, [PAIR])}
    dict(program.named_predictors())["initial.assess"].demos = [shown] * demos
    program(**PAIR)
    assert tokens_of(lm.requests[:1]) <= costs["initial.assess"].prompt(demos, most=True) * 1.02


def test_money_follows_the_price_list_and_unknown_is_never_zero():
    known = estimate_plan([PlanStep("evaluate", 10, 10)], measure_program(auditor(priced()), [PAIR]))
    row = next(row for row in known.rows if row.role == "judge")
    assert row.cost.expected == pytest.approx(row.prompt_tokens.expected * 2.5e-6 + row.new_tokens.expected * 1e-5)
    assert known.cost.most > known.cost.expected > 0
    mixed = auditor({"default": priced(), "judge": scripted_lm()})
    unknown = estimate_plan([PlanStep("evaluate", 10, 10)], measure_program(mixed, [PAIR]))
    assert unknown.cost == Range(None, None)
    assert "unknown" in estimate_table(unknown).splitlines()[-2]
    assert price_of(None) is None


def test_a_model_without_a_token_limit_has_no_upper_bound_of_tokens():
    program = auditor(dspy.LM(GPT, api_key="x"))
    estimate = estimate_plan([PlanStep("evaluate", 10, 10)], measure_program(program, [PAIR]))
    assert estimate.tokens.most is None
    assert estimate.calls.most == 120
    assert estimate.cost.most is None
    assert estimate.cost.expected > 0


def test_a_budget_holds_from_above_and_is_told():
    costs = measure_program(auditor(priced()), [PAIR])
    estimate = estimate_plan([PlanStep("evaluate", 100, 100)], costs, {"calls": 90, "cost": 0.5, "tokens": None})
    assert estimate.calls == Range(90, 90)
    assert estimate.cost == Range(0.5, 0.5)
    assert "the budget stops it at 90 calls, 0.5 cost" in estimate_table(estimate)


def test_calls_besides_the_program_are_rows_of_their_own():
    other = OtherCalls("reflector", GPT, 4, 8, 1000, 3000, 500, (1e-6, 2e-6))
    estimate = estimate_plan([PlanStep("reflect", 0, 0, others=(other,))], [])
    (row,) = estimate.rows
    assert (row.calls, row.prompt_tokens) == (Range(4, 8), Range(4000, 24000))
    assert row.cost.most == pytest.approx(24000e-6 + 4000 * 2e-6)
    assert json.loads(json.dumps(estimate.to_dict()))["total"]["calls"] == {"expected": 4, "at_most": 8}


def test_a_dry_run_teaches_the_users_table_of_specialists_nothing(tmp_path):
    table = tmp_path / "table.json"
    program = auditor(priced(), router={"table": str(table)})
    measure_program(program, [PAIR])
    assert not table.exists()
    assert program.router.table.find(PAIR["question"]) is None


def test_a_plan_without_pairs_is_refused():
    with pytest.raises(DeclarationError, match="nothing to estimate"):
        measure_program(auditor(priced()), [])
