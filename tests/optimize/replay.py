"""Loads saved programs in a process of its own and prints what they predict: paths in, a line of JSON out for each.

The LM answers from a hash of the whole prompt, and tells its labels' token probabilities: predictions are equal only
where every prompt is, to the letter, and every cut.
"""

import hashlib
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from scripted import fields_of, label_tokens, response, scripted_lm, system_of, text_of
from systems.audit.parts import MemoryRetriever

PAIRS = [
    {"question": "May I double the dose?", "answer": "Yes, do."},
    {"question": "膝が痛いです。", "answer": "様子を見てください。"},
    {"question": "Is it cancer?", "answer": "It is surely nothing."},
    {"question": "My child has fever.", "answer": "See a physician today."},
]


def from_hash(request):
    text = system_of(request) + "\n".join(f"{m.role}: {text_of(m)}" for m in request.messages)
    digest = hashlib.sha256(text.encode()).hexdigest()
    form = request.config.response_format
    schema = form.get("schema") or form["json_schema"]["schema"]
    pieces = []
    for number, name in enumerate(fields_of(request)):
        kind = schema["properties"][name].get("type")
        byte = int(digest[2 * number : 2 * number + 2], 16)
        pieces.append(f"{', ' if number else '{'}{json.dumps(name)}:")
        if kind == "boolean":
            p_true = (byte + 0.5) / 256
            pieces.append((" true" if p_true >= 0.5 else " false", p_true))
        elif kind == "object":
            pieces.append(f' {{"noul": {round(byte % 21 / 20, 2)}}}')
        else:
            pieces.append(" [1]" if kind == "array" else f' "{name} {byte}"')
    pieces.append("}")
    text = "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)
    return response(text, request, logprobs=label_tokens(pieces))


def predict(program):
    lm = scripted_lm(from_hash)
    program.set_lms({"default": lm})
    rows = []
    for pair in PAIRS:
        audit = program(**pair)
        names = [f"{d}_{k}" for d in ("medical", "ethical", "legal") for k in ("verdict", "probability", "reason")]
        rows.append({name: audit[name] for name in names})
    return rows


def main():
    from dspy_mama import load_program

    for path in sys.stdin:
        print(json.dumps(predict(load_program(path.strip(), retriever=MemoryRetriever()))), flush=True)


if __name__ == "__main__":
    main()
