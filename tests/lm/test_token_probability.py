import json
import math

import dspy
import pytest

from dspy_mama.lm.predict import reading_of
from dspy_mama.lm.token_probability import TokenScore, label_probability
from lm.signatures import PAIR, Judge, judge
from scripted import label_tokens, response, scripted_lm


def plain(text):
    return TokenScore(text, -0.01, ((text, -0.01),))


def token(text, **probabilities):
    top = tuple((name.replace("_", " "), math.log(p)) for name, p in probabilities.items())
    return TokenScore(text, dict(top).get(text, -0.1), top)


def test_each_label_has_the_probability_of_its_own_token():
    tokens = [
        plain('{"medical_risk":'), token(" true", _true=0.9, _false=0.1), plain(', "legal_risk":'),
        token(" false", _true=0.2, _false=0.6), plain("}"),
    ]  # fmt: skip
    assert label_probability(tokens, "medical_risk") == pytest.approx(0.9)
    assert label_probability(tokens, "legal_risk") == pytest.approx(0.25)
    assert label_probability(tokens, "risk") is None
    assert label_probability(tokens, "ethical_risk") is None


@pytest.mark.parametrize(
    "reason", [r"\"risk\": false is what it says", "'risk': false", "risk: false", r"{\"risk\":false}", "risk"]
)
def test_a_labels_name_inside_a_reason_is_not_its_place(reason):
    tokens = [
        plain('{"reason": "'), token(reason, true=0.01, false=0.99), plain('", "risk": '),
        token("true", true=0.75, false=0.25), plain("}"),
    ]  # fmt: skip
    assert label_probability(tokens, "risk") == pytest.approx(0.75)


@pytest.mark.parametrize(
    "pieces",
    [
        [token(" true", _true=0.8, _false=0.2)],
        [plain(" "), token("true", true=0.8, false=0.2)],
        [token("tr", tr=0.8, f=0.2), plain("ue")],
        [token("t", t=0.8, fal=0.2), plain("rue")],
        [token(' "True', **{'_"True': 0.8, '_"False': 0.2}), plain('"')],
        [token("true}", **{"true}": 0.5, "true": 0.3, "false}": 0.2})],
        [token(" TRUE", _TRUE=0.4, _true=0.4, _False=0.1, false=0.1)],
        [token("true", true=0.4, false=0.1, null=0.3, the=0.1, fact=0.1)],
    ],
)
def test_split_quoted_and_joined_label_tokens_are_read(pieces):
    assert label_probability([plain('{"risk":'), *pieces], "risk") == pytest.approx(0.8)


def test_the_last_statement_of_a_label_counts():
    tokens = [
        plain('<think>{"risk": '), token("false", true=0.1, false=0.9), plain('}</think>{"risk": '),
        token("true", true=0.6, false=0.4), plain("}"),
    ]  # fmt: skip
    assert label_probability(tokens, "risk") == pytest.approx(0.6)


def test_a_missing_side_is_bounded_by_the_least_likely_alternative():
    probability = label_probability([plain('{"risk":'), token("true", true=0.97, the=0.02, a=0.01)], "risk")
    assert probability == pytest.approx(0.97 / 0.98)


@pytest.mark.parametrize(
    "score",
    [
        TokenScore("true", -0.1, ()),
        TokenScore("true", -0.1, (("true", -0.1),)),
        TokenScore("true", -0.1, (("false", -math.inf),)),
        TokenScore("true", 0.0, (("true", 0.0), ("x", -9999.0))),
        TokenScore("true", math.nan, ()),
        TokenScore("true", -0.1, (("the", -1.0), ("a", -2.0)))._replace(token="the"),
    ],
)
def test_without_alternatives_there_is_no_probability(score):
    assert label_probability([plain('{"risk": '), score], "risk") is None


def test_no_tokens_give_no_probability():
    assert label_probability([], "risk") is None


@pytest.mark.parametrize("p_true", [0.999999, 0.5, 0.000001])
def test_probabilities_are_never_exactly_zero_or_one(p_true):
    tokens = [plain('{"risk":'), token("true", true=p_true, false=1 - p_true)]
    assert 0 < label_probability(tokens, "risk") < 1


