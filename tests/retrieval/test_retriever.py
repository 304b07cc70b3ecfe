import asyncio
import copy
import dataclasses
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dspy_mama.core.cases import DOMAINS
from dspy_mama.core.errors import DeclarationError, IndexStateError
from dspy_mama.core.ports import Retriever
from dspy_mama.retrieval import NullRetriever, index_info, search_index
from dspy_mama.retrieval import retriever as module
from dspy_mama.retrieval.snapshot import Scope
from dspy_mama.settings import RetrieverSettings


def documents(found, domain):
    return [passage.document for passage in found[domain]]


async def test_passages_are_found_per_domain_best_first(built):
    retriever = built.open()
    assert isinstance(retriever, Retriever)
    found = await retriever.asearch("My face droops and my speech is slurred", DOMAINS)
    assert documents(found, "medical")[0] == "stroke"
    assert set(documents(found, "ethical")) == {"consent"}
    assert set(documents(found, "legal")) == {"ishi"}
    scores = [passage.score for passage in found["medical"]]
    assert scores == sorted(scores, reverse=True)
    assert all(-1 <= score <= 1 for score in scores)


async def test_only_the_asked_domains_are_answered(built):
    assert set(await built.open().asearch("stroke", ["legal"])) == {"legal"}


@pytest.mark.parametrize(
    ("options", "medical", "legal"),
    [
        ({}, {"stroke", "asthma", "ishi", "consent"}, {"ishi"}),
        ({"jurisdictions": ("US",)}, set(), {"hipaa"}),
        ({"jurisdictions": None}, {"stroke", "asthma", "ishi", "consent"}, {"ishi", "hipaa"}),
        ({"context": "encyclopedic"}, {"stroke", "asthma"}, set()),
        ({"languages": ("ja",)}, {"ishi"}, {"ishi"}),
    ],
)
async def test_a_scope_hides_the_rest(built, options, medical, legal):
    found = await built.open(**options).asearch("a patient asks", DOMAINS)
    assert set(documents(found, "medical")) == medical
    assert set(documents(found, "legal")) == legal


async def test_a_japanese_question_finds_the_japanese_law(built):
    found = await built.open().asearch("医師でない人が医業をしてもよいですか", DOMAINS)
    assert documents(found, "legal")[0] == "ishi"


@pytest.mark.parametrize(
    ("languages", "query", "warnings"),
    [(("en",), "頭が痛いです", 1), (("ja",), "My head hurts", 1), (("en",), "My head hurts", 0), (None, "頭が痛い", 0)],
)
def test_a_search_across_languages_is_said_once(built, caplog, languages, query, warnings):
    retriever = built.open(languages=languages)
    for _ in range(2):
        retriever.search(query)
    assert caplog.text.count("differ in language") == warnings


async def test_one_search_embeds_its_query_once_for_all_domains_and_callers(built):
    retriever = built.open()
    await asyncio.gather(*(retriever.asearch("the same question", DOMAINS) for _ in range(8)))
    assert retriever.embedder.embedded == 1


@pytest.mark.parametrize(
    ("changes", "lengths"), [({"top_k": 2}, 2), ({"min_score": 0.99}, 0), ({"evidence_tokens": 5}, 1)]
)
async def test_number_score_and_tokens_are_bounded(built, changes, lengths):
    built.retriever = dataclasses.replace(built.retriever, **changes)
    found = await built.open().asearch("face droop", ["medical"])
    assert len(found["medical"]) == lengths
    if "evidence_tokens" in changes:
        assert found["medical"][0].text.endswith("[...]")


async def test_a_blank_query_finds_nothing(built):
    assert await built.open().asearch(" \n", DOMAINS) == dict.fromkeys(DOMAINS, ())


async def test_odd_queries_are_searched_all_the_same(built):
    for query in ("\ud800 \0", "x" * 20_000, "[[ ## medical_risk ## ]]", "👩‍⚕️"):
        assert len((await built.open().asearch(query, ["medical"]))["medical"]) == 4


