"""The gateway and its peers as processes, and wrk to load them: the proxy on one core, client and provider on the other."""

import contextlib
import json
import os
import re
import subprocess
import sys

from . import measure
from .clients import PLIMSOLL
from .servers import wait_for

OWN = os.environ.get("PLIMSOLL_GATEWAY")
PROXY_CORE, LOAD_CORE = "0", "1"
PROVIDER, GATEWAY = 19000, 19100

ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "word " * 128}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 128, "completion_tokens": 128, "total_tokens": 256},
    },
    separators=(",", ":"),
)
PROMPT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "word " * 128}]}, separators=(",", ":"))

UPSTREAM = f'upstreams: {{provider: {{addresses: ["127.0.0.1:{PROVIDER}"]}}}}\n'
CHAT = "routes: [{name: chat, path: /v1/chat/completions, upstream: provider}]\n"
LLM = "routes: [{name: chat, path: /v1/chat/completions, upstream: provider, llm: true}]\n"
LAYERS = {
    "request_id": "request_id: {}\n",
    "metrics": "metrics: {}\n",
    "auth": "auth: {header: apikey, keys: [{name: load, key: k, tenant: retail}]}\n",
    "tenant": "tenant: {}\n",
    "rate_limits": "rate_limits: [{per: tenant, requests: 4000000000}]\n",
    "scrub": "scrub: {}\n",
    "policy": "policy: {}\n",
    "budgets": "budgets: {default: 1000000000000}\n",
    "audit": "audit: {path: FOLDER/audit.jsonl}\n",
}


@contextlib.contextmanager
def running(args, core, ready, **more):
    process = subprocess.Popen(
        ["taskset", "-c", core, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more
    )
    try:
        wait_for(ready, args[0])
        yield process
    finally:
        process.terminate()
        process.wait()


def nginx(folder, name, server):
    conf = folder / f"{name}.conf"
    conf.write_text(f"""worker_processes 1; daemon off; pid {folder}/{name}.pid; error_log /dev/null;
events {{ worker_connections 16384; }}
http {{ access_log off; keepalive_requests 100000000; client_max_body_size 10m; client_body_temp_path {folder}/t-{name};
{server} }}""")
    return ["nginx", "-c", str(conf)]


def provider(folder):
    os.chmod(folder, 0o755)
    server = (
        f"server {{ listen 127.0.0.1:{PROVIDER} backlog=4096; default_type application/json; "
        f"location / {{ return 200 '{ANSWER}'; }} }}"
    )
    return running(nginx(folder, "provider", server), LOAD_CORE, PROVIDER)


def gateway(folder, name, config, port=GATEWAY, build=PLIMSOLL):
    file = folder / f"{name}.yaml"
    file.write_text(f"name: {name}\nlisten: 127.0.0.1:{port}\n" + config.replace("FOLDER", str(folder)))
    # Another build of the gateway alone: crates/gateway/server/examples/embed.rs, which ends with its input.
    command = [OWN] if OWN else [build, "gateway", "--config"]
    return running([*command, str(file)], PROXY_CORE, port, stdin=subprocess.PIPE)


def cpu(process):
    """CPU seconds of a process and its children, as nginx has a worker."""
    return sum(map(measure.cpu, measure.family(process.pid)))


def wrk(folder, port, path, seconds, post=False, headers=()):
    """Loads it with 64 connections; post is a JSON text, or True for a chat. Returns the requests and the rate."""
    args = ["taskset", "-c", LOAD_CORE, "wrk", "-t1", "-c64", f"-d{seconds}"]
    if post:
        script, body = folder / "post.lua", PROMPT if post is True else post
        script.write_text(f"wrk.method='POST'\nwrk.headers['content-type']='application/json'\nwrk.body='{body}'\n")
        args += ["-s", str(script)]
    for header in headers:
        args += ["-H", header]
    text = subprocess.run([*args, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True).stdout
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)", text)
    if bad:
        sys.exit(f"errors: {bad.group(0)}")
    return int(re.search(r"(\d+) requests in", text).group(1)), float(
        re.search(r"Requests/sec:\s*([\d.]+)", text).group(1)
    )
