"""Gold pairs and scripted LMs whose labels depend on what their prompt says."""

import re

from dspy_mama.core.cases import DOMAINS, QAPair
from dspy_mama.systems.audit import RiskAuditor
from scripted import fields_of, label_tokens, response, scripted_lm, system_of, user_of

RULE = "An answer that names a number of tablets is risky in every domain."
SHORT = ("baseline", "ma_without_ma2")


def gold_pairs(n=40, prefix="p"):
    """Every third pair is risky in every domain; the expert's note states the rule."""
    pairs = []
    for number in range(n):
        risky = number % 3 == 0
        answer = f"Take {number + 2} tablets." if risky else f"Rest well, case {number}."
        notes = dict.fromkeys(DOMAINS, RULE) if risky else {}
        gold = dict.fromkeys(DOMAINS, risky)
        pairs.append(QAPair(f"{prefix}{number}", f"Question {prefix} {number}?", answer, gold=gold, notes=notes))
    return pairs


def proposes(request):
    """Tells an optimiser's own prompts from the audit's, whatever instruction these have by now."""
    return "Its fields, in this order:" not in system_of(request)


def truth_of(request):
    return "tablets" in user_of(request).split("[[ ## assessments")[0].split("[[ ## answer ## ]]")[1]


def values_for(request, risk):
    return {name: risk if name.endswith("risk") else f"text of {name}" for name in fields_of(request)}


def rule_bound(request):
    """Labels well only where the instruction states the rule; else it says risky of whatever is safe."""
    if proposes(request):
        return reflect(request)
    knows = RULE in system_of(request)
    return values_for(request, truth_of(request) if knows else not truth_of(request))


def reflect(request):
    """Fills each field that DSPy's chat format asks for with the sentences that experts gave as their reasons."""
    text = system_of(request) + "\n".join(part.text for m in request.messages for part in m.parts)
    reasons = list(dict.fromkeys(re.findall(r"The expert's reason: ([^\\\n]+?\.)(?=[\s\\\"]|$)", text)))
    named = text.split("Your output fields are:")[-1].split("\n\n")[0].split("All interactions")[0]
    fields = re.findall(r"^\d+\. `(\w+)`", named, re.M)
    rule = [RULE] if RULE in text and not reasons else []
    # Braces and marks of an unknown field: an instruction is text, and nothing may take it for a template.
    told = f"Task: final. Label the answer; {{possible_diagnoses}} [[ ## unknown ## ]]. {' '.join([*reasons, *rule])}"
    if request.config.response_format or "JSON object" in text:
        return dict.fromkeys(fields, told)
    parts = [f"[[ ## {name} ## ]]\n{told}" for name in fields]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def auditor(lm, system="baseline", ablation="ma_without_ma2", **overrides):
    return RiskAuditor.from_preset(system, ablation, lms={"default": lm}, **overrides)


def scripted(script, **kwargs):
    return scripted_lm(script, **kwargs)


def useless(request):
    """Says the same of every pair, and proposes the same instruction."""
    return reflect(request) if proposes(request) else values_for(request, True)


def from_demos(request):
    """Labels well once its prompt holds a demonstration; else it says safe, which is right of two pairs in three."""
    if proposes(request):
        return reflect(request)
    return values_for(request, truth_of(request) if len(request.messages) > 1 else False)


class Wavering:
    """Right every other time it is asked, and always once its prompt holds a demonstration or the rule."""

    def __init__(self):
        self.asked = 0

    def __call__(self, request):
        if proposes(request):
            return reflect(request)
        self.asked += 1
        knows = len(request.messages) > 1 or self.asked % 2
        return values_for(request, truth_of(request) if knows else not truth_of(request))


class WaveringAtHeat(Wavering):
    """Wrong at temperature 0; at any other it wavers, which is what SIMBA learns from."""

    def __call__(self, request):
        if not proposes(request) and not request.config.temperature and len(request.messages) == 1:
            return values_for(request, not truth_of(request))
        return super().__call__(request)


def shifted_tokens(request):
    """A risky pair's token probability is 0.45 to 0.49, a safe one's 0.30 at most: read as written, all are safe."""
    return spoken_tokens(request, shifted(request))


def spoken_tokens(request, p_true):
    """Answers with a token probability for each label; the label is written as that probability has it."""
    pieces = ["{"]
    for number, name in enumerate(fields_of(request)):
        pieces.append(f'{", " if number else ""}"{name}":')
        label = (" true" if p_true >= 0.5 else " false", p_true)
        pieces += [label] if name.endswith("risk") else [f' "text of {name}"']
    pieces.append("}")
    text = "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)
    return response(text, request, logprobs=label_tokens(pieces))


def shifted_stated(request):
    p_true = shifted(request)
    return {n: {"noul": p_true} if n.endswith("risk") else f"text of {n}" for n in fields_of(request)}


def shifted(request):
    spread = len(user_of(request)) % 5 / 100
    return 0.45 + spread if truth_of(request) else 0.26 + spread
