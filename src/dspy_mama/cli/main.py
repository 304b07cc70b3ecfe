"""`mama VERB [group=choice] [group.field=value] [--json]`: parse, compose, call, exit code.

Exit codes: 0 done, 1 failed, 2 bad usage or declaration, 3 too many verdicts unscored.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

from dspy_mama.cli.verbs import VERBS
from dspy_mama.core.errors import DeclarationError, MamaError
from dspy_mama.tracking.scrub import scrub_text

BUG_HINT = "this is a fault of dspy_mama; run again with --debug and report what it prints"


def _parser(only: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser of every verb, or of the one that was asked for."""
    parser = argparse.ArgumentParser(
        prog="mama",
        description="Audits and mends medical chatbot answers; discusses cases until doctors agree.",
        epilog="Overrides: group=choice (system, ablation, lm, embedder, retriever, corpus, jurisdiction, data, "
        "optimizer, baseline, refiner, panel, tracking) and group.field=value. No substitute for a clinical decision.",
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks and debug messages")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name in [only] if only else VERBS:
        verb = VERBS[name]
        sub = verbs.add_parser(name, help=verb.help, description=verb.help)
        sub.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        verb.arguments(sub)
        sub.add_argument("overrides", nargs="*", metavar="group=choice", help="settings of this run")
    return parser


def _fail(message: str, code: int, as_json: bool) -> int:
    message = scrub_text(message)  # a server's refusal may repeat the key, and this line may go to a log
    if as_json:
        print(json.dumps({"error": message, "exit_code": code}, ensure_ascii=False))
    print(f"mama: {message}", file=sys.stderr)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    first = next((word for word in words if not word.startswith("-")), None)
    parser = _parser(first if first in VERBS else None)
    given = _parse(parser, words)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    logging.getLogger("dspy_mama").setLevel(logging.DEBUG if given.debug else logging.WARNING)
    try:
        outcome: tuple[int, Any] = VERBS[given.verb].run(given)
    except DeclarationError as error:
        return _explain(given, error, 2)
    except MamaError as error:
        return _explain(given, error, 1)
    except KeyboardInterrupt:
        return _fail("interrupted; what is done is kept, and the same command goes on from there", 1, given.json)
    except BrokenPipeError:
        raise  # the reader of what is printed has left: see `run`
    except Exception as error:
        if given.debug:
            raise
        return _fail(f"{type(error).__name__}: {error} ({BUG_HINT})", 1, given.json)
    code, document = outcome
    if given.json:
        print(json.dumps(document, ensure_ascii=False, allow_nan=False, default=str))
    return code


def run() -> int:
    """Runs the command line; a reader that closes the pipe early, such as `head`, ends it quietly.

    Python would complain once more when it flushes at exit: what is left goes nowhere.
    """
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _explain(given: argparse.Namespace, error: MamaError, code: int) -> int:
    if given.debug:
        raise error
    return _fail(str(error), code, given.json)


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parses with overrides and options in any order, which argparse's sub-commands do not take by themselves."""
    given, rest = parser.parse_known_args(arguments)
    unknown = [part for part in rest if part.startswith("-")]
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    given.overrides = [*given.overrides, *rest]
    return given


if __name__ == "__main__":
    sys.exit(run())
