"""`mama index fetch`: exit codes, warnings, JSON."""

import json
import re
import shlex

import pytest

from dspy_mama.cli.main import main
from retrieval.web_server import WebServer, html


@pytest.fixture
def web():
    server = WebServer()
    server.pages["/a"] = html("<h1>A guide</h1><p>Text</p>")
    yield server
    server.close()


@pytest.fixture
def fetch(web, tmp_path, capsys):
    """Runs the command and returns exit code, stdout and stderr."""

    def run(*paths, options=()):
        urls = ",".join(web.url(path) for path in paths)
        code = main([
            "index", "fetch", *options, "corpus=pages", f"corpus.urls=[{urls}]", f"corpus.out={tmp_path / 'documents'}",
            f"corpus.http.cache={tmp_path / 'pages'}", "corpus.http.delay=0", "corpus.http.retries=0",
        ])  # fmt: skip
        return code, *capsys.readouterr()

    return run


def test_documents_with_a_fault_beside_them_exit_0_with_a_warning_and_the_next_command(fetch, web, tmp_path):
    code, out, err = fetch("/a", "/missing")
    assert code == 0
    assert "1 document written" in out
    build = re.search("next: `mama (.*)`", out)
    assert build
    assert main([*shlex.split(build[1]), "embedder=use", f"retriever.path={tmp_path / 'index'}"]) == 0
    assert f"warning: {web.url('/missing')}: the server answers 404 Not Found" in err


def test_nothing_at_all_exits_1_and_names_the_fault(fetch):
    code, _, err = fetch("/missing")
    assert code == 1
    assert "nothing was fetched" in err
    assert "404" in err


def test_the_report_is_one_json_document(fetch):
    code, out, _ = fetch("/a", "/missing", options=["--json"])
    report = json.loads(out)
    assert code == 0
    assert (report["written"], report["unchanged"], len(report["faults"])) == (1, 0, 1)


def test_without_a_source_or_a_folder_the_declaration_is_at_fault(capsys):
    assert main(["index", "fetch"]) == 2
    assert "no source to fetch" in capsys.readouterr().err
    assert main(["index", "fetch", "corpus=wikipedia"]) == 2
    assert "corpus.out" in capsys.readouterr().err
    assert main(["index", "build", "corpus=wikipedia"]) == 2
    assert "corpus.out" in capsys.readouterr().err
