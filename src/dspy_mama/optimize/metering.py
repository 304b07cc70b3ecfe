"""LMs whose every call passes one gate: the journal first, then the budget."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm.prices import price_of
from dspy_mama.lm.profile import profile_of, set_profile
from dspy_mama.optimize.budget import Budget
from dspy_mama.optimize.journal import Journal, Price, call_key, decode, encode
from dspy_mama.retrieval.budget import estimate_tokens
from dspy_mama.settings import BudgetSettings

HEARTBEAT = 15.0
"""Seconds between two lines of progress."""


def heartbeat(budget: Budget, say: Callable[[str], None]) -> Callable[[], None]:
    """Returns what to call after every LM call: now and then it says how much is spent."""
    last = time.monotonic()
    lock = threading.Lock()

    def beat() -> None:
        nonlocal last
        with lock:
            if time.monotonic() - last < HEARTBEAT:
                return
            last = time.monotonic()
        now, limit = budget.spent, budget.limits.calls
        of = "" if limit is None else f" of {limit}"
        say(f"{now.calls}{of} calls, {now.tokens:,} tokens, {now.minutes:.1f} min")

    return beat


_price: ContextVar[Price | None] = ContextVar("price", default=None)
"""What the call that this thread or task is making has cost."""


class Meter:
    """Journal and budget of one compilation."""

    def __init__(self, budget: Budget, journal: Journal, on_call: Callable[[], None] | None = None) -> None:
        """Joins them.

        Args:
            budget: What may be spent.
            journal: Replies that were paid for.
            on_call: Told after every call, for progress.
        """
        self.budget = budget
        self.journal = journal
        self.on_call = on_call or (lambda: None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Meter:
        """Returns itself."""
        return self

    def recall(self, key: str) -> Any | None:
        """Returns an answer that was paid for, or None."""
        known = self.journal.get(key)
        if known is None:
            return None
        self.budget.recall(self.journal.price_of(key))
        self.on_call()
        return decode(known)

    def keep(self, key: str, answer: Any) -> Any:
        """Writes an answer down and returns it."""
        plain = encode(answer)
        if plain is not None:
            self.journal.put(key, plain, _price.get() or (None, None, 0))
        self.on_call()
        return answer

    def failed(self, error: Exception) -> None:
        """Notes a failure that every further call would share: a search must not try all its pairs against it."""
        from dspy.utils.exceptions import LMAuthError, LMBillingError

        if isinstance(error, (LMAuthError, LMBillingError)):
            self.budget.broken = " ".join(f"{type(error).__name__}: {error}".split())

    def note(self, lm: Any, entry: dict[str, Any]) -> None:
        """Charges a call from what DSPy would keep as its history."""
        usage = entry.get("usage") or {}
        sent, received = usage.get("prompt_tokens"), usage.get("completion_tokens")
        profile, cost, tokens = profile_of(lm), entry.get("cost"), None
        if sent is not None and received is not None:
            tokens = int(sent) + int(received)
            if profile.price_input is not None and profile.price_output is not None:
                cost = (sent * profile.price_input + received * profile.price_output) / 1e6
        guess = 0 if tokens is not None else estimate_tokens(f"{entry.get('messages')}{entry.get('outputs')}")
        if guess and cost is None and self.budget.limits.cost is not None and (price := price_of(lm)) is not None:
            cost = guess * max(price)  # a budget of money must stop what tells no tokens, too
        _price.set((tokens, cost, guess))
        self.budget.charge(tokens, cost, guess)


class _Metered:
    """What a metered LM does differently; mixed into the LM's own class."""

    meter: Meter

    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        key = call_key(self, prompt, messages, kwargs)
        known = self.meter.recall(key)
        if known is not None:
            return known
        self.meter.budget.admit()
        _price.set(None)
        try:
            answer = super().__call__(prompt, messages=messages, **kwargs)  # type: ignore[misc]
        except Exception as error:
            self.meter.failed(error)
            raise
        return self.meter.keep(key, answer)

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        key = call_key(self, prompt, messages, kwargs)
        known = self.meter.recall(key)
        if known is not None:
            return known
        self.meter.budget.admit()
        _price.set(None)
        try:
            answer = await super().acall(prompt, messages=messages, **kwargs)  # type: ignore[misc]
        except Exception as error:
            self.meter.failed(error)
            raise
        return self.meter.keep(key, answer)

    def update_history(self, entry: dict[str, Any]) -> None:
        """Charges the call; prompts of a long compilation are not kept in memory."""
        self.meter.note(self, entry)


def metered(lm: Any, meter: Meter, *, retries: int | None = None) -> Any:
    """Returns a copy of an LM whose calls are journalled and charged.

    Args:
        lm: A `dspy.LM`.
        meter: Journal and budget.
        retries: Repeats after 429 and 5xx that DSPy makes itself; None = as the LM has it. LMs that no gate of
            `StructuredPredict` stands before need them.
    """
    profile = profile_of(lm)
    copied = lm.copy() if retries is None else lm.copy(num_retries=retries)
    kind = type(lm)
    if not issubclass(kind, _Metered):
        # An instance of the LM's own class with other calls: what reads an LM by attribute or class still can.
        plain = copied
        copied = object.__new__(type(f"Metered{kind.__name__}", (_Metered, kind), {}))
        copied.__dict__.update(plain.__dict__)
    copied.meter = meter
    set_profile(copied, profile)
    return copied


def check_prices(budget: BudgetSettings, lms: Iterable[Any]) -> None:
    """Refuses a budget in money over LMs whose price nobody knows: it would stop nothing.

    Args:
        budget: What may be spent.
        lms: LMs that will be asked; None = not one.

    Raises:
        DeclarationError: The price of one is unknown.
    """
    if budget.cost is None:
        return
    unknown = sorted({str(lm.model) for lm in lms if lm is not None and price_of(lm) is None})
    if unknown:
        raise DeclarationError(
            f"optimizer.budget.cost={budget.cost:g} cannot stop what has no known price ({', '.join(unknown)}): set "
            "price_input and price_output of this LM (US dollars per million tokens, such as lm.default.price_input="
            "2.5), or limit calls or tokens instead"
        )


def meter_program(program: Any, meter: Meter) -> Any:
    """Returns a copy of a program whose LMs are metered; predictors that shared an LM share its copy.

    Raises:
        DeclarationError: A predictor has no LM, and none is set in DSPy.
    """
    import dspy

    copied = program.deepcopy()
    made: dict[int, Any] = {}
    for name, predictor in copied.named_predictors():
        lm = dict(program.named_predictors())[name].lm or dspy.settings.lm
        if lm is None:
            raise DeclarationError(
                f"no LM for {name}: call dspy.configure(lm=dspy.LM(...)), or give the program its lms"
            )
        if id(lm) not in made:
            made[id(lm)] = metered(lm, meter)
        predictor.lm = made[id(lm)]
    return copied


def unmetered(program: Any, original: Any) -> Any:
    """Returns a program with the LMs of the one it was made from."""
    own = program.deepcopy()
    lms = {name: predictor.lm for name, predictor in original.named_predictors()}
    for name, predictor in own.named_predictors():
        predictor.lm = lms[name]
    return own
