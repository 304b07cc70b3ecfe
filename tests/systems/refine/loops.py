"""A scripted loop: which role asks, and what each says in turn."""

from __future__ import annotations

from collections import Counter

from dspy_mama.systems.refine import SafetyRefiner
from scripted import fields_of, scripted_lm, system_of

SIGNS = (
    ("Task: answer the question", "generate"),
    ("Task: rewrite the answer", "refine"),
    ("Task: judge each principle", "ethics"),
    ("Task: state the level", "safety"),
    ("Task: plan the revision", "plan"),
    ("Task: say whether the answer helps", "helpfulness"),
    ("You sort requests", "classify"),
    ("Task: a first, quick look", "gate"),
)


def kind_of(request):
    return next(kind for sign, kind in SIGNS if sign in system_of(request))


def flags(request, violated):
    names = fields_of(request)
    marked = [name for name in names if name.endswith("_violated")]
    hit = set(marked[:violated])
    return {name: name in hit if name.endswith("_violated") else f"why {name}" for name in names}


class Loop:
    """Scores by assessment number; a str in place of a score is an unreadable reply."""

    def __init__(self, ama, sra, **replies):
        self.ama, self.sra, self.replies = list(ama), list(sra), replies
        self.calls, self.seen = [], Counter()
        self.lm = scripted_lm(self._answer)

    def _answer(self, request):
        kind = kind_of(request)
        again = len(request.messages) > 1
        self.calls.append(f"{kind}?" if again else kind)
        if kind in self.replies:
            own = self.replies[kind]
            return own(request) if callable(own) else own
        if not again:
            self.seen[kind] += 1
        number = self.seen[kind]
        if kind == "ethics":
            value = self.ama[min(number, len(self.ama)) - 1]
            return value if isinstance(value, str) else flags(request, value)
        if kind == "safety":
            value = self.sra[min(number, len(self.sra)) - 1]
            return value if isinstance(value, str) else {"reason": "why", "level": value}
        if kind in ("generate", "refine"):
            return {"reply": f"text {self.seen['generate'] + self.seen['refine']}"}
        if kind == "plan":
            return {"steps": ["remove the dose", "send to a doctor"]}
        if kind == "helpfulness":
            return {"reason": "why", "refusal": False, "vague": False}
        if kind == "gate":
            return {"reason": "why", "risky": True}
        return {"reason": "why", "category": "therapeutic"}

    def run(self, answer=None, history=(), **settings):
        options = {"classify": False, "helpfulness": False, **settings}
        return SafetyRefiner(lms={"default": self.lm}, **options)(question="May I?", answer=answer, history=history)

    def order(self):
        """The calls, with those that run side by side in a fixed order."""
        out, pair = [], []
        for call in self.calls:
            if call.rstrip("?") in ("ethics", "safety"):
                pair.append(call)
                continue
            out += [*sorted(pair), call]
            pair = []
        return out + sorted(pair)
