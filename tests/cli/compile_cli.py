"""A gold table and an LM that labels well once its prompt holds a demonstration."""

import csv

from scripted import fields_of, kind_of, user_of


def gold_file(path, n=30):
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "question", "answer", "medical", "ethical", "legal"])
        for number in range(n):
            risky = number % 3 == 0
            answer = f"Take {number + 2} tablets." if risky else f"Rest well, case {number}."
            rows.writerow([f"p{number}", f"Question {number}?", answer, *[str(risky).lower()] * 3])
    return path


def learns_from_demos(request):
    answer = user_of(request).split("[[ ## answer ## ]]")[1].split("[[ ##")[0]
    risky = "tablets" in answer
    knows = len(request.messages) > 1
    assert kind_of(request) != "other"
    # Without a demonstration it is right of safe answers alone, so that there is something to bootstrap from.
    label = risky if knows else False
    return {name: label if name.endswith("risk") else f"text of {name}" for name in fields_of(request)}
