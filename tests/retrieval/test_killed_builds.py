"""A build that is killed anywhere, and then run again, gives the index of a build that was left alone.

The driver is a process of its own that forks one child per kill: before and after every write to the store, the cache
and the stamp, and at arbitrary moments. Vectors come from hashes, so that the time goes into writing.
"""

import json
import shutil
import subprocess
import sys

DRIVER = """
import hashlib, json, os, shutil, signal, sys, threading, time
from pathlib import Path
import chromadb, chromadb.config, numpy as np
from dspy_mama.retrieval import build
from dspy_mama.retrieval.cache import CachedEmbedder, VectorCache
from dspy_mama.retrieval.chroma import ChromaStore, open_store
from dspy_mama.retrieval.retriever import ChromaRetriever
from dspy_mama.settings import CorpusSettings, EmbedderSettings, RetrieverSettings

class Hashed:
    id, dimension = "test/hashed", 16
    def embed_documents(self, texts):
        return np.stack([self.embed_query(text) for text in texts])
    def embed_query(self, text):
        raw = np.frombuffer(hashlib.sha512(text.encode()).digest()[:16], np.uint8).astype(np.float32) - 127.5
        return raw / np.linalg.norm(raw)

build.make_embedder = lambda settings: Hashed()
build._BATCH = 2
before, after = (CorpusSettings(name="t", path=path) for path in sys.argv[1:3])
root = Path(sys.argv[3])

def settings(name):
    return RetrieverSettings(path=str(root / name), collection="test")

def child(work):
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
    return pid

def wait(pid):
    return os.waitpid(pid, 0)[1]

def run(corpus, name):
    build.build_index(corpus, EmbedderSettings(), settings(name))

def killing(corpus, name, at):
    seen = 0
    def step():
        nonlocal seen
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
        seen += 1
    def wrapped(function):
        def call(*a, **k):
            step()
            result = function(*a, **k)
            step()
            return result
        return call
    for method in ("create", "set_header", "upsert", "delete"):
        setattr(ChromaStore, method, wrapped(getattr(ChromaStore, method)))
    VectorCache.put = wrapped(VectorCache.put)
    build._stamp = wrapped(build._stamp)
    run(corpus, name)

def state(corpus, name):
    with open_store(settings(name), "test") as store:
        assert store.exists()
        hashes, header = store.hashes(), store.header()
    retriever = ChromaRetriever(settings(name), Hashed(), corpus)
    answers = {q: {d: [(p.id, p.score, p.text) for p in found] for d, found in retriever.search(q).items()}
               for q in ("stroke face droop", "asthma at night", "patients decide")}
    return {"hashes": hashes, "header": header.to_metadata(), "answers": answers}

def told(corpus, name):
    (root / f"{name}.json").write_text(json.dumps(state(corpus, name), sort_keys=True))

def fresh(name):
    shutil.copytree(root / "old", root / name)

assert wait(child(lambda: run(before, "old"))) == 0
fresh("whole")
began = time.perf_counter()
assert wait(child(lambda: (run(after, "whole"), told(after, "whole")))) == 0
whole, length = (root / "whole.json").read_text(), time.perf_counter() - began
done, at = [], 0
while True:
    name = f"step{at}"
    fresh(name)
    status = wait(child(lambda: killing(after, name, at)))
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
    assert wait(child(lambda: (run(after, name), told(after, name)))) == 0
    done.append((root / f"{name}.json").read_text() == whole)
    at += 1
for share in (0.15, 0.35, 0.55, 0.75):
    name = f"time{share}"
    fresh(name)
    pid = child(lambda: run(after, name))
    time.sleep(share * length)
    os.kill(pid, signal.SIGKILL)
    wait(pid)
    assert wait(child(lambda: (run(after, name), told(after, name)))) == 0
    done.append((root / f"{name}.json").read_text() == whole)
print(json.dumps({"kills": len(done), "same": sum(done), "chunks": len(json.loads(whole)["hashes"])}))
"""


def test_killed_anywhere_and_run_again_the_index_is_the_same(house, tmp_path):
    """The second build adds, changes and deletes documents, so that every kind of write is interrupted."""
    later = tmp_path / "later"
    shutil.copytree(house.documents, later)
    (later / "hipaa.md").unlink()
    changed = (later / "asthma.md").read_text(encoding="utf-8").replace("at night", "in the early morning")
    (later / "asthma.md").write_text(changed, encoding="utf-8")
    for number in range(5):
        source = (later / "stroke.md").read_text(encoding="utf-8").replace("Face droop", f"Sign {number}, face droop")
        (later / f"new{number}.md").write_text(source.replace("id: stroke", f"id: new{number}"), encoding="utf-8")
    command = [sys.executable, "-c", DRIVER, str(house.documents), str(later), str(tmp_path / "indexes")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["chunks"] == 9
    assert found["kills"] >= 16
    assert found["same"] == found["kills"]