def test_copies_are_the_same_retriever(built):
    for retriever in (built.open(), NullRetriever()):
        assert copy.deepcopy({"a": retriever})["a"] is retriever


async def test_the_null_retriever_finds_nothing_and_says_so(built):
    retriever = built.open(context="none")
    assert isinstance(retriever, Retriever)
    assert await retriever.asearch("stroke", DOMAINS) == dict.fromkeys(DOMAINS, ())
    assert retriever.describe() == {"kind": "none"}


def test_no_context_needs_no_index(house):
    assert house.open(context="none").describe() == {"kind": "none"}


def test_the_manifest_names_embedder_revision_and_scope(built):
    described = built.open(languages=("ja",)).describe()
    assert described["embedder"].startswith("usem3-")
    assert (described["chunks"], described["chunks_in_scope"], described["documents"]) == (5, 1, 5)
    assert len(described["revision"]) == 16
    assert described["scope"]["jurisdictions"] == ("JP", "INT")


def test_the_manifest_names_the_glossary_that_searches_not_the_file_of_today(built, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("en,ja\ndoctor,医師\n", encoding="utf-8")
    built.retriever = dataclasses.replace(built.retriever, glossary=(str(path),))
    retriever = built.open()
    before, way = retriever.describe(), retriever.way()
    path.write_text("en,ja\nnurse,看護師\n", encoding="utf-8")
    assert retriever.describe() == before
    assert retriever.way() == way
    changed = built.open().describe()["glossary_hash"]
    assert changed != before["glossary_hash"]
    path.unlink()
    assert retriever.describe() == before
    built.write("stroke", text="A nurse helps.")
    built.build()
    path.write_text("en,ja\nnurse,看護師\n", encoding="utf-8")
    retriever.search("nurse")
    assert retriever.describe()["glossary_hash"] == changed


def test_what_no_search_uses_is_neither_read_nor_described(built):
    built.retriever = dataclasses.replace(built.retriever, search="dense", glossary=("nowhere.csv",))
    assert built.open().describe()["glossary_hash"] is None
    assert index_info(built.corpus, built.embedder, built.retriever).way["glossary"] is None


def test_several_threads_with_loops_of_their_own_share_one_retriever(built):
    retriever = built.open()

    def ask(n):
        return asyncio.run(retriever.asearch(f"question {n % 4}", DOMAINS))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(32)))
    assert all(answer == answers[n % 4] for n, answer in enumerate(answers))


@pytest.mark.parametrize("part", ["folder", "collection"])
def test_a_missing_index_names_the_command(house, part):
    if part == "collection":
        house.build()
        house.retriever = dataclasses.replace(house.retriever, collection="other")
    with pytest.raises(IndexStateError, match=r"there is no .*run `mama index build corpus\.name=test "):
        house.open()
    if part == "folder":
        assert not (house.index / "chroma").exists()


def test_the_next_search_sees_a_finished_build(built):
    retriever = built.open()
    built.write("burn", title="Burns", text="Cool a burn under running water for twenty minutes.")
    assert "burn" not in documents(retriever.search("burn cool water"), "medical")
    built.build()
    assert documents(retriever.search("burn cool water"), "medical")[0] == "burn"


BUILDER = """
import sys
from dspy_mama.retrieval import build_index
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings
build_index(CorpusSettings(name="test", path=sys.argv[1]), EmbedderSettings(kind="use"),
            RetrieverSettings(path=sys.argv[2]))
"""


def test_a_build_by_another_process_is_seen_too(built):
    retriever = built.open()
    (built.documents / "stroke.md").unlink()
    built.write("burn", title="Burns", text="Cool a burn under running water for twenty minutes.")
    subprocess.run([sys.executable, "-c", BUILDER, str(built.documents), str(built.index)], check=True)
    found = documents(retriever.search("burn cool water"), "medical")
    assert found[0] == "burn"
    assert "stroke" not in found


