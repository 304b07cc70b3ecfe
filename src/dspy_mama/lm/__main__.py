"""`python -m dspy_mama.lm`: fetches the embedded LM's model file and says where it is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dspy_mama.core.errors import DeclarationError, MamaError
from dspy_mama.lm.model_file import CACHE_VARIABLE, FETCH_COMMAND, fetch_model


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetches the model file where it is missing.

    Args:
        arguments: Command-line words; None = those of the process.

    Returns:
        0 = it is there, 1 = it could not be fetched, 2 = wrong usage or declaration.
    """
    parser = argparse.ArgumentParser(
        prog=FETCH_COMMAND,
        description="Fetches the embedded LM's model file (98 MB) where it is missing, and prints its path.",
        epilog=f"It goes to the user's cache folder, or to the folder that {CACHE_VARIABLE} names.",
    )
    try:
        parser.parse_args(arguments)
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else 2
    try:
        path = fetch_model()
    except DeclarationError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 2
    except MamaError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was left behind\n")
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
