"""Nothing here phones home: downloads that DSPy and LiteLLM start by themselves are off unless the user wants them."""

from __future__ import annotations

import os


def keep_local() -> None:
    """Keeps DSPy and LiteLLM to the price list in their own packages; a value set by the user stays.

    The model hub's client reports no usage.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