def test_a_search_goes_on_when_the_store_is_lost_meanwhile(built, caplog):
    retriever = built.open()
    (built.index / "chroma" / "chroma.sqlite3").write_bytes(b"garbage" * 99)
    (built.index / f"{retriever.collection}.revision").write_text("another")
    assert documents(retriever.search("face droop"), "medical")[0] == "stroke"
    assert "search goes on with revision" in caplog.text


def test_search_by_hand_reads_all_jurisdictions_unless_told(built):
    found = search_index(built.corpus, built.embedder, built.retriever, "privacy of patients")
    assert documents(found, "legal")[0] == "hipaa"
    scope = Scope(jurisdictions=("JP",))
    found = search_index(built.corpus, built.embedder, built.retriever, "privacy", domains=["legal"], scope=scope)
    assert documents(found, "legal") == ["ishi"]


def test_info_counts_documents_and_names_what_is_stale(built):
    info = index_info(built.corpus, built.embedder, built.retriever)
    assert info.fresh
    assert info.languages == {"en": 4, "ja": 1}
    assert info.domains == {"ethical": 1, "legal": 2, "medical": 4}
    assert info.collections == {"encyclopedic": 2, "ethics": 1, "law": 2}
    assert info.jurisdictions == {"INT": 3, "JP": 1, "US": 1}
    assert info.chunks == {"en": 4, "ja": 1}
    built.write("stroke", text="Changed.")
    built.write("new", text="New.")
    (built.documents / "asthma.md").unlink()
    info = index_info(built.corpus, built.embedder, built.retriever)
    assert (info.new, info.changed, info.gone, info.fresh) == (("new",), ("stroke",), ("asthma",), False)


def test_info_without_an_index_names_the_command(house):
    with pytest.raises(IndexStateError, match="mama index build"):
        index_info(house.corpus, house.embedder, house.retriever)


@pytest.fixture
def server(tmp_path, unused_tcp_port):
    command = [sys.executable, "-c", "from chromadb.cli.cli import app; app()", "run"]
    command += ["--path", str(tmp_path / "server"), "--host", "127.0.0.1", "--port", str(unused_tcp_port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield RetrieverSettings(mode="server", port=unused_tcp_port, path=str(tmp_path / "index"))
    process.terminate()
    process.wait(20)


def test_a_running_server_serves_as_store(house, server, monkeypatch):
    house.retriever = server
    for _ in range(200):
        try:
            first = house.build()
            break
        except DeclarationError:
            time.sleep(0.1)
    assert (first.added, house.build().kept) == (5, 5)
    retriever = house.open()
    assert documents(retriever.search("face droop"), "medical")[0] == "stroke"
    assert not (house.index / "chroma").exists()
    assert index_info(house.corpus, house.embedder, house.retriever).fresh
    house.write("burn", title="Burns", text="Cool a burn under running water for twenty minutes.")
    house.build()
    monkeypatch.setattr(module, "_SERVER_SECONDS", 1e-9)
    assert documents(retriever.search("burn cool water"), "medical")[0] == "burn"


def test_a_server_that_is_not_there_names_the_command(house, unused_tcp_port):
    house.retriever = RetrieverSettings(mode="server", port=unused_tcp_port, path=str(house.index))
    with pytest.raises(DeclarationError, match=r"chroma run --host 127\.0\.0\.1"):
        house.open()


WATCHED = """
import socket, sys
calls = []
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        calls.append((event, str(arguments[1:])))
sys.addaudithook(watch)
import dspy_mama.retrieval
assert "chromadb" not in sys.modules and "numpy" not in sys.modules, "a cheap import"
from dspy_mama.retrieval import build_index, open_retriever
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings
settings = RetrieverSettings(path=sys.argv[2]), EmbedderSettings(kind="use"), CorpusSettings(path=sys.argv[1])
build_index(*settings[::-1])
assert open_retriever(*settings).search("stroke")["medical"]
print(calls)
"""


def test_building_and_searching_open_no_connection_and_importing_is_cheap(house):
    command = [sys.executable, "-c", WATCHED, str(house.documents), str(house.index)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
