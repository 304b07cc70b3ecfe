import dataclasses
import re
import shlex

import pytest

from dspy_mama.cli.main import main
from dspy_mama.core.errors import IndexStateError
from dspy_mama.core.resources import shipped
from dspy_mama.retrieval import IndexCommands, index_info, search_index
from dspy_mama.retrieval.commands import _CORPUS, _EMBEDDER, _RETRIEVER
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings
from dspy_mama.wiring.compose import compose
from retrieval.web_server import html

CHOICES = sorted(path.stem for path in shipped("conf", "embedder").glob("*.yaml"))


def composed(command, *flags):
    words = shlex.split(command)
    assert words[: 3 + len(flags)] == ["mama", "index", "build", *flags]
    return compose(words[3 + len(flags) :])


@pytest.mark.parametrize(
    ("corpus", "embedder", "retriever"),
    [
        ({}, {}, {}),
        ({"name": "folder", "path": "my documents"}, {"kind": "use"}, {"path": "idx"}),
        ({"name": "jp", "out": "~/証拠 (1)"}, {}, {"collection": "123"}),
        ({"path": "it's, {a} $b ${c}"}, {"cache": "null", "threads": 2}, {"collection": "true"}),
        ({"path": 'say "a\\"'}, {"kind": "openai"}, {"path": ".5"}),
        (
            {"chunk_size": 800, "chunk_overlap": 0, "cjk_chunk_size": 1500, "cjk_chunk_overlap": 500},
            {
                "kind": "openai",
                "model": "m:1",
                "api_base": "http://[::1]:8/v1",
                "api_key_env": "KEY",
                "dimension": 64,
            },
            {"mode": "server", "host": "chroma.local", "port": 9000},
        ),
        *(({}, {"kind": kind}, {}) for kind in CHOICES),
        *(({}, {"kind": kind, "model": "m"}, {}) for kind in CHOICES),
    ],
)
def test_the_commands_give_back_the_settings(corpus, embedder, retriever):
    given = CorpusSettings(**corpus), EmbedderSettings(**embedder), RetrieverSettings(**retriever)
    commands = IndexCommands.of(*given)
    for settings in (composed(commands.build), composed(commands.rebuild, "--rebuild")):
        assert (settings.corpus, settings.embedder, settings.retriever) == given


def test_settings_from_conf_files_come_back_as_they_were():
    for corpus in ("shipped", "paper", "folder corpus.path=a", "wikipedia corpus.out=a", "files corpus.out=a"):
        settings = compose([*f"corpus={corpus}".split(), "embedder=openai", "retriever=server"])
        again = composed(IndexCommands.of(settings.corpus, settings.embedder, settings.retriever).build)
        for name in _CORPUS:
            assert getattr(again.corpus, name) == getattr(settings.corpus, name)
        assert again.embedder == settings.embedder
        assert again.retriever == settings.retriever


def test_what_does_not_decide_which_index_it_is_stays_out():
    fetching = CorpusSettings(urls=("https://a.example",), out="a")
    searching = RetrieverSettings(top_k=9, centred=False)
    assert IndexCommands.of(CorpusSettings(), EmbedderSettings(), searching) == IndexCommands()
    assert IndexCommands.of(fetching, EmbedderSettings(), searching).build == "mama index build corpus.out=a"
    left = {f.name for f in dataclasses.fields(EmbedderSettings)} - set(_EMBEDDER)
    assert left == {"kind"}
    assert {"name", "path", "out"} < set(_CORPUS)
    assert {"path", "host", "port", "collection"} == set(_RETRIEVER)


