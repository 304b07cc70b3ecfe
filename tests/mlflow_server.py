"""A real `mlflow server` on a free loopback port, in a process of its own."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request


@contextlib.contextmanager
def mlflow_server(folder):
    """Yields the address of a server that keeps its database and artifacts in a folder; ends it afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += [
        "--backend-store-uri",
        f"sqlite:///{folder}/server.db",
        "--artifacts-destination",
        str(folder / "files"),
    ]
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder, start_new_session=True)
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            except OSError:
                assert process.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.25)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, 9)
        process.wait()
        log.close()