def scored(p_true, label="true", reason='"why"'):
    pieces = [f'{{"reason": {reason}, "risk":', (f" {label}", p_true), "}"]
    text = "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)
    return lambda request: response(text, request, logprobs=label_tokens(pieces))


def test_the_predictor_asks_for_logprobs_and_reads_them():
    lm = scripted_lm(lambda request: scored(0.7)(request))
    reading = reading_of(judge(lm)(**PAIR))
    assert reading.probabilities == {"risk": pytest.approx(0.7)}
    assert lm.requests[0].config.logprobs == 5


def test_a_label_read_at_the_second_ask_has_the_second_replys_probability():
    replies = iter([scored(0.9, '"maybe"'), scored(0.3, "false", '"second"')])
    reading = reading_of(judge(scripted_lm(lambda request: next(replies)(request)))(**PAIR))
    assert reading.value("reason") == "why"
    assert (reading.value("risk"), reading.probabilities["risk"]) == (False, pytest.approx(0.3))


def test_a_label_read_at_first_keeps_its_probability():
    replies = iter([scored(0.9, reason="null"), scored(0.3)])
    reading = reading_of(judge(scripted_lm(lambda request: next(replies)(request)))(**PAIR))
    assert (reading.value("reason"), reading.probabilities["risk"]) == ("why", pytest.approx(0.9))


def test_log_probabilities_that_are_null_are_no_crash():
    from dspy_mama.lm.exchange import _score

    score = _score({"token": "true", "logprob": None, "top_logprobs": [{"token": "true", "logprob": None}]})
    assert label_probability([plain('{"risk": '), score], "risk") is None


def test_without_logprobs_there_is_a_label_and_no_probability():
    lm = scripted_lm(lambda request: {"reason": "x", "risk": True})
    reading = reading_of(judge(lm, logprobs=False)(**PAIR))
    assert lm.requests[0].config.logprobs is None
    assert reading.probabilities == {"risk": None}


class TestStated:
    @pytest.fixture
    def stated(self):
        from dspy_mama.lm.stated import with_stated_probability

        return with_stated_probability(Judge, ("risk",))

    @pytest.mark.parametrize(("value", "p"), [({"noul": 0.8}, 0.8), (0.2, 0.2), ("80%", 0.8), ({"noul": "0.35"}, 0.35)])
    def test_the_label_follows_the_stated_probability(self, stated, value, p):
        lm = scripted_lm(lambda request: {"reason": "x", "risk": value})
        prediction = judge(lm, signature=stated)(**PAIR)
        assert prediction.risk.probability == p
        assert bool(prediction.risk) is (p >= 0.5)

    @pytest.mark.parametrize("value", [10.0, {"noul": 10.0}, -0.1, "high", None, {"noul": None}, True])
    def test_what_is_no_probability_is_asked_again_and_then_a_parse_outcome(self, stated, value):
        lm = scripted_lm(lambda request: {"reason": "x", "risk": value})
        prediction = judge(lm, signature=stated)(**PAIR)
        assert prediction.risk is None
        assert reading_of(prediction).outcomes["risk"].kind == "parse"
        assert len(lm.requests) == 2

    def test_servers_with_schemas_are_offered_an_enum(self, stated):
        lm = scripted_lm(lambda request: {"reason": "x", "risk": {"noul": 0.5}})
        judge(lm, signature=stated)(**PAIR)
        schema = lm.requests[0].config.response_format["schema"]["properties"]["risk"]
        options = schema["properties"]["noul"]["enum"]
        assert (options[0], options[-1], len(options)) == (0.0, 1.0, 21)
        assert lm.requests[0].config.logprobs is None

    def test_a_threshold_of_the_predictor_moves_the_label_and_survives_a_round_trip(self, stated):
        lm = scripted_lm(lambda request: {"reason": "x", "risk": {"noul": 0.6}})
        predictor = judge(lm, signature=stated)
        predictor.fields = {"risk": {"threshold": 0.7}}
        assert bool(predictor(**PAIR).risk) is False
        predictor.lm = None
        loaded = judge(signature=stated)
        loaded.load_state(json.loads(json.dumps(predictor.dump_state())))
        with dspy.context(lm=lm):
            assert bool(loaded(**PAIR).risk) is False