@pytest.mark.parametrize(
    "overrides",
    [
        [
            "corpus=pages",
            'corpus.urls=["https://a.example/x?b=[1,2]&c={d}", "http://e.example"]',
            "corpus.out=my files",
        ],
        ["corpus=wikipedia", "corpus.out=a", "corpus.http.delay=0.5", "corpus.http.robots=false"],
        ["corpus=japanese_law", "corpus.out=a", 'corpus.japanese_law.laws=["3213","ja:3213"]'],
        ["corpus=files", "corpus.out=a", "corpus.files='/b c'", "corpus.about.domains=[legal]"],
        *([f"jurisdiction={name}", "corpus.out=a"] for name in ("jp", "us", "eu", "de")),
    ],
)
def test_the_command_that_fetches_gives_back_the_sources(overrides):
    corpus = compose(overrides).corpus
    words = shlex.split(IndexCommands.of(corpus, None, RetrieverSettings()).fetch)
    assert words[:3] == ["mama", "index", "fetch"]
    assert compose(words[3:]).corpus == corpus


def test_documents_that_are_not_there_are_fetched_before_a_build(tmp_path):
    folder = tmp_path / "documents"
    corpus = CorpusSettings(urls=("https://a.example",), out=str(folder))
    commands = IndexCommands.of(corpus, EmbedderSettings(), RetrieverSettings())
    both = f"run `{commands.fetch}` and then `{commands.build}`"
    assert commands.to_build == both
    folder.mkdir()
    (folder / "README.md").write_text("no document")
    assert commands.to_build == both
    assert commands.to_rebuild == f"run `{commands.fetch}` and then `{commands.rebuild}`"
    (folder / "a.md").write_text("a document")
    assert commands.to_build == f"run `{commands.build}`"
    assert commands.to_rebuild == f"run `{commands.rebuild}`"


def test_a_folder_that_nothing_fetches_is_to_be_filled_first(tmp_path):
    commands = IndexCommands.of(CorpusSettings(path=str(tmp_path)), None, RetrieverSettings())
    assert commands.fetch is None
    assert commands.to_build == f"put documents (*.md) into {tmp_path}, or set corpus.path, and run `{commands.build}`"


def test_the_commands_of_a_message_make_the_index_that_was_missing(tmp_path, web, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    web.pages["/a"] = html("<h1>A guide to fever</h1><p>Rest and drink.</p>")
    quick = ["corpus.http.delay=0", "corpus.http.cache=pages"]
    asked = ["index", "search", "fever", f"corpus.urls=[{web.url('/a')}]", "embedder=use", "retriever.path=i", *quick]
    assert main(asked) == 2
    said = capsys.readouterr().err
    *commands, override = re.findall(r"`mama (.*?)`| add (\S+) here too", said)
    assert [shlex.split(command)[1] for command, _ in commands] == ["fetch", "build"]
    assert override == ("", "corpus.out=evidence")
    for command, _ in commands:
        assert main(shlex.split(command)) == 0
    capsys.readouterr()
    assert main([*asked, override[1]]) == 0
    assert "A guide to fever" in capsys.readouterr().out


def test_every_message_about_the_index_names_the_whole_command(house):
    def complaints(*asks):
        for ask in asks:
            with pytest.raises(IndexStateError) as caught:
                ask()
            yield str(caught.value)

    def info():
        return index_info(house.corpus, house.embedder, house.retriever)

    def search():
        return search_index(house.corpus, house.embedder, house.retriever, "q")

    def commands():
        return IndexCommands.of(house.corpus, house.embedder, house.retriever)

    assert f"corpus.path={house.documents}" in commands().build
    assert "embedder=use" in commands().build
    assert all(f"run `{commands().build}`" in said for said in complaints(house.open, info, search))
    house.build()
    house.corpus = dataclasses.replace(house.corpus, name="other")
    assert "corpus.name=other" in commands().build
    assert all(f"run `{commands().build}`" in said for said in complaints(house.open, info, search))
    (house.index / "chroma" / "chroma.sqlite3").write_bytes(b"no database" * 100)
    assert all(f"run `{commands().rebuild}`" in said for said in complaints(house.open, info, house.build))
    house.build(rebuild=True)
    house.open()
