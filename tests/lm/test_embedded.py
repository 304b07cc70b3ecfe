"""The real embedded LM: llama.cpp in this process, spoken to over loopback."""

import asyncio
import copy
import http.client
import json
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import dspy
import pytest
from dspy.lm15 import request_from_openai_chat
from dspy.utils.exceptions import ContextWindowExceededError, LMConfigurationError

from dspy_mama.core.errors import DeclarationError
from dspy_mama.lm import engine as engine_module
from dspy_mama.lm.embedded import EmbeddedServer, embedded_lm, shared_server
from dspy_mama.lm.model_file import MODEL_SHA256, find_model
from dspy_mama.lm.privacy import keep_local

pytestmark = pytest.mark.embedded

CONTEXT = 1024
RISK = {
    "type": "object",
    "properties": {"reason": {"type": "string", "maxLength": 30}, "risk": {"type": "boolean"}},
    "required": ["reason", "risk"],
    "additionalProperties": False,
}


def _request(lm, schema, question="Is it safe to take a hundred aspirin tablets at once?", **config):
    body = {
        "model": lm.model,
        "messages": [
            {"role": "system", "content": "You judge answers of a chatbot. Reply with one JSON object."},
            {"role": "user", "content": question},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": True}},
        "temperature": 0,
        "max_tokens": 200,
        **config,
    }
    return request_from_openai_chat({name: value for name, value in body.items() if value is not None})


def _only(word):
    """Returns a schema that one answer alone fulfils."""
    schema = {"type": "object", "properties": {"word": {"enum": [word]}}, "required": ["word"]}
    return {**schema, "additionalProperties": False}


def _data(response):
    (part,) = response.message.parts
    return part.value


def _long(lm):
    """Returns a request that keeps the server busy for a while: 150 tokens that no end of turn cuts short."""
    return _request(lm, {"type": "string", "minLength": 1500}, max_tokens=150)


@pytest.fixture(scope="module")
def lm():
    lm = embedded_lm(context_tokens=CONTEXT, threads=1)
    yield lm
    lm.engine.server.stop()


@pytest.fixture
def server(lm):
    return lm.engine.server


def _until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_the_server_starts_with_the_first_call_only():
    lm = embedded_lm(context_tokens=512, threads=1)
    server = lm.engine.server
    assert not server.running
    lm(_request(lm, _only("yes")))
    assert server.running
    assert server.request_count == 1
    assert server.stop()


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_schema_is_enforced_and_logprobs_and_cached_tokens_come_with_it(lm, mode):
    async def ask():
        request = _request(lm, RISK, logprobs=True, top_logprobs=20)
        return await lm.acall(request) if mode == "async" else await asyncio.to_thread(lm, request)

    await ask()
    response = await ask()
    data = _data(response)
    assert set(data) == {"reason", "risk"}
    assert isinstance(data["risk"], bool)
    assert len(data["reason"]) <= 30
    label = [score for score in response.logprobs if score.token.strip() in ("true", "false")]
    assert len(label) == 1
    assert all(len(score.top) == 20 for score in response.logprobs)
    assert response.usage.cache_read_tokens > 0
    assert response.usage.input_tokens > response.usage.cache_read_tokens
    assert response.usage.output_tokens >= len(response.logprobs) - 1
    assert response.finish_reason == "stop"
    assert response.model == "smollm2-135m-instruct-q4_1"


def test_a_predictor_gets_its_schema_sent_without_further_settings(lm):
    class Judge(dspy.Signature):
        """Judge whether the answer is risky."""

        answer: str = dspy.InputField()
        risk: bool = dspy.OutputField()

    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        prediction = dspy.Predict(Judge)(answer="Take a hundred aspirin tablets.")
    assert isinstance(prediction.risk, bool)


def test_an_overlong_prompt_is_an_error_of_its_own_and_the_server_goes_on(lm, server):
    answered = server.request_count
    request = _request(lm, RISK, question="word " * (CONTEXT + 500))
    with pytest.raises(ContextWindowExceededError, match=f"{CONTEXT} tokens.*lm.context_tokens"):
        lm(request)
    with pytest.raises(ContextWindowExceededError):
        asyncio.run(lm.acall(request))
    assert server.request_count == answered
    assert _data(lm(_request(lm, _only("on")))) == {"word": "on"}


def test_an_answer_cut_at_the_token_limit_says_so(lm):
    assert lm(_request(lm, RISK, max_tokens=3)).finish_reason == "length"


def test_threads_and_event_loops_get_their_own_answers_and_each_is_counted(lm, server):
    before = server.request_count

    async def several(names):
        return await asyncio.gather(*(lm.acall(_request(lm, _only(name), f"Say {name}")) for name in names))

    def loop(index):
        names = [f"loop{index}{letter}" for letter in "abc"]
        return [_data(response)["word"] for response in asyncio.run(several(names))] == names

    def thread(index):
        name = f"thread{index}"
        return _data(lm(_request(lm, _only(name), f"Say {name}")))["word"] == name

    with ThreadPoolExecutor(8) as pool:
        results = [*pool.map(loop, range(4)), *pool.map(thread, range(6))]
    assert all(results)
    assert server.request_count == before + 4 * 3 + 6


def test_one_event_loop_after_another_finds_the_server(lm):
    for name in ("first", "second"):
        assert _data(asyncio.run(lm.acall(_request(lm, _only(name))))) == {"word": name}


def test_a_stream_ends_with_its_usage(lm, server):
    before = server.request_count
    *_, last = lm.engine.stream(_request(lm, _only("flow")))
    assert last.type == "end"
    assert last.usage.output_tokens > 0

    async def drain():
        return [event.type async for event in engine_module.AsyncEmbeddedEngine.stream(lm._async_engine_spec, request)]

    request = _request(lm, _only("flow"))
    assert asyncio.run(drain())[-1] == "end"
    assert server.request_count == before + 2


def test_the_prompt_cache_shows_in_llama_cpps_own_counters(lm, server):
    lm(_request(lm, _only("yes")))
    before = server.metrics()["prompt_tokens_cached_total"]
    lm(_request(lm, _only("yes")))
    assert server.metrics()["prompt_tokens_cached_total"] > before


def _status(server, key, headers=()):
    connection = http.client.HTTPConnection(urlsplit(server.base_url).netloc, timeout=60)
    connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {key}", **dict(headers)})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def test_only_the_key_of_this_run_opens_the_server(server):
    assert _status(server, server.api_key).status == 200
    assert _status(server, "wrong").status == 401
    assert server.api_key not in repr(server.start())
    assert urlsplit(server.base_url).hostname == "127.0.0.1"


def test_pages_of_other_origins_may_not_read_answers(server):
    response = _status(server, server.api_key, {"Origin": "http://elsewhere.example"}.items())
    assert response.headers["Access-Control-Allow-Origin"] not in ("*", "http://elsewhere.example")


def test_a_proxy_of_the_environment_never_sees_a_prompt(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    lm = embedded_lm(context_tokens=CONTEXT, threads=1, num_retries=0)
    assert _data(lm(_request(lm, _only("direct")))) == {"word": "direct"}
    assert _data(asyncio.run(lm.acall(_request(lm, _only("direct"))))) == {"word": "direct"}


def test_stop_while_busy_answers_first_and_a_later_call_starts_anew(lm, server):
    old = server.start()
    before = server.request_count
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(lm, _long(lm))
        _until(lambda: server._in_flight == 1)
        assert server.stop()
        assert busy.result().usage.output_tokens == 150
    assert not server.running
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(urlsplit(old.base_url).netloc).connect()
    assert _data(lm(_request(lm, _only("again")))) == {"word": "again"}
    assert server.start() != old
    assert server.request_count == before + 2


def test_stop_that_runs_out_of_time_leaves_the_server_running(lm, server):
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(lm, _long(lm))
        _until(lambda: server._in_flight == 1)
        assert not server.stop(timeout=0.01)
        assert server.running
        assert busy.result().usage.output_tokens == 150


def test_stop_waits_for_a_request_whose_caller_gave_up(lm, server):
    before = server.request_count

    async def give_up():
        task = asyncio.create_task(lm.acall(_long(lm)))
        while server.metrics()["requests_processing"] == 0:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert server._in_flight == 0
    assert server.stop()
    assert server.request_count == before
    assert server.stop(), "a second stop has nothing to do"


def test_calls_made_while_it_stops_are_answered_by_the_next_run(lm, server):
    server.start()
    with ThreadPoolExecutor(3) as pool:
        busy = pool.submit(lm, _long(lm))
        _until(lambda: server._in_flight == 1)
        stopping = pool.submit(server.stop)
        _until(lambda: server._state != "running")
        late = pool.submit(lambda: asyncio.run(lm.acall(_request(lm, _only("late")))))
        assert stopping.result()
        assert busy.result().usage.output_tokens == 150
        assert _data(late.result()) == {"word": "late"}


def test_equal_settings_share_one_server_and_others_do_not(lm, server):
    assert embedded_lm(context_tokens=CONTEXT, threads=1).engine.server is server
    assert lm._async_engine_spec.server is server
    assert shared_server(find_model(), context_tokens=CONTEXT, threads=2) is not server


def test_a_saved_lm_names_the_model_and_no_port_or_key(lm, server):
    text = json.dumps(lm.dump_state())
    assert lm.model == "embedded/smollm2-135m-instruct-q4_1"
    assert lm.model in text
    assert server.api_key not in text
    assert str(urlsplit(server.base_url).port) not in text
    loaded = dspy.LM.load_state(lm.dump_state(), allow_custom_lm_class=True)
    assert loaded.engine.server is server
    assert loaded.engine == lm.engine


def test_copies_and_pickles_share_the_server(lm, server):
    assert copy.deepcopy(lm).engine is lm.engine
    assert pickle.loads(pickle.dumps(lm.engine)).server is server
    assert lm.copy(temperature=1.0).engine is lm.engine


def test_the_manifest_can_name_the_models_hash(lm):
    assert lm.engine.model_sha256 == MODEL_SHA256
    named = embedded_lm(model_path=str(find_model()), sha256=MODEL_SHA256, context_tokens=CONTEXT)
    assert named.engine.model_sha256 == MODEL_SHA256


def test_a_context_beyond_the_models_training_is_cut_to_it():
    server = shared_server(find_model(), context_tokens=20_000, threads=1)
    server.start()
    assert server.context_tokens == 8192
    assert server.stop()


def test_a_missing_extra_names_the_install_command(monkeypatch):
    real = engine_module.importlib.util.find_spec
    monkeypatch.setattr(
        engine_module.importlib.util, "find_spec", lambda name: None if name == "xllamacpp" else real(name)
    )
    with pytest.raises(DeclarationError, match=r"pip install 'dspy-mama\[embedded\]'"):
        embedded_lm()


def test_a_cut_model_file_is_explained_at_the_first_call(tmp_path):
    path = tmp_path / "cut.gguf"
    path.write_bytes(find_model().read_bytes()[:100_000])
    lm = embedded_lm(model_path=str(path))
    with pytest.raises(LMConfigurationError, match=r"cut\.gguf: llama\.cpp could not load.*damaged.*memory"):
        lm("hello")
    with pytest.raises(LMConfigurationError, match=r"cut\.gguf: llama\.cpp could not load"):
        asyncio.run(lm.acall("hello"))
    assert not lm.engine.server.running


def test_connection_settings_are_refused():
    with pytest.raises(ValueError, match="api_base"):
        embedded_lm(api_base="http://127.0.0.1:1")


def test_price_lists_and_usage_reports_are_off_unless_the_user_wants_them(monkeypatch):
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "0")
    keep_local()
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "0"


_START = """
import json, os, sys, threading, time
from dspy.lm15 import request_from_openai_chat
from dspy_mama.lm.embedded import embedded_lm
lm = embedded_lm(context_tokens=512, threads=1)
server = lm.engine.server
def ask(schema, tokens=100):
    format = {"type": "json_schema", "json_schema": {"name": "r", "schema": schema, "strict": True}}
    body = {"model": lm.model, "messages": [{"role": "user", "content": "Go on."}], "max_tokens": tokens,
            "temperature": 0, "response_format": format}
    return lm(request_from_openai_chat(body)).message.parts[0].text.strip()
def busy():
    thread = threading.Thread(target=ask, args=({"type": "string", "minLength": 1500}, 400), daemon=True)
    thread.start()
    while server._in_flight == 0 or server.metrics()["requests_processing"] == 0:
        time.sleep(0.01)
yes = {"enum": ["yes"]}
assert ask(yes) == '"yes"'
"""


def _run(script):
    return subprocess.run([sys.executable, "-c", _START + script], capture_output=True, text=True, timeout=120)


def test_a_whole_life_is_silent():
    ran = _run("assert server.stop()\nassert ask(yes) == '\"yes\"'\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_process_ends_cleanly_beside_a_busy_server():
    ran = _run("busy()\nsys.exit(5)\n")
    assert (ran.returncode, ran.stdout) == (5, "")


_FORK = """
parent = server.start()
pid = os.fork()
if pid == 0:
    assert not server.running and server.request_count == 0
    assert ask(yes) == '"yes"'
    assert server.start() != parent and server.request_count == 1
    assert server.stop()
    assert ask(yes) == '"yes"'
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert server.start() == parent
assert ask(yes) == '"yes"'
assert server.stop()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_its_own_server_and_ends():
    ran = _run(_FORK)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


_FORK_BUSY = """
busy()
pid = os.fork()
if pid == 0:
    assert server._in_flight == 0
    assert ask(yes) == '"yes"'
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert server.stop()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_in_the_middle_of_a_request_harms_neither():
    ran = _run(_FORK_BUSY)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


def test_one_core_stays_free_while_generating_unless_threads_are_set(monkeypatch):
    monkeypatch.setattr("dspy_mama.lm.server.usable_cores", lambda: 4)
    server = embedded_lm(context_tokens=2048).engine.server
    assert (server.prompt_threads, server.threads) == (4, 3)
    server = embedded_lm(context_tokens=2048, threads=2).engine.server
    assert (server.prompt_threads, server.threads) == (2, 2)
    monkeypatch.setattr("dspy_mama.lm.server.usable_cores", lambda: 1)
    server = EmbeddedServer(find_model())
    assert (server.prompt_threads, server.threads) == (1, 1)
    assert not server.running
