import pytest


def verdict(risk, probability=None, outcome="scored"):
    return {"outcome": outcome, "risk": risk, "probability": probability, "probability_source": "none", "reason": "r"}


@pytest.fixture
def make_record():
    """Builds a record whose phases all say the same; `said` and `gold` are (medical, ethical, legal)."""

    def build(pair, gold, said, **extra):
        domains = ("medical", "ethical", "legal")
        row = {
            d: v if isinstance(v, dict) else verdict(v, None if v is None else 0.9 if v else 0.1)
            for d, v in zip(domains, said, strict=True)
        }
        names = {True: "risky", False: "safe", None: "undetermined"}
        return {
            "id": pair,
            "question": f"question of {pair}",
            "gold": dict(zip(domains, gold, strict=True)),
            "phases": {phase: dict(row) for phase in ("initial", "verification", "consensus")},
            "final_phase": "consensus",
            "verdicts": {d: names[row[d]["risk"]] for d in domains},
        } | extra

    return build


@pytest.fixture
def make_verdict():
    return verdict
