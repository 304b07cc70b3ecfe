"""The benchmark on the shipped corpus, with the real embedder and a real Chroma; no text is embedded."""

import dataclasses
import json

import pytest

from dspy_mama.core.errors import DeclarationError
from dspy_mama.retrieval import build_index
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings, Settings
from dspy_mama.wiring.compose import compose
from dspy_mama.wiring.retrieval_bench import FORMULATIONS, MEASURES, OPTIONS, run_retrieval_bench


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Settings:
    return compose(
        [f"retriever.path={tmp_path_factory.mktemp('index')}", "experiment.resamples=200", "embedder.threads=1"]
    )


@pytest.fixture(scope="module")
def bench(home):
    build_index(home.corpus, home.embedder, home.retriever)
    return run_retrieval_bench(home)


def recall(bench, pair, name=None, at="recall@4"):
    (option,) = [option for option in bench["options"] if option["name"] == (name or bench["default"])]
    return option["pairs"][pair][at]["value"]


def test_the_default_finds_the_evidence_in_both_languages(bench):
    assert bench["default"] == "hybrid by scores, centred"
    assert recall(bench, "en->en") >= 0.90
    assert recall(bench, "ja->ja") >= 0.85
    assert recall(bench, "en->all") >= 0.90
    assert recall(bench, "ja->all") >= 0.85
    assert recall(bench, "en->ja") >= 0.85


def test_no_simpler_way_beats_the_default_where_it_is_used(bench):
    used = [(pair, option["pairs"][pair]["n"]) for pair in ("en->all", "ja->all") for option in bench["options"][:1]]
    means = {
        option["name"]: sum(recall(bench, pair, option["name"]) * n for pair, n in used) for option in bench["options"]
    }
    simpler = ("dense", "dense, centred", "lexical", "hybrid by ranks", "hybrid by ranks, centred")
    assert all(means[bench["default"]] >= means[name] for name in simpler)


def test_every_option_and_every_formulation_changes_what_is_found(bench):
    pairs = [json.dumps(option["pairs"], sort_keys=True) for option in bench["options"]]
    assert len(pairs) == len(OPTIONS) == len(set(pairs))
    kinds = {option["name"]: json.dumps(option["pairs"], sort_keys=True) for option in bench["formulations"]}
    assert tuple(kinds) == FORMULATIONS
    assert kinds["question"] != kinds["both"] != kinds["answer"]


def test_every_figure_lies_in_its_interval(bench):
    json.dumps(bench, allow_nan=False)
    for option in [*bench["options"], *bench["formulations"]]:
        for cell in [*option["pairs"].values(), *option["domains"].values()]:
            for name in MEASURES:
                low, high = cell[name]["ci95"]
                assert 0 <= low <= cell[name]["value"] <= high <= 1


def test_shipped_vectors_spare_the_embedder(home, monkeypatch):
    from dspy_mama.retrieval.embedding import LocalEmbedder

    def refuse(*arguments):
        raise AssertionError("a text was embedded")

    monkeypatch.setattr(LocalEmbedder, "_embed", refuse)
    assert run_retrieval_bench(home)["queries"] == 110


def test_the_same_seed_gives_the_same_figures(home, bench):
    again = run_retrieval_bench(home)
    for first, second in zip(bench["options"], again["options"], strict=True):
        assert first["pairs"] == second["pairs"]


def test_ones_own_queries_measure_ones_own_corpus(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    header = (
        "---\nid: {0}\ntitle: {0}\npublisher: p\nurl: ''\nlicence: l\nlanguage: en\njurisdiction: JP\n"
        "domains: [legal]\ncollection: law\n---\n{1}\n"
    )
    (folder / "a.md").write_text(header.format("a", "Physicians keep records for five years."), encoding="utf-8")
    (folder / "b.md").write_text(header.format("b", "Pharmacists dispense medicine."), encoding="utf-8")
    query = {
        "id": "1",
        "language": "en",
        "domain": "legal",
        "jurisdictions": ["JP"],
        "question": "How long are records kept?",
    }
    facts = {"facts": [[{"document": "a", "anchor": "five years"}]]}
    queries = tmp_path / "queries.jsonl"
    queries.write_text(json.dumps({**query, **facts}), encoding="utf-8")
    settings = dataclasses.replace(
        compose([]),
        corpus=CorpusSettings(name="own", path=str(folder)),
        embedder=EmbedderSettings(kind="use"),
        retriever=RetrieverSettings(path=str(tmp_path / "index")),
    )
    with pytest.raises(DeclarationError, match="mama index build"):
        run_retrieval_bench(settings, queries)
    build_index(settings.corpus, settings.embedder, settings.retriever)
    found = run_retrieval_bench(settings, queries)
    assert found["formulations"] == []
    cell = found["options"][0]["pairs"]["en->en"]
    assert cell["recall@4"] == {"value": 1.0, "ci95": None}
