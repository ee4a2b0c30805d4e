"""The clients: the commands of each test, and the parsers of requests/s in their output."""

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import answers, servers

ROOT = Path(__file__).resolve().parents[2]
PLIMSOLL = Path(os.environ.get("PLIMSOLL", ROOT / "target" / "dist" / "plimsoll"))
PEERS = Path(os.environ.get("PLIMSOLL_PEERS", ROOT / "target" / "bench-peers"))
CONNECTIONS = 64
STREAMS = 10
TESTS = {
    "get": "GET of 37 bytes",
    "chat": "chat, 128 tokens in and out",
    "stream": f"chat as a stream of {answers.EVENTS} events in one write",
    "tls": "GET over TLS 1.3, HTTP/1.1",
    "h2": f"GET over HTTP/2 without TLS, {STREAMS} streams per connection",
    "h2tls": f"GET over HTTP/2 and TLS 1.3, {STREAMS} streams per connection",
    "llm": "chat, 128 tokens in and out, LLM tools",
}
# The tests, in the order of the table.
SERVERS = dict.fromkeys(("get", "chat", "stream"), (servers.Constant, servers.Nginx)) | {
    "tls": (servers.Nginx,),
    "h2": (servers.H2o,),
    "h2tls": (servers.H2o,),
    "llm": (servers.Nginx,),
}
# The client that ratios refer to.
REFERENCE = {
    "get": "wrk",
    "chat": "wrk",
    "stream": "wrk",
    "tls": "h2load",
    "h2": "h2load",
    "h2tls": "h2load",
    "llm": "AIPerf",
}


@dataclass
class Client:
    """`rate` parses requests/s from the output."""

    name: str
    command: list
    rate: object
    # Several processes: their memory is sampled and summed, and requests are counted apart, because they
    # take long to start.
    tree: bool = False
    requests: object = None
    env: dict = field(default_factory=dict)

    def installed(self):
        return shutil.which(str(self.command[0])) is not None


def clients(test, server, seconds, folder):
    """Those of a test that are installed."""
    makers = {"get": get, "chat": chat, "stream": stream, "tls": tls, "h2": h2, "h2tls": h2tls, "llm": llm}
    every = makers[test](server, seconds, folder)
    for missing in (client.name for client in every if not client.installed()):
        print(f"{test}: {missing} is not installed, see bench/peers", file=sys.stderr)
    return [client for client in every if client.installed()]


def get(server, seconds, folder):
    url = server.url(servers.GET)
    return [
        wrk(url, seconds),
        plimsoll_http(url, seconds),
        h2load(url, seconds, "--h1"),
        oha(url, seconds),
        k6(url, seconds, folder),
    ]


def chat(server, seconds, folder):
    url = server.url(servers.CHAT)
    body = folder / "body.json"
    body.write_text(answers.request())
    return [
        wrk(url, seconds, post_script(folder)),
        *plimsoll_run("chat", url, seconds, folder),
        h2load(url, seconds, "--h1", "-d", body),
        oha(url, seconds, "-m", "POST", "-D", body, "-T", "application/json"),
        k6(url, seconds, folder, answers.request()),
    ]


def stream(server, seconds, folder):
    url = server.url(servers.STREAM)
    return [wrk(url, seconds, post_script(folder)), *plimsoll_run("stream", url, seconds, folder)]


def tls(server, seconds, _folder):
    url = server.url(servers.GET, "https")
    return [
        h2load(url, seconds, "--h1"),
        plimsoll_http(url, seconds, "--insecure"),
        wrk(url, seconds),
        oha(url, seconds, "--insecure", "--http-version", "1.1"),
    ]


def h2(server, seconds, _folder, scheme="http", insecure=()):
    url = server.url(servers.GET, scheme)
    return [
        h2load(url, seconds, f"-m{STREAMS}"),
        plimsoll_http(url, seconds, "--http2", STREAMS, *insecure),
        oha(url, seconds, "--http2", "-p", STREAMS, *insecure),
    ]


def h2tls(server, seconds, folder):
    return h2(server, seconds, folder, "https", ["--insecure"])


def llm(server, seconds, folder):
    mine, _ = plimsoll_run("chat", server.url(servers.CHAT), seconds, folder)
    return [mine, aiperf(server, seconds, folder), guidellm(server, seconds, folder)]


def printed(pattern):
    """Parses a number from the output."""

    def rate(text, _folder):
        found = re.search(pattern, text)
        return float(found[1].replace(",", "")) if found else None

    return rate


def counted(seconds):
    """Reads requests/s from plimsoll's count of good answers, which its screen has whatever figures it refuses."""
    count = printed(r"requests due in \S+: ([\d,]+) ok")

    def rate(text, folder):
        return (count(text, folder) or 0) / seconds

    return rate


def wrk(url, seconds, script=None):
    more = ["-s", script] if script else []
    return Client(
        "wrk", ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *more, url], printed(r"Requests/sec:\s+([\d.]+)")
    )


