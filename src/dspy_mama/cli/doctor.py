"""`mama doctor`: is everything there that a run needs?"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Final

from dspy_mama.cli.verb import Outcome, Verb, no_arguments
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.doctor import examine


def _run(given: argparse.Namespace) -> Outcome:
    findings = examine(compose(given.overrides))
    broken = any(finding.state == "broken" for finding in findings)
    if not given.json:
        for finding in findings:
            print(f"{finding.state:<8} {finding.name:<9} {finding.detail}")
    return int(broken), {"ok": not broken, "checks": [dataclasses.asdict(finding) for finding in findings]}


DOCTOR: Final = Verb("check data, config, LM endpoint and index, and say what to do", no_arguments, _run)
