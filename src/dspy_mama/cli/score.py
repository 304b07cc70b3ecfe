"""`mama score --gold G --pred P`: metrics with intervals for predictions made anywhere; asks no LM."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from dspy_mama.cli.verb import Outcome, Verb
from dspy_mama.core.errors import DeclarationError


def add_bootstrap_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what `score` and `compare` share."""
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default 0)")
    parser.add_argument("--resamples", type=int, default=1000, help="resamples behind each interval (default 1000)")
    parser.add_argument(
        "--interval", choices=("percentile", "bca"), default="percentile", help="kind of interval (default percentile)"
    )
    parser.add_argument("--cluster", metavar="COLUMN", help="resample rows with the same text together: question")
    parser.add_argument(
        "--gold-column", action="append", default=[], metavar="FIELD=COLUMN", help="where names do not tell"
    )
    parser.add_argument(
        "--pred-column", action="append", default=[], metavar="FIELD=COLUMN", help="where names do not tell"
    )
    parser.add_argument("--threshold", type=float, default=0.5, help="cut for probabilities without labels")
    parser.add_argument("--by-order", action="store_true", help="match rows by their order instead of by id")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gold", action="append", required=True, help="file or data set with gold labels; medical=FILE for one domain"
    )
    parser.add_argument(
        "--pred", action="append", required=True, help="file or run with predictions; medical=FILE for one domain"
    )
    parser.add_argument(
        "--phase", choices=("initial", "verification", "consensus", "final"), default="final", help="of a run"
    )
    add_bootstrap_arguments(parser)


def declared(pairs: Sequence[str]) -> dict[str, str]:
    """Returns `FIELD=COLUMN` arguments as a mapping.

    Raises:
        DeclarationError: An argument has no equals sign.
    """
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise DeclarationError(f"{wrong[0]!r}: write FIELD=COLUMN, such as medical=my_label")
    return {name.strip(): column for name, _, column in (pair.partition("=") for pair in pairs)}


def _run(given: argparse.Namespace) -> Outcome:
    from dspy_mama.reporting.evaluation import score
    from dspy_mama.scoring import join_predictions, score_notes
    from dspy_mama.wiring.outside import cluster_texts, read_answers, refuse_same_columns

    gold = read_answers(given.gold, "gold", columns=declared(given.gold_column), overrides=given.overrides)
    predictions = read_answers(given.pred, "predictions", columns=declared(given.pred_column), phase=given.phase)
    refuse_same_columns(gold, predictions)
    joined = join_predictions(
        gold,
        predictions,
        by_order=given.by_order,
        threshold=given.threshold,
        clusters=cluster_texts(gold[0], given.cluster),
    )
    result = score(joined.labels, seed=given.seed, resamples=given.resamples, method=given.interval)
    result["warnings"] = score_notes(joined, result["warnings"])
    if not result["average_domains"]:
        raise DeclarationError(f"nothing can be scored: {'; '.join(result['warnings'])}")
    document = {
        **result,
        "missing_predictions": joined.missing_rows,
        "unknown_ids": joined.unknown_ids,
        "clustered_by": given.cluster,
        "gold": [dict(file.facts) for file in gold],
        "predictions": [dict(file.facts) for file in predictions],
    }
    if not given.json:
        _print(result)
    return 0, document


def _print(result: dict[str, Any]) -> None:
    from dspy_mama.cli.console import make_console
    from dspy_mama.reporting.printing import show_tables
    from dspy_mama.reporting.tables import overall_table, scores_table

    shown = {**result, "phases": {"predictions": result}, "final": result}
    show_tables([scores_table(shown, "System"), overall_table(shown, "System")], make_console())


SCORE: Final = Verb("metrics with intervals for predictions made anywhere, against gold labels", _arguments, _run)
