"""A scripted LM: a real `dspy.LM` whose engine answers from a function and keeps every request."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from typing import Any

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, Usage


def fields_of(request: Request) -> list[str]:
    """Output fields that the request's JSON schema or prompt asks for, in order."""
    form = request.config.response_format
    if form:
        schema = form.get("schema") or form["json_schema"]["schema"]
        return list(schema["properties"])
    system = system_of(request)
    if "Its fields, in this order:" not in system:
        return []
    listed = system.split("Its fields, in this order:")[1]
    return [line[2:].split(" ")[0].rstrip(":") for line in listed.splitlines() if line.startswith("- ")]


def text_of(message: Any) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def system_of(request: Request) -> str:
    system = request.system
    return system if isinstance(system, str) else "".join(p.text for p in system or ())


def user_of(request: Request) -> str:
    return text_of(request.messages[-1])


def default_values(names: list[str], risk: bool = True) -> dict[str, Any]:
    return {
        name: risk if name.endswith("risk") else [1] if name == "citations" else f"text of {name}" for name in names
    }


def kind_of(request: Request) -> str:
    """Which module asks: routing, initial, verification or consensus."""
    system = system_of(request)
    if "reception of a hospital" in system:
        return "routing"
    for sign, kind in (("Task: verification", "verification"), ("Task: final", "consensus"), ("Task: ", "initial")):
        if sign in system:
            return kind
    return "other"


class Kept(list):
    """A list that copies of its owner share: optimisers copy programs, their LMs with them, all the time."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return self


class ScriptedEngine:
    """Answers from `script(request)`: a dict becomes JSON, a str goes out as it is, an exception is raised."""

    supports_response_schema = True
    supports_function_calling = False
    supports_reasoning = False
    supported_params = ("temperature", "max_tokens", "response_format", "logprobs", "top_logprobs")

    def __init__(self, script: Callable[[Request], Any] | None = None, finish: str = "stop") -> None:
        self.script = script or (lambda request: default_values(fields_of(request)))
        self.finish = finish
        self.requests: list[Request] = Kept()
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        with self._lock:
            self.requests.append(request)
        reply = self.script(request)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Response):
            return reply
        text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        return response(text, request, finish=self.finish)

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptedEngine:
        return self


class AsyncScriptedEngine:
    def __init__(self, engine: ScriptedEngine) -> None:
        self.engine = engine

    async def complete(self, request: Request) -> Response:
        return self.engine.complete(request)


def response(text: str, request: Request, *, finish: str = "stop", logprobs: Any = None) -> Response:
    return Response(
        id="r1",
        model=request.model,
        message=Message(role="assistant", parts=(TextPart(text),)),
        finish_reason=finish,
        usage=Usage(input_tokens=100, output_tokens=20, cache_read_tokens=60),
        logprobs=logprobs,
    )


def label_tokens(pieces: list[Any]) -> tuple[Any, ...]:
    """Token log probabilities from strings, and (text, p_true) pairs for labels."""
    from dspy.lm15 import TokenLogprob, TopLogprob

    tokens = []
    for piece in pieces:
        if isinstance(piece, str):
            tokens.append(TokenLogprob(token=piece, logprob=-0.01, top=(TopLogprob(token=piece, logprob=-0.01),)))
            continue
        text, p_true = piece
        top = (
            TopLogprob(token=" true", logprob=math.log(p_true)),
            TopLogprob(token=" false", logprob=math.log(1 - p_true)),
        )
        tokens.append(TokenLogprob(token=text, logprob=math.log(p_true if "true" in text else 1 - p_true), top=top))
    return tuple(tokens)


def scripted_lm(script: Callable[[Request], Any] | None = None, name: str = "scripted/a", **kwargs: Any) -> dspy.LM:
    engine = ScriptedEngine(script, finish=kwargs.pop("finish", "stop"))
    settings = {"cache": False, "num_retries": 0, "max_tokens": 200, "temperature": 0.0, **kwargs}
    lm = dspy.LM(name, engine=engine, async_engine=AsyncScriptedEngine(engine), **settings)
    lm.requests = engine.requests
    return lm
