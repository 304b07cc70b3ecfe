import json

import pytest

from dspy_mama.core.chat_request import ChatRequest, ChatTurn
from dspy_mama.systems.refine import SafetyRefiner, failed_request, refine_record, request_key, without_texts
from scripted import response, scripted_lm
from systems.refine.loops import Loop

REQUEST = ChatRequest("r1", "May I?", history=(ChatTurn("patient", "Hello."),), principle="IV", source="table")


def record(loop, **settings):
    return refine_record(REQUEST, loop.run(**settings))


def test_every_version_is_kept_with_every_score_reason_and_plan():
    found = record(Loop([3, 0], [4, 1]), classify=True, helpfulness=True)
    json.dumps(found)
    first, second = found["versions"]
    assert (first["number"], first["origin"], first["text"], first["returned"]) == (1, "generated", "text 1", False)
    assert (second["origin"], second["text"], second["returned"]) == ("refined", "text 2", True)
    ethics, safety = first["assessments"]
    assert (ethics["score"], safety["score"]) == (3, 4)
    assert sum(flag["violated"] for flag in ethics["flags"]) == 3
    assert {flag["principle"] for flag in ethics["flags"]} == set(found["principles"])
    assert all(flag["reason"] for flag in ethics["flags"])
    assert first["plan"] == ["remove the dose", "send to a doctor"]
    assert (found["iterations"], found["converged"], found["final"]) == (
        2,
        True,
        {"version": 2, "assessed": True, "accepted": True},
    )
    assert found["category"]["value"] == "therapeutic"
    assert found["criteria"]["name"] == "ama"
    assert found["criteria"]["hash"]
    assert found["outcomes"] == {"ama": "scored", "sra": "scored"}


def test_what_every_role_cost_is_counted_once():
    found = record(Loop([3, 0], [4, 1]), classify=True, helpfulness=True)
    calls = {role: usage["calls"] for role, usage in found["usage"].items()}
    assert calls == {"generator": 2, "ethics": 2, "safety": 2, "planner": 1, "classifier": 1, "helpfulness": 1}
    assert sum(version["usage"]["calls"] for version in found["versions"]) == 7
    again = record(Loop(["?"], [1]), max_iterations=3, final_check=False)
    assert again["usage"]["generator"]["calls"] == 1
    assert [version["same_as"] for version in again["versions"]] == [None, 1, 1]


def test_a_missing_score_is_named_with_its_kind_and_is_no_number():
    found = record(Loop(["I refuse to judge this. Sorry, I cannot."], [1]), max_iterations=1)
    assert found["outcomes"]["ama"] != "scored"
    assert found["outcomes"]["sra"] == "scored"
    assert found["versions"][0]["consensus"]["ama"] is None
    assert found["converged"] is None


def test_a_failed_request_says_infra_so_that_it_is_tried_again():
    found = failed_request(REQUEST, "no route", 0, store_text=True)
    assert found["outcomes"] == {"ama": "infra", "sra": "infra"}
    assert found["error"] == "no route"


def test_texts_are_left_out_where_they_must_not_be_kept():
    bare = json.dumps(without_texts(record(Loop([3, 0], [4, 1]), classify=True, helpfulness=True)))
    for text in ("May I?", "text 1", "text 2", "why", "remove the dose", "Hello."):
        assert text not in bare
    assert '"score": 3' in bare


def test_a_changed_text_or_repeat_is_another_key():
    keys = {
        request_key(REQUEST),
        request_key(REQUEST, 1),
        request_key(ChatRequest("r1", "May I now?")),
        request_key(ChatRequest("r1", "May I?", answer="No.")),
    }
    assert len(keys) == 4


def holds(found, text):
    return text in json.dumps(found, ensure_ascii=False)


def test_replies_that_could_not_be_read_are_left_out_with_the_texts():
    secret = "Mrs Smith takes lithium"
    unreadable = dict.fromkeys(("classify", "helpfulness", "gate", "ethics"), secret)
    loop = Loop([0], [1], safety={"reason": "why", "level": secret}, **unreadable)
    found = record(loop, classify=True, helpfulness=True, gate="lm")
    bare = without_texts(found)
    assert holds(found, secret)
    assert not holds(bare, secret)
    assert bare["helpfulness"]["outcome"] == bare["versions"][0]["assessments"][1]["outcome"] == "parse"


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_text_that_could_not_be_read_is_left_out_with_the_texts(finish):
    loop = Loop([0], [1], generate=lambda asked: response('{"reply": "take lith', asked, finish=finish))
    found = record(loop)
    assert holds(found, "take lith")
    assert not holds(without_texts(found), "take lith")


def test_an_error_on_the_way_to_the_lm_stays_where_texts_are_left_out():
    found = without_texts(failed_request(REQUEST, "no route", 0, store_text=False))
    assert found["error"] == "no route"


def test_sampling_that_a_model_refuses_is_named_in_the_record():
    loop = Loop([0], [1])
    thinker = scripted_lm(loop._answer, name="openai/o3-mini", temperature=None, max_tokens=20_000)
    own = {"default": {"temperature": 0.7, "top_p": 0.9, "max_tokens": 512}, "safety": {"top_p": 0.5}}
    refiner = SafetyRefiner(
        lms={"default": loop.lm, "ethics": thinker}, sampling=own, ethics_evaluators=2, classify=False
    )
    found = refine_record(REQUEST, refiner(question="May I?"))
    assert found["sampling_not_sent"] == dict.fromkeys(("ethics_1", "ethics_2"), own["default"])
    assert any("max_tokens, temperature, top_p were asked without: ethics_1, ethics_2" in w for w in found["warnings"])
    assert record(Loop([0], [1]), sampling=own)["sampling_not_sent"] == {}


def test_what_the_candidates_of_a_text_that_passed_the_gate_cost_is_counted():
    found = record(Loop([0], [1], gate={"reason": "plain", "risky": False}), gate="lm", generators=2)
    assert {role: own["calls"] for role, own in found["usage"].items()} == {
        "generator_1": 1,
        "generator_2": 1,
        "gate": 1,
    }
    assert [rival["text"] for rival in found["versions"][0]["rivals"]] == ["text 2"]


def test_what_a_last_revision_cost_is_counted_once_where_a_candidate_could_not_be_read():
    asked = []

    def refine(request):
        asked.append(request)
        return "..." if len(asked) == 1 or len(request.messages) > 1 else {"reply": "mended"}

    found = record(Loop([9], [5], refine=refine), generators=2, max_iterations=1, final_check=False)
    last = found["versions"][-1]
    assert (last["text"], [rival["text"] for rival in last["rivals"]]) == ("mended", [None])
    calls = {role: own["calls"] for role, own in found["usage"].items()}
    assert calls["generator_1"] + calls["generator_2"] == 2 + len(asked)
