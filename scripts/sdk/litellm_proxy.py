"""LiteLLM's proxy in front of a provider of OpenAI's dialect.

Usage: litellm_proxy.py PROVIDER LOG. Prints its port once it answers, and ends with its standard input.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

CONFIG = """model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{provider}/v1", api_key: k}}
"""

with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
folder = Path(tempfile.mkdtemp())
(folder / "config.yaml").write_text(CONFIG.format(provider=sys.argv[1]))
program = [Path(sys.executable).parent / "litellm", "--config", folder / "config.yaml"]
with open(sys.argv[2], "a") as log:
    # A proxy of this machine alone, for one test.
    environment = {**os.environ, "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
    command = [*program, "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
deadline = time.monotonic() + 300
while time.monotonic() < deadline and server.poll() is None:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness")
        print(port, flush=True)
        sys.stdin.read()
        break
    except (urllib.error.URLError, ConnectionError):
        time.sleep(1)
server.terminate()
server.wait()
