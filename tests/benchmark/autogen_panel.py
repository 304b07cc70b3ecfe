"""The panel's conversation as AutoGen's group chat: `python autogen_panel.py ADDRESS MODE`, the prompts on stdin.

It is a process of its own, so that AutoGen may live in an environment of its own. The two prompts are the library's,
word for word; MODE is `round_robin`, or `auto`, where a model chooses every speaker as in the paper's set-up. It prints
seconds per discussion and the turns of the last one.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

TURNS = 13
INFO = {"vision": False, "function_calling": False, "json_output": True, "family": "unknown", "structured_output": True}


async def discuss(address: str, mode: str, given: dict[str, Any]) -> tuple[float, int]:
    client = OpenAIChatCompletionClient(model="panel", base_url=address, api_key="none", model_info=INFO)  # type: ignore[arg-type]
    agents: list[Any] = [
        AssistantAgent(f"Doctor_{n}", client, system_message=given["doctor"], description="a doctor")
        for n in range(1, given["doctors"] + 1)
    ]
    agents.append(AssistantAgent("Supervisor", client, system_message=given["supervisor"], description="supervisor"))
    # AutoGen counts the presentation of the case as a message.
    ends = TextMentionTermination('"consensus": true') | MaxMessageTermination(TURNS + 1)
    chat = (
        RoundRobinGroupChat(agents, termination_condition=ends)
        if mode == "round_robin"
        else SelectorGroupChat(agents, client, termination_condition=ends)
    )
    started = time.perf_counter()
    result = await chat.run(task=given["case"])
    seconds = time.perf_counter() - started
    await client.close()
    return seconds, len(result.messages) - 1


async def main(address: str, mode: str) -> None:
    given = json.loads(sys.stdin.read())
    seconds, turns = [], 0
    for _ in range(given["cases"]):
        spent, turns = await discuss(address, mode, given)
        seconds.append(spent)
    print(json.dumps({"seconds": seconds, "turns": turns}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
