"""Every optimiser with an LM that it can help, and sizes at which it is quick."""

from dspy_mama.optimize import compile_program
from optimize.compile_parts import (
    RULE,
    WaveringAtHeat,
    auditor,
    from_demos,
    gold_pairs,
    proposes,
    reflect,
    rule_bound,
    scripted,
    shifted_stated,
    shifted_tokens,
    spoken_tokens,
    truth_of,
)
from scripted import fields_of, system_of

QUICK = {"threads": 2, "demos": 2, "candidates": 2, "trials": 3, "minibatch": 6, "rounds": 2}


def told_but_shifted(request):
    """Wrong of every pair until it is told; then its probabilities tell the classes apart, all below one half."""
    if proposes(request):
        return reflect(request)
    if RULE in system_of(request) or len(request.messages) > 1:
        return shifted_tokens(request)
    return spoken_tokens(request, 0.2 if truth_of(request) else 0.9)


def undecided(request):
    return {name: {"noul": 0.5} if name.endswith("risk") else "x" for name in fields_of(request)}


STATED = (shifted_stated, undecided)

HELPED = {
    "labelled": (from_demos, {}),
    "bootstrap": (from_demos, {}),
    "mipro": (rule_bound, {"trials": 10}),
    "gepa": (rule_bound, {}),
    "simba": (WaveringAtHeat, {}),
    "reanchor": (shifted_stated, {}),
    "token_thresholds": (shifted_tokens, {}),
    "staged_bootstrap": (told_but_shifted, {}),
    "staged_gepa": (told_but_shifted, {}),
    "staged_mipro": (told_but_shifted, {"trials": 10}),
}


def compiled(name, script, pairs=None, probability=None, **options):
    """Returns the scripted LM, the program, and what compiling it gave."""
    lm = scripted(script() if isinstance(script, type) else script)
    program = auditor(lm, probability=probability or ("stated" if script in STATED else "token"))
    options = {**QUICK, "target": "joint_accuracy", **options}
    return lm, program, compile_program(program, pairs or gold_pairs(), name, **options)
