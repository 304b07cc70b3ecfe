"""Fine-tuned encoders such as BERT and BioClinicalBERT (paper A, Table 2: the baselines trained on gold labels)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.settings import BertSettings
from dspy_mama.systems.supervised.bert_text import EncodedPair, encode_pair
from dspy_mama.systems.supervised.folds import Ints, possible_folds, stratified_folds
from dspy_mama.systems.supervised.learners import HALF, Cut, Fitted, Floats, balanced_log_loss, best_cut, constant

WEIGHT_DECAY: Final = 0.01
WARMUP_SHARE: Final = 0.1
"""Both as in the pre-training code of Devlin et al. 2019 (A.2), usual for fine-tuning."""
LONGEST_GRADIENT: Final = 1.0


class BertLearner:
    """Fine-tunes an encoder with a fresh two-class head on one domain; learning rate and epochs by an inner split.

    Weights are read from safetensors alone: a pickled file could run code. Needs `dspy-mama[baselines]`.
    """

    has_probabilities = True

    def __init__(self, settings: BertSettings, *, answer_only: bool = False, cut: Cut = "half") -> None:
        """Loads the tokeniser and looks at the model's configuration.

        Args:
            settings: Model and training.
            answer_only: Read the answer alone, not the question before it.
            cut: `half` = 0.5; `fitted` = the best cut on the inner split.

        Raises:
            DeclarationError: A package, the model or its tokeniser is missing.
        """
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        self._torch, self._transformers = _package("torch"), _package("transformers")
        self._settings, self._answer_only, self._cut = settings, answer_only, cut
        self.id = f"fine-tuned {settings.model}"
        self._quiet()
        self._source: dict[str, Any] = {
            "revision": settings.revision or "main",
            "local_files_only": settings.offline,
            "trust_remote_code": False,
        }
        config = self._load(self._transformers.AutoConfig)
        self._tokenizer = self._load(self._transformers.AutoTokenizer)
        room = getattr(config, "max_position_embeddings", None) or settings.max_tokens
        self.limit = min(settings.max_tokens, room)
        self._texts: dict[str, list[int]] = {}
        self._encoded: dict[tuple[str, str], EncodedPair] = {}

    def _quiet(self) -> None:
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # our own message says what is missing
        self._transformers.utils.logging.set_verbosity_error()
        self._transformers.utils.logging.disable_progress_bar()

    def _load(self, kind: Any, **options: Any) -> Any:
        name = self._settings.model
        try:
            return kind.from_pretrained(name, **self._source, **options)
        except (OSError, ValueError, KeyError, ImportError) as error:
            first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise DeclarationError(
                f"baseline.bert.model={name}: cannot be loaded ({first[:300]}). Give a name at the hub or a folder "
                "with config, tokeniser and model.safetensors; pickled weights are never read: where a model has "
                "no others, name a revision that has (baseline.bert.revision=...) or convert a copy to safetensors"
            ) from error

    @property
    def truncation(self) -> dict[str, Any]:
        """How many of the pairs read so far were cut to fit, by how many tokens, and the rule.

        `unknown_share` is the share of tokens that the vocabulary lacks, as of Japanese texts under an English model.
        """
        unknown = [ids.count(self._tokenizer.unk_token_id) for ids in self._texts.values()]
        cut = [encoded.cut for encoded in self._encoded.values() if encoded.cut]
        return {
            "pairs": len(self._encoded),
            "cut": len(cut),
            "tokens": sum(cut),
            "limit": self.limit,
            "unknown_share": round(sum(unknown) / max(1, sum(len(ids) for ids in self._texts.values())), 4),
            "rule": "of a text that does not fit, the first quarter of its room and the rest from its end are kept",
        }

    def encode(self, pair: QAPair) -> EncodedPair:
        """Returns a pair's token ids."""
        key = (pair.question, pair.answer)
        if key not in self._encoded:
            question = None if self._answer_only else self._tokens(pair.question)
            special = {"first": self._tokenizer.cls_token_id, "between": self._tokenizer.sep_token_id}
            self._encoded[key] = encode_pair(question, self._tokens(pair.answer), limit=self.limit, **special)
        return self._encoded[key]

    def _tokens(self, text: str) -> list[int]:
        if text not in self._texts:
            options = {"add_special_tokens": False, "truncation": False, "verbose": False}
            self._texts[text] = self._tokenizer(text, **options)["input_ids"]
        return self._texts[text]

    def fit(self, pairs: Sequence[QAPair], labels: Ints, groups: Ints, seed: int) -> Fitted:
        """Trains once per learning rate and keeps the epoch and the rate with the lowest balanced inner loss."""
        count = possible_folds(labels, groups, round(1 / self._settings.inner_share))
        if count < 2:  # one question of a class: it cannot be both learnt from and held out
            return constant(float(labels.mean()))
        train, inner = stratified_folds(labels, groups, count, seed)[0]
        seen, held_out = ([self.encode(pairs[row]) for row in rows] for rows in (train, inner))
        best: _Trained | None = None
        with self._reproducible():
            for rate in self._settings.learning_rates:
                trained = self._train(seen, labels[train], held_out, labels[inner], rate, seed)
                best = trained if best is None or trained.loss < best.loss else best
            assert best is not None  # settings name at least one rate
            model = self._model(seed)
            model.load_state_dict(best.state)
        chances = self._probabilities(model, held_out)
        cut = best_cut(labels[inner], chances) if self._cut == "fitted" else HALF
        facts = {"learning_rate": best.rate, "epochs": best.epoch, "inner_loss": round(best.loss, 4)}
        facts["cut"] = round(cut, 4)
        return Fitted(lambda rows: self._probabilities(model, [self.encode(pair) for pair in rows]), cut, facts)

    def _train(
        self,
        seen: Sequence[EncodedPair],
        labels: Ints,
        held_out: Sequence[EncodedPair],
        gold: Ints,
        rate: float,
        seed: int,
    ) -> _Trained:
        torch, settings = self._torch, self._settings
        model = self._model(seed)
        optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=WEIGHT_DECAY)
        steps = settings.epochs * -(-len(seen) // settings.batch)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _warm_up(step, steps))
        weights = len(labels) / (2 * np.bincount(labels, minlength=2).clip(1))
        loss_of = torch.nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float32, device=model.device))
        order = np.random.default_rng(seed)
        best = _Trained(float("inf"), 0, rate, {})
        for epoch in range(1, settings.epochs + 1):
            model.train()
            for rows in _batches(order.permutation(len(seen)), settings.batch):
                optimiser.zero_grad()
                target = torch.tensor(labels[rows], device=model.device)
                loss_of(model(**self._batch(model, [seen[row] for row in rows])).logits, target).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), LONGEST_GRADIENT)
                optimiser.step()
                schedule.step()
            loss = balanced_log_loss(gold, self._probabilities(model, held_out))
            if loss < best.loss:
                state = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
                best = _Trained(loss, epoch, rate, state)
            elif epoch - best.epoch >= settings.patience:
                break
        return best

    def _model(self, seed: int) -> Any:
        """Returns the encoder with a fresh head; the same seed gives the same head."""
        self._torch.manual_seed(seed)
        options: dict[str, Any] = {"num_labels": 2, "use_safetensors": True}
        model = self._load(self._transformers.AutoModelForSequenceClassification, **options)
        return model.to("cuda" if self._torch.cuda.is_available() else "cpu")

    def _batch(self, model: Any, rows: Sequence[EncodedPair]) -> dict[str, Any]:
        torch, width = self._torch, max(len(row.ids) for row in rows)
        pad = self._tokenizer.pad_token_id or 0
        columns = {
            "input_ids": [[*row.ids, *[pad] * (width - len(row.ids))] for row in rows],
            "attention_mask": [[*[1] * len(row.ids), *[0] * (width - len(row.ids))] for row in rows],
        }
        if "token_type_ids" in self._tokenizer.model_input_names:
            columns["token_type_ids"] = [[*row.segments, *[0] * (width - len(row.ids))] for row in rows]
        return {name: torch.tensor(values, device=model.device) for name, values in columns.items()}

    def _probabilities(self, model: Any, rows: Sequence[EncodedPair]) -> Floats:
        model.eval()
        parts = []
        with self._torch.no_grad():
            for part in _batches(np.arange(len(rows)), self._settings.batch):
                logits = model(**self._batch(model, [rows[row] for row in part])).logits
                parts.append(self._torch.softmax(logits.float(), dim=-1)[:, 1].cpu().numpy())
        return np.concatenate([*parts, np.zeros(0)]).astype(np.float64)

    @contextmanager
    def _reproducible(self) -> Iterator[None]:
        """Leaves the process's random state as it was."""
        torch = self._torch
        before = torch.are_deterministic_algorithms_enabled()
        with torch.random.fork_rng():
            torch.use_deterministic_algorithms(True, warn_only=True)
            try:
                yield
            finally:
                torch.use_deterministic_algorithms(before)


@dataclass(frozen=True)
class _Trained:
    """The best epoch of one training: balanced inner loss, its number from 1, learning rate, and weights."""

    loss: float
    epoch: int
    rate: float
    state: dict[str, Any]


def _warm_up(step: int, steps: int) -> float:
    """Returns the share of the learning rate at a step: up linearly over the first tenth, then down to nothing."""
    first = max(1, int(steps * WARMUP_SHARE))
    return (step + 1) / first if step < first else max(0.0, (steps - step) / max(1, steps - first))


def _batches(rows: Ints, size: int) -> Iterator[Ints]:
    for at in range(0, len(rows), size):
        yield rows[at : at + size]


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise DeclarationError(
            f"baseline=bert needs the package {name}: pip install 'dspy-mama[baselines]' ({error})"
        ) from None
