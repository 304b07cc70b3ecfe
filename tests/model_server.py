"""A real `mlflow models serve` on a free loopback port, in a process of its own."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


class ServedModel:
    def __init__(self, address, log):
        self.address = address
        self.log = log

    def ask(self, document, path="/invocations"):
        """Posts a document and returns the status and the reply."""
        request = urllib.request.Request(
            self.address + path, json.dumps(document).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


def serve_command(uri, port):
    options = ["--host", "127.0.0.1", "--port", str(port), "--env-manager", "local", "--workers", "1"]
    return [sys.executable, "-m", "mlflow", "models", "serve", "-m", uri, *options]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def model_server(uri, store, folder, **variables):
    """Yields the served model; ends its processes afterwards."""
    port = free_port()
    environment = {**os.environ, "MLFLOW_TRACKING_URI": store, "MLFLOW_DISABLE_TELEMETRY": "true", **variables}
    # mlflow starts uvicorn by name.
    environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), environment.get("PATH", "")])
    log = folder / "serve.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            serve_command(uri, port), env=environment, stdout=stream, stderr=stream, cwd=folder, start_new_session=True
        )
        try:
            for _ in range(480):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=5)
                    break
                except OSError:
                    assert process.poll() is None, log.read_text()
                    time.sleep(0.25)
            yield ServedModel(f"http://127.0.0.1:{port}", log)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
            process.wait()
