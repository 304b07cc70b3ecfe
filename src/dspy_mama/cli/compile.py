"""`mama compile`: optimise the audit on gold pairs, prove whether it helped, and show what changed."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.errors import DeclarationError
from dspy_mama.wiring.compose import compose


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "mama compile optimizer=gepa data=table data.path=FILE optimizer.budget.calls=2000; the same command goes on "
        "with a run that was cut short. `mama compile show ARTIFACT` prints what changed in each prompt and cut: a "
        "file, a run folder, or models:/NAME/VERSION."
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="estimate calls, tokens and money; ask no LM, need no key"
    )


def _run(given: argparse.Namespace) -> Outcome:
    words = [word for word in given.overrides if "=" not in word or word.startswith(("models:", "runs:"))]
    overrides = [word for word in given.overrides if word not in words]
    if words[:1] == ["show"]:
        return _show(words[1:], overrides, given.json)
    if words:
        raise DeclarationError(f"not understood: {' '.join(words)}; mama compile show ARTIFACT, or group=choice")
    from dspy_mama.wiring.compile_estimate import embeds_remotely
    from dspy_mama.wiring.index import ensure_shipped_index

    settings = compose(overrides)
    if not (given.dry_run and embeds_remotely(settings)):  # embedding a corpus at a server is not for nothing
        ensure_shipped_index(settings)
    return _estimate(settings, given.json) if given.dry_run else _compile(settings, given.json)


def _show(words: list[str], overrides: list[str], as_json: bool) -> Outcome:
    from dspy_mama.wiring.programs import show_program

    if len(words) != 1:
        raise DeclarationError("mama compile show takes one artifact: a file, a run folder, or models:/NAME/VERSION")
    text, data = show_program(words[0], compose(overrides).tracking if overrides else None)
    if not as_json:
        print(text)
    return 0, data


def _estimate(settings: Any, as_json: bool) -> Outcome:
    from dspy_mama.optimize.estimate import estimate_table
    from dspy_mama.wiring.compile_estimate import estimate_compile

    estimate = estimate_compile(settings)
    if not as_json:
        print(estimate_table(estimate), end="")
    return 0, estimate.to_dict()


def _compile(settings: Any, as_json: bool) -> Outcome:
    from dspy_mama.wiring.compile import run_compile

    def say(line: str) -> None:
        if settings.runtime.progress or line.startswith("ATTENTION"):
            print(f"mama: {line}", file=sys.stderr, flush=True)

    outcome = run_compile(settings, say)
    code = 3 if outcome.unscored.exceeded else 0
    if not as_json:
        _print(outcome)
    if code:
        print(f"mama: {outcome.unscored}", file=sys.stderr)
    if outcome.problems:
        print(f"mama: not everything could be logged: {outcome.problems[0]}", file=sys.stderr)
    document = {
        "run": outcome.folder.name,
        "folder": str(outcome.folder),
        "mlflow_run": outcome.tracked or None,
        "model": outcome.model or None,
        "exit_code": code,
        "problems": list(outcome.problems),
        "unscored_rate": outcome.unscored.rate,
        **outcome.document,
    }
    return code, document


def _print(outcome: Any) -> None:
    document = outcome.document
    for split in ("validation", "test"):
        if (measured := document[split]) is None:
            continue
        before, after, gap = (measured[side] for side in ("before", "after", "difference"))
        print(
            f"{split:<11} {document['target']}: uncompiled {_value(before)}, compiled {_value(after)}, "
            f"difference {_value(gap, '+')}: {gap['finding']} (n = {before['n']})"
        )
    if document["test"] is None:
        print("test        not looked at")
    print(f"verdict     {document['reason']}")
    spent = document["spent"]
    cost = "cost unknown" if spent["cost"] is None else f"US$ {spent['cost']:.4f}"
    print(
        f"spent       {spent['calls']} calls, {spent['tokens']:,} tokens, {cost}, {spent['minutes']:.1f} min; "
        f"{spent['from_journal']} replies were known already"
    )
    if document["stopped"]:
        print(f"stopped     {document['stopped']}{'; the best program so far was taken' if document['kept'] else ''}")
    print(f"program     {outcome.folder / 'program.json'}")
    print(f"changes     mama compile show {outcome.folder}")
    print(f"reports     {outcome.folder / 'comparison.html'}, {outcome.folder / 'report.html'}")
    if outcome.tracked:
        print(f"mlflow      run {outcome.tracked}{f', model {outcome.model}' if outcome.model else ''}")


def _value(own: dict[str, Any], sign: str = "") -> str:
    if own["value"] is None:
        return "undefined"
    bounds = "" if own["ci95"] is None else f" ({own['ci95'][0]:{sign}.3f} to {own['ci95'][1]:{sign}.3f})"
    return f"{own['value']:{sign}.3f}{bounds}"


COMPILE: Final = Verb("optimise the audit on gold pairs, and prove whether it helped", _arguments, _run)
