"""Targets with a capacity that is known, or that long runs show."""

import contextlib

from .chain import Gateway, Load, Mock, Server
from .planted import GENERATOR, HEAVY, PROFILE, SERVERS
from .servers import free_port


class Limited:
    """A target whose knee is looked for. Use it in a `with` statement.

    `within_ms` is the bound of the objective, for 99 % of the requests; `known` the knee by arithmetic, if there is one;
    `lowest` a load that it carries easily.
    """

    name = ""
    within_ms, share, known, lowest = 50, 0.99, None, 100
    models, tokens = "{ttft: 5ms, output: from_request}", 32

    def __init__(self, plimsoll, folder):
        self.plimsoll, self.folder = plimsoll, folder

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            mock = stack.enter_context(Mock(self.plimsoll, self.folder, self.models, places=[self.mocks_core()]))
            self.url = self.start(stack, mock)
            self.stack = stack.pop_all()
        self.load = Load(self.plimsoll, self.folder, PROFILE.format(tokens=self.tokens), [GENERATOR])
        return self

    def __exit__(self, *_):
        self.stack.close()

    def mocks_core(self):
        return GENERATOR

    def objective(self):
        return f"response_time<{self.within_ms}ms : {self.share:.0%}"

    def run(self, rate, seconds):
        """A run at a fixed rate, with its rows."""
        return self.load.run(self.url, f"w@{rate}:2s,@{rate}:{seconds}s", "--allow-invalid", "--no-probe", rows=True)


class Nginx(Limited):
    """Passes 800 requests/s, leaves 20 more, and refuses the rest: 99 % pass at 800 / 0.99."""

    # Refused requests miss, and no queue grows: the bound is wide, so that stalls of the machine keep it.
    name, known, within_ms = "nginx", 800 / 0.99, 250

    def start(self, stack, mock):
        port, folder = free_port(), self.folder
        paths = " ".join(
            f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = folder / "nginx.conf"
        config.write_text(f"""daemon off; master_process off; pid {folder}/pid; error_log {folder}/err crit;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000; {paths}
  limit_req_zone $server_name zone=all:1m rate=800r/s;
  upstream provider {{ server 127.0.0.1:{mock.port}; keepalive 256; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port}; server_name limited;
    location / {{ limit_req zone=all burst=20 nodelay; limit_req_status 429;
      proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; }} }} }}""")
        command = ["nginx", "-p", folder, "-c", config, "-e", folder / "err"]
        stack.enter_context(Server("nginx", folder, command, port, [SERVERS]))
        return f"http://127.0.0.1:{port}"


class HAProxy(Limited):
    """Passes 16 requests at once of 40 ms each, and lets the others wait: 400/s, less what passing on takes."""

    name, known = "haproxy", 16 / 0.040
    within_ms = 120
    models = "{ttft: 40ms, output: from_request}"

    def start(self, stack, mock):
        port, config = free_port(), self.folder / "haproxy.cfg"
        config.write_text(f"""global
    nbthread 1
    maxconn 8192
defaults
    mode http
    retries 0
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    timeout queue 20s
frontend clients
    bind 127.0.0.1:{port} backlog 4096
    default_backend provider
backend provider
    http-reuse always
    server provider 127.0.0.1:{mock.port} maxconn 16 pool-purge-delay 10m
""")
        stack.enter_context(Server("haproxy", self.folder, ["haproxy", "-db", "-f", config], port, [SERVERS]))
        return f"http://127.0.0.1:{port}"


class OneCore(Limited):
    """The reference gateway with policy and scrub, 512 tokens in each request, on a core of its own."""

    name, lowest, tokens = "gateway", 300, 512
    layers, llm = HEAVY, True

    def start(self, stack, mock):
        gateway = Gateway(self.plimsoll, self.folder, mock.port, self.layers, self.llm, [SERVERS])
        return stack.enter_context(gateway).url


class RateLimit(OneCore):
    """The reference gateway with a token bucket of 500/s: 99 % pass at 500 / 0.99."""

    name, known, lowest, tokens, within_ms = "limiter", 500 / 0.99, 100, 32, 250
    layers, llm = "rate_limits: [{per: global, requests: 500, window: 1s, algorithm: bucket}]\n", False


class Slowdown(Limited):
    """The mock itself, slower with each request in flight: after T (1 + s (n - k)) with n in flight. n is the rate times
    that (Little), so that the bound R is reached at the rate (1 - T (1 - s k) / R) / (T s)."""

    name, within_ms = "slowdown", 40
    T, KNEE, SLOPE = 0.020, 8, 0.05
    models = f"{{ttft: {1e3 * T:g}ms, slowdown: {{knee: {KNEE}, slope: {SLOPE}}}, output: from_request}}"
    known = (1 - T * (1 - SLOPE * KNEE) / (within_ms / 1e3)) / (T * SLOPE)

    def mocks_core(self):
        return SERVERS

    def start(self, _stack, mock):
        return mock.url


class Instant(Limited):
    """The mock itself, at once: what limits is the generator."""

    name, lowest = "instant", 1_000
    models = "{output: from_request}"

    def mocks_core(self):
        return SERVERS

    def start(self, _stack, mock):
        return mock.url


TARGETS = {target.name: target for target in (Nginx, HAProxy, OneCore, RateLimit, Slowdown)}
