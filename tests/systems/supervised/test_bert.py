"""Fine-tuning, on a tiny BERT that is built here: no model hub is asked."""

import numpy as np
import pytest

from dspy_mama.core.cases import QAPair
from dspy_mama.core.errors import DeclarationError
from dspy_mama.settings import BertSettings, SupervisedSettings
from dspy_mama.systems.supervised import bert, cross_validate, make_learner
from dspy_mama.systems.supervised.bert_text import encode_pair, head_and_tail
from dspy_mama.systems.supervised.crossval import gold_of
from systems.supervised.synthetic import make_pairs


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch = pytest.importorskip("torch", reason="needs the extra [baselines]")
    pytest.importorskip("transformers", reason="needs the extra [baselines]")
    from systems.supervised.tiny_bert import save_tiny_bert

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a model this small only waits for other threads
    yield str(save_tiny_bert(tmp_path_factory.mktemp("bert")))
    torch.set_num_threads(threads)


def settings(model, **changes):
    values = {"model": model, "offline": True, "learning_rates": (3e-3, 1e-5), "epochs": 8, "batch": 8, "patience": 3}
    return BertSettings(**{**values, **changes})


def learner(model, text="pair", **changes):
    return make_learner(SupervisedSettings(name="bert", text=text, cut="half", bert=settings(model, **changes)))


def learn(model, text="pair", **changes):
    pairs = make_pairs(36)
    rows = np.arange(36)
    return learner(model, text, **changes).fit(pairs, gold_of(pairs, "medical"), rows, 0), pairs


def test_it_learns_chooses_the_rate_that_works_and_stops_early(model):
    fitted, _ = learn(model)
    new = make_pairs(24, seed=9)
    right = (fitted.probabilities(new) >= fitted.cut) == (gold_of(new, "medical") == 1)
    assert right.mean() > 0.9
    assert fitted.facts["learning_rate"] == 3e-3
    assert 1 <= fitted.facts["epochs"] <= 8


def test_its_cut_is_fitted_on_the_inner_split_where_that_is_asked_for(model):
    pairs, rows = make_pairs(36), np.arange(36)
    chosen = SupervisedSettings(name="bert", cut="fitted", bert=settings(model, learning_rates=(1e-5,), epochs=1))
    fitted = make_learner(chosen).fit(pairs, gold_of(pairs, "medical"), rows, 0)
    assert fitted.cut != 0.5
    assert fitted.facts["cut"] == pytest.approx(fitted.cut, abs=1e-4)
    inner = fitted.probabilities(pairs)
    assert inner.min() < fitted.cut < inner.max()


def test_the_same_seed_gives_the_same_probabilities(model):
    (one, pairs), (two, _) = learn(model), learn(model)
    assert np.array_equal(one.probabilities(pairs), two.probabilities(pairs))
    assert one.facts == two.facts


def test_training_leaves_the_random_state_of_the_process_alone(model):
    import torch

    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    learn(model, epochs=1)
    assert torch.equal(before, torch.random.get_rng_state())
    assert not torch.are_deterministic_algorithms_enabled()


def test_early_stopping_sees_only_inner_pairs_and_ends_training(model, monkeypatch):
    losses = iter([0.5, 0.4, 0.6, 0.7, 0.8, 0.1, 0.1, 0.1])
    sizes = []

    def loss(gold, probabilities):
        sizes.append(len(gold))
        return next(losses)

    monkeypatch.setattr(bert, "balanced_log_loss", loss)
    fitted, _ = learn(model, learning_rates=(1e-3,), patience=2)
    assert fitted.facts["epochs"] == 2
    assert fitted.facts["inner_loss"] == 0.4
    assert fitted.cut == 0.5
    assert len(sizes) == 4  # two without a better loss after the second
    assert set(sizes) <= {7, 8}  # a fifth of 36


def test_out_of_fold_it_judges_every_pair_and_never_encodes_a_held_out_one_in_training(model):
    pairs = make_pairs(24)
    own = learner(model, learning_rates=(3e-3,), epochs=2)
    given = []
    plain = own._train

    def watch(seen, labels, held_out, gold, rate, seed):
        given.append({row.ids for row in [*seen, *held_out]})
        return plain(seen, labels, held_out, gold, rate, seed)

    own._train = watch
    found = cross_validate(pairs, own, folds=3).domains["medical"]
    assert not np.isnan(found.probability).any()
    for fold in range(3):
        held_out = {own.encode(pair).ids for pair, home in zip(pairs, found.fold, strict=True) if home == fold}
        assert not held_out & given[fold]


def test_pickled_weights_are_never_read(model, tmp_path):
    from systems.supervised.tiny_bert import save_tiny_bert

    folder = str(save_tiny_bert(tmp_path / "pickled", safe=False))
    with pytest.raises(DeclarationError, match="pickled weights are never read"):
        learn(folder, epochs=1)


def test_a_model_that_is_not_there_is_named_before_training(model, tmp_path):
    with pytest.raises(DeclarationError, match="cannot be loaded"):
        learner(str(tmp_path / "nothing"))


def test_without_its_packages_it_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(bert, "import_module", missing)
    with pytest.raises(DeclarationError, match=r"pip install 'dspy-mama\[baselines\]'"):
        make_learner(SupervisedSettings(name="bert"))


def test_long_texts_are_cut_by_the_rule_and_counted(model):
    own = learner(model, max_tokens=32)
    own.encode(QAPair("short", "may i rest?", "take water"))
    long = own.encode(QAPair("long", "may i rest?", " ".join(["take"] + ["water"] * 60 + ["hazard"])))
    assert len(long.ids) == 32
    assert (own.truncation["pairs"], own.truncation["cut"]) == (2, 1)
    assert own.truncation["tokens"] == long.cut == 62 - (sum(long.segments) - 1)
    assert own.truncation["unknown_share"] == 0
    own.encode(QAPair("ja", "may i rest?", "薬 を 飲む"))
    assert own.truncation["unknown_share"] > 0
    tokens = own._tokenizer.convert_ids_to_tokens(list(long.ids))
    assert tokens[tokens.index("[SEP]") + 1] == "take"
    assert tokens[-2] == "hazard"


def test_no_more_tokens_than_the_model_has_places(model):
    assert learner(model, max_tokens=4096).limit == 64


def test_answer_only_leaves_the_question_out(model):
    own = learner(model, text="answer")
    assert own.encode(QAPair("a", "may i rest?", "take water")).segments == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("tokens", "room", "kept"),
    [(range(5), 5, (0, 1, 2, 3, 4)), (range(20), 8, (0, 1, 14, 15, 16, 17, 18, 19)), (range(5), 0, ())],
)
def test_head_and_tail(tokens, room, kept):
    assert head_and_tail(list(tokens), room) == kept


@pytest.mark.parametrize(("asked", "answered"), [(4, 100), (100, 4), (100, 100), (2, 2), (0, 300)])
def test_a_pair_fits_and_the_answer_has_three_quarters_where_both_are_long(asked, answered):
    pair = encode_pair(list(range(1000, 1000 + asked)), list(range(answered)), first=-1, between=-2, limit=43)
    assert len(pair.ids) <= 43
    assert len(pair.ids) == len(pair.segments)
    assert pair.ids[0] == -1
    assert pair.ids.count(-2) == 2
    assert pair.cut == asked + answered + 3 - len(pair.ids)
    if asked == answered == 100:
        assert sum(pair.segments) == 31
