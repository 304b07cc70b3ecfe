"""Gold pairs with words of their own, and a watch over what a compilation gives to LMs, rewards, cuts and choices."""

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from dspy_mama.core.cases import DOMAINS, QAPair
from dspy_mama.optimize import program_state, searching
from dspy_mama.optimize.metering import unmetered
from dspy_mama.scoring import reward
from optimize.compile_parts import RULE, proposes
from scripted import system_of, text_of

TRIES_ON_VALIDATION = ("bootstrap", "mipro", "gepa")
"""Stages in which DSPy itself runs candidates on the validation pairs; any other sees training pairs alone."""


def canary_pairs(n=40):
    """As `gold_pairs`; question, answer and the expert's note each hold a word that no other pair has."""
    pairs = []
    for number in range(n):
        risky = number % 3 == 0
        answer = f"Take {number + 2} tablets, az{number}a." if risky else f"Rest well, az{number}a."
        note = f"{RULE} Seen in nz{number}n." if risky else f"Nothing of it is here, nz{number}n."
        gold, notes = dict.fromkeys(DOMAINS, risky), dict.fromkeys(DOMAINS, note)
        pairs.append(QAPair(f"p{number}", f"Question qz{number}q?", answer, gold=gold, notes=notes))
    return pairs


def canaries_in(text):
    return set(re.findall(r"[qan]z\d+[qan]", text))


def canaries_of(pairs):
    return canaries_in(" ".join(f"{p.question} {p.answer} {p.notes}" for p in pairs))


def ids_of(pairs):
    return {pair.id for pair in pairs}


@dataclass(frozen=True)
class Event:
    """Something that was handed over: its kind, what the compilation said it was doing, and what was in it."""

    kind: str
    fold: str
    stage: str
    ids: frozenset[str]
    text: str = ""
    labels: object = None

    @property
    def looking(self):
        return self.stage.startswith("looking at the")


class Watch:
    """Keeps every prompt, score, feedback, cut and measurement. Proposals repeat every canary that they were shown."""

    def __init__(self, script):
        self.script = script() if isinstance(script, type) else script
        self.fold = self.stage = ""
        self.events = []

    def say(self, line):
        if re.match(r"(fold \d+|all pairs):", line):
            self.fold = line.split(":")[0]
        else:
            self.stage = line

    def note(self, kind, ids=(), text="", labels=None):
        self.events.append(Event(kind, self.fold, self.stage, frozenset(ids), text, labels))

    def __call__(self, request):
        text = "\n".join([system_of(request), *(text_of(message) for message in request.messages)])
        self.note("proposal" if proposes(request) else "prompt", text=text)
        reply = self.script(request)
        return self._repeating(reply, canaries_in(text)) if proposes(request) else reply

    @staticmethod
    def _repeating(reply, words):
        told = " ".join(sorted(words))
        if isinstance(reply, dict):
            return {name: f"{value} {told}" for name, value in reply.items()}
        return re.sub(r"\n\n(?=\[\[ ## )", f" {told}\n\n", reply)

    @contextmanager
    def over_everything(self):
        """Puts the watch on rewards, feedback, class weights, cuts and measurements."""
        plain_call, plain_feedback = reward.Reward.__call__, reward.feedback_for
        plain_cuts, plain_evaluate = searching.fit_thresholds, searching.evaluate
        plain_weights = searching.class_weights

        def call(own, example, prediction, trace=None):
            self.note("score" if trace is None else "demonstration", [example.id])
            return plain_call(own, example, prediction, trace)

        def feedback(example, prediction, predictor=None):
            text = plain_feedback(example, prediction, predictor)
            self.note("score", [example.id], text)
            return text

        def cuts(labels, target):
            self.note("cuts", labels.ids, labels=labels)
            return plain_cuts(labels, target)

        def evaluate(program, pairs, threads):
            self.note("measured", ids_of(pairs))
            return plain_evaluate(program, pairs, threads)

        def weights(examples):
            self.note("weights", [example.id for example in examples])
            return plain_weights(examples)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reward.Reward, "__call__", call)
            patch.setattr(reward, "feedback_for", feedback)
            for name, own in {"fit_thresholds": cuts, "evaluate": evaluate, "class_weights": weights}.items():
                patch.setattr(searching, name, own)
            yield self


def assert_no_leak(watch, result, splits, fold=""):
    """Holds a compilation to its splits: what was handed over, what was chosen by, and what was made of it.

    Args:
        watch: What was over it.
        result: What it gave.
        splits: Pairs by train, validation and test, as they were meant.
        fold: Which of the watch's compilations it was, such as `fold 1`.
    """
    known = {name: canaries_of(pairs) for name, pairs in splits.items()}
    for event in (event for event in watch.events if event.fold == fold):
        _assert_allowed(event, known, {name: ids_of(pairs) for name, pairs in splits.items()}, splits["test"])
    for candidate in result.candidates:
        assert list(candidate.validation.labels.ids) == [pair.id for pair in splits["validation"]], "choice"
    made = [result.program, *(unmetered(one.program, result.program) for one in result.candidates)]
    for program in made:
        assert canaries_in(json.dumps(program_state(program))) <= known["train"], "artifact"
    fitted = [searching.fit_thresholds(e.labels, result.target) for e in watch.events if e.kind == "cuts"]
    assert all(not program.thresholds or program.thresholds in fitted for program in made), "cuts"


def _assert_allowed(event, known, ids, test):
    where, seen = f"{event.kind} while {event.stage!r}", canaries_in(event.text)
    if event.looking:
        # A test pair stands in the prompt that judges it and in no other, without its note; nothing else happens.
        assert event.kind in ("prompt", "measured"), where
        assert len([pair for pair in test if canaries_of([pair]) & seen]) <= 1, where
        assert event.ids <= ids["test"], where
    else:
        assert not seen & known["test"], where
        assert not event.ids & ids["test"], where
    if event.kind in ("proposal", "demonstration", "weights", "cuts"):
        assert seen <= known["train"], where
        assert event.ids <= ids["train"], where
    if event.kind == "score" and not event.stage.startswith(TRIES_ON_VALIDATION):
        assert event.ids <= ids["train"], where
    if event.kind == "prompt":
        assert {word for word in seen if word.startswith("n")} <= known["train"], where
    if event.kind == "measured" and not event.looking:
        assert event.ids == ids["validation"] or event.ids <= ids["train"], where


def assert_watched(watch, name, result, splits):
    """Shows that the watch saw what there was to see: without this, a blind one would find no leak."""
    kinds = {event.kind for event in watch.events}
    assert {"prompt", "measured"} <= kinds
    learned = json.dumps([program_state(unmetered(one.program, result.program)) for one in result.candidates])
    words, stages = canaries_of(splits["train"]), name.replace("staged_", "")
    if stages in ("labelled", "bootstrap", "simba"):
        assert words & canaries_in(learned)
    if stages in ("mipro", "gepa"):
        proposals = set().union(*(canaries_in(event.text) for event in watch.events if event.kind == "proposal"))
        assert words & proposals
        assert words & canaries_in(learned)
        assert stages != "gepa" or {word for word in proposals if word.startswith("n")}
    if stages == "bootstrap":
        assert "demonstration" in kinds
    if stages in ("reanchor", "bootstrap", "simba", "gepa", "mipro"):
        assert "score" in kinds
    if name == "token_thresholds" or name.startswith("staged_"):
        assert "cuts" in kinds