def post_script(folder):
    script = folder / "post.lua"
    script.write_text(
        f"wrk.method='POST'; wrk.headers['content-type']='application/json'; wrk.body=[[{answers.request()}]]"
    )
    return script


def h2load(url, seconds, *more):
    return Client(
        "h2load",
        ["h2load", "-t1", f"-c{CONNECTIONS}", f"-D{seconds}", *more, url],
        printed(r"finished in [\d.]+s, ([\d.]+) req/s"),
    )


def oha(url, seconds, *more):
    command = [PEERS / "bin" / "oha", "--no-tui", "-c", CONNECTIONS, "-z", f"{seconds}s", *more, url]
    return Client("oha", command, printed(r"Requests/sec:\s+([\d.]+)"))


def k6(url, seconds, folder, body=None):
    script = folder / "k6.js"
    call = "http.get(url)" if body is None else f"http.post(url, `{body}`, json)"
    script.write_text(f"""import http from 'k6/http';
const url = '{url}', json = {{headers: {{'content-type': 'application/json'}}}};
export default function () {{ {call}; }}
""")
    command = [PEERS / "bin" / "k6", "run", "--quiet", "--vus", CONNECTIONS, "--duration", f"{seconds}s", script]
    return Client("k6", command, printed(r"http_reqs[.\s]*:\s+\d+\s+([\d.]+)/s"), env={"K6_NO_USAGE_REPORT": "true"})


def plimsoll_http(url, seconds, *more):
    command = [
        PLIMSOLL,
        "http",
        url,
        "-c",
        CONNECTIONS,
        "-d",
        f"{seconds}s",
        "--warmup",
        "0s",
        "-q",
        "--no-probe",
        "--allow-invalid",
        *more,
    ]
    return Client("plimsoll", command, counted(seconds))


def plimsoll_run(test, url, seconds, folder):
    """Without and with a line for each request."""
    profile = folder / f"{test}.yaml"
    profile.write_text(f"""name: {test}
target: {url}
key: none
model: m
stages: {CONNECTIONS}:{seconds}s
stream: {str(test == "stream").lower()}
content: {{mode: sized, approx_input_tokens: {answers.TOKENS}}}
max_tokens: {answers.TOKENS}
workers: 1
""")
    command = [PLIMSOLL, "run", profile, "--quiet", "--no-probe", "--allow-invalid", "--out", folder / "runs"]
    rate = counted(seconds)
    return [Client("plimsoll", [*command, "--no-jsonl"], rate), Client("plimsoll, `results.jsonl` on", command, rate)]


def aiperf(server, seconds, folder):
    out = folder / "aiperf"
    command = [
        PEERS / "aiperf" / "bin" / "aiperf",
        "profile",
        "--model",
        "m",
        "--url",
        server.url(""),
        "--endpoint-type",
        "chat",
        "--tokenizer",
        PEERS / "tokenizer",
        "--concurrency",
        CONNECTIONS,
        "--benchmark-duration",
        seconds,
        "--benchmark-grace-period",
        5,
        "--num-prompts",
        1000,
        "--prompt-input-tokens-mean",
        answers.TOKENS,
        "--prompt-input-tokens-stddev",
        0,
        "--output-tokens-mean",
        answers.TOKENS,
        "--use-server-token-count",
        "--no-server-metrics",
        "--no-gpu-telemetry",
        "--ui",
        "none",
        "--artifact-dir",
        out,
    ]

    def read(name):
        def value(_text, _folder):
            found = next(out.rglob("profile_export_aiperf.json"), None)
            return found and json.loads(found.read_text())[name]["avg"]

        return value

    # Not offline: then it would look for the tokenizer's folder in the hub's cache.
    return Client("AIPerf", command, read("request_throughput"), tree=True, requests=read("request_count"))


def guidellm(server, seconds, folder):
    out = folder / "guidellm.json"
    backend = f"kind=openai_http,target={server.url('')},model=m,stream=false,http2=false"
    data = f"kind=synthetic_text,prompt_tokens={answers.TOKENS},output_tokens={answers.TOKENS}"
    command = [
        PEERS / "guidellm" / "bin" / "guidellm",
        "run",
        "--backend",
        backend,
        "--profile",
        f"kind=concurrent,streams={CONNECTIONS}",
        "--constraint",
        f"kind=max_duration,seconds={seconds}",
        "--data",
        data,
        "--tokenizer",
        f"kind=hf_auto,model={PEERS / 'tokenizer'}",
        "--output",
        f"kind=json,path={out}",
        "--disable-console",
    ]

    def read(*way):
        def value(_text, _folder):
            if not out.exists():
                return None
            at = json.loads(out.read_text())["benchmarks"][0]
            for key in way:
                at = at[key]
            return at

        return value

    rate = read("metrics", "requests_per_second", "successful", "mean")
    count = read("metrics", "request_totals", "successful")
    return Client("GuideLLM", command, rate, tree=True, requests=count, env={"HF_HUB_OFFLINE": "1"})
