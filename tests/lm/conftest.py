import dspy
import pytest

from dspy_mama.lm.gate import Gate
from dspy_mama.lm.profile import LMProfile, set_profile
from lm.chat_server import ChatServer


@pytest.fixture
def serve():
    """Starts servers; returns the LM that reaches one, and the server."""
    servers = []

    def start(script, *, schema=True, logprobs=False, gate=None, **settings):
        server = ChatServer(script)
        servers.append(server)
        lm = dspy.LM(
            "openai/served",
            api_base=server.address,
            api_key="x",
            **{"num_retries": 0, "cache": False, "max_tokens": 64, "temperature": 0.0, **settings},
        )
        set_profile(lm, LMProfile(gate=gate or Gate(retries=3, backoff=0.01), json_schema=schema, logprobs=logprobs))
        return lm, server

    yield start
    for server in servers:
        server.close()
