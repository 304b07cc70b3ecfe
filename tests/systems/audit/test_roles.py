"""The right LM gets the right role's requests, in every way a program can be called."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest

from scripted import kind_of, scripted_lm, user_of
from systems.audit.parts import auditor

ROLE_OF = {"routing": "router", "initial": "assessor", "verification": "verifier", "consensus": "judge"}
PAIRS = [{"question": f"question {n}?", "answer": f"answer {n}."} for n in range(6)]


def in_order(program):
    return [program(**pair) for pair in PAIRS]


def in_async_code(program):
    async def all_pairs():
        return await asyncio.gather(*(program.acall(**pair) for pair in PAIRS))

    return asyncio.run(all_pairs())


def in_dspy_parallel(program):
    parallel = dspy.Parallel(num_threads=4, disable_progress_bar=True)
    return parallel([(program, dspy.Example(**pair).with_inputs("question", "answer")) for pair in PAIRS])


def in_dspy_evaluate(program):
    examples = [dspy.Example(**pair).with_inputs("question", "answer") for pair in PAIRS]
    evaluate = dspy.Evaluate(devset=examples, metric=lambda *_: 1.0, num_threads=4, display_progress=False)
    return [prediction for _, prediction, _ in evaluate(program).results]


def in_threads(program):
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda pair: program(**pair), PAIRS))


def in_a_running_loop(program):
    async def cell():
        return [program(**pair) for pair in PAIRS]

    return asyncio.run(cell())


WAYS = [in_order, in_async_code, in_dspy_parallel, in_dspy_evaluate, in_threads, in_a_running_loop]


@pytest.mark.parametrize("way", WAYS)
def test_each_role_has_its_own_lm(way):
    lms = {role: scripted_lm(name=f"scripted/{role}") for role in ROLE_OF.values()}
    other = scripted_lm(name="scripted/global")
    with dspy.context(lm=other):
        audits = way(auditor(lms))
    assert other.requests == []
    for role, lm in lms.items():
        assert {ROLE_OF[kind_of(request)] for request in lm.requests} == {role}
        assert len(lm.requests) == (3 if role == "verifier" else 1) * len(PAIRS)
    assert [audit.phases["consensus"].model for audit in audits] == ["scripted/judge"] * len(PAIRS)


@pytest.mark.parametrize("way", WAYS)
def test_a_role_without_its_own_lm_takes_the_default_and_the_others_stay(way):
    verifier, default = scripted_lm(name="scripted/v"), scripted_lm(name="scripted/d")
    way(auditor({"verifier": verifier, "default": default}))
    assert {kind_of(request) for request in verifier.requests} == {"verification"}
    assert {kind_of(request) for request in default.requests} == {"routing", "initial", "consensus"}


@pytest.mark.parametrize("way", [way for way in WAYS if way is not in_threads])
def test_roles_without_an_lm_take_the_one_of_the_context(way):
    verifier, mine, other = (scripted_lm(name=f"scripted/{name}") for name in "vmo")
    program = auditor({"verifier": verifier})
    dspy.configure(lm=other)
    with dspy.context(lm=mine):
        way(program)
    assert other.requests == []
    assert {kind_of(request) for request in verifier.requests} == {"verification"}
    assert {kind_of(request) for request in mine.requests} == {"routing", "initial", "consensus"}


def test_threads_started_by_hand_take_the_configured_lm():
    # DSPy's own rule: such threads do not see `dspy.context`; an LM bound to its role does not depend on it.
    configured, context = scripted_lm(name="scripted/c"), scripted_lm(name="scripted/x")
    dspy.configure(lm=configured)
    with dspy.context(lm=context):
        in_threads(auditor(None))
    assert context.requests == []
    assert len(configured.requests) == 6 * len(PAIRS)


def test_two_contexts_side_by_side_do_not_mix():
    program = auditor(None)
    lms = [scripted_lm(name=f"scripted/{n}") for n in range(4)]

    def work(n):
        with dspy.context(lm=lms[n]):
            program(question=f"thread {n}?", answer="a")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    for n, lm in enumerate(lms):
        assert len(lm.requests) == 6
        assert all(f"thread {n}?" in user_of(request) for request in lm.requests)


def test_set_lm_of_dspy_binds_every_role():
    lm = scripted_lm()
    program = auditor(None)
    program.set_lm(lm)
    in_order(program)
    assert len(lm.requests) == 6 * len(PAIRS)


def test_sync_and_async_give_the_same_calls():
    seen = []
    for way in (in_order, in_async_code):
        lm = scripted_lm()
        way(auditor(lm))
        seen.append(sorted((request.system, user_of(request)) for request in lm.requests))
    assert seen[0] == seen[1]


def test_optimisers_keep_each_roles_lm():
    lms = {role: scripted_lm(name=f"scripted/{role}") for role in ROLE_OF.values()}
    example = dspy.Example(**PAIRS[0], medical_risk=True).with_inputs("question", "answer")
    compiled = dspy.LabeledFewShot(k=1).compile(auditor(lms), trainset=[example])
    with dspy.context(lm=scripted_lm(name="scripted/global")):
        in_order(compiled)
    for role, lm in lms.items():
        assert {ROLE_OF[kind_of(request)] for request in lm.requests} == {role}
