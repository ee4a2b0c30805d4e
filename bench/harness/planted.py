"""Bottlenecks that are planted into a chain of generator, gateway, provider and store, one at a time.

Generator on core 1, servers on core 0. Without a plant, the provider's 5 ms and the number of users bound the
throughput, and every process has CPU to spare. `lift` takes the plant out of the running chain: what binds is what the
throughput rises without.
"""

import contextlib
import math
import subprocess
import sys

from . import host
from .chain import Foreign, Gateway, Load, Mock, Redis, served
from .places import Core, Network, Quota, Unable
from .processes import die_with_parent

USERS, TTFT_MS = 16, 5
SERVERS, GENERATOR = Core(0), Core(1)
# A check of a limit and of a budget for every request: the store is asked twice or more.
LAYERS = """request_id: {}
tenant: {anonymous: true}
rate_limits: [{per: global, requests: 4000000000}]
budgets: {default: 1000000000000}
store: {redis: "STORE", timeout: 5s}
"""
HEAVY = "request_id: {}\npolicy: {}\nscrub: {}\n"
# Datagrams that nobody reads, and connections that nobody accepts.
OVERFLOW = """import socket, time
deaf, full = socket.socket(type=socket.SOCK_DGRAM), socket.create_server(('127.0.0.1', 0), backlog=1)
deaf.bind(('127.0.0.1', 0))
while True:
    deaf.sendto(bytes(9_000), deaf.getsockname())
    with socket.socket() as client:
        client.setblocking(False)
        client.connect_ex(full.getsockname())
    time.sleep(0.005)
"""
PROFILE = """name: planted
stages: "1:1s"
key: none
model: m
content: {{mode: sized, approx_input_tokens: {tokens}}}
max_tokens: 16
workers: 1
"""
# Seconds: the warm-up of a load, and what is left out of the log at both ends of the rest.
WARMUP, MARGIN = 1, 0.3


class Planted:
    """A chain with one bottleneck. Use it in a `with` statement.

    `word` is what binds, `how` the way in which it is made to. A subclass says where processes run, what the load is,
    and how the bottleneck is taken away.
    """

    word = how = ""
    # Loads of the stages, one after the other; the last one counts.
    stages, lifted_stages = (f"{USERS}",), (f"{USERS}",)
    models = f"{{ttft: {TTFT_MS}ms, output: from_request}}"
    tokens, layers, llm = 64, LAYERS, True
    # Address of the gateway.
    host = "127.0.0.1"
    # Minimum rise of the throughput without the plant.
    rise = 1.25

    def __init__(self, plimsoll, folder):
        self.plimsoll, self.folder = plimsoll, folder

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.enter = stack.enter_context
            self.places = dict.fromkeys(("generator", "gateway", "provider", "store"), ())
            self.foreign = []
            self.plant()
            store = self.enter(Redis(self.folder, self.at("store")))
            self.provider = self.enter(Mock(self.plimsoll, self.folder, self.models, True, self.at("provider")))
            self.gateway = self.enter(
                Gateway(
                    self.plimsoll,
                    self.folder,
                    self.provider.port,
                    self.layers.replace("STORE", store.url),
                    self.llm,
                    self.at("gateway"),
                    host=self.host,
                )
            )
            self.watched = {"gateway": self.gateway, "provider": self.provider, "store": store}
            self.generator = Load(self.plimsoll, self.folder, PROFILE.format(tokens=self.tokens), self.at("generator"))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def at(self, name):
        return [self.core(name), *self.places[name]]

    def core(self, name):
        return GENERATOR if name == "generator" else SERVERS

    def plant(self):
        """Makes the places, before anything is started."""

    def lift(self):
        """Takes the bottleneck away; what to add to the generator's command, if that is the way."""
        return []

    def load(self, stages, seconds, more=()):
        shape = ",".join([f"w{stages[-1]}:{WARMUP}s", *(f"{stage}:{seconds}s" for stage in stages)])
        return self.generator.run(self.gateway.url, shape, "--allow-invalid", *self.watch(), *more)

    def watch(self):
        return [word for name, server in self.watched.items() for word in ("--watch", f"{name}={server.pid}")]

    def rate(self, since_ns, until_ns, stages, seconds):
        """Requests/s that the provider answered, by its own log, in the middle of the last stage, of so many seconds."""
        times = sorted(record["finished"] / 1e9 for record in served(self.provider.requests, since_ns, until_ns))
        if len(times) < 3:
            return math.nan
        # The first request is the probe, the second the first of the load.
        start = times[1] + WARMUP + seconds * (len(stages) - 1)
        first, last = start + MARGIN, start + seconds - MARGIN
        return sum(first <= time < last for time in times) / (last - first)


class Squeezed(Planted):
    """One process has a CPU quota."""

    share = 0.05

    def plant(self):
        self.quota = self.enter(Quota(self.word, self.share))
        self.places[self.word] = [self.quota]

    def lift(self):
        self.quota.set(None)
        return []


class SqueezedGenerator(Squeezed):
    """Before a gateway without layers, which has more to give."""

    word, how, share = "generator", "a CPU quota of 4 %", 0.04
    stages = lifted_stages = ("32",)
    layers, llm = "request_id: {}\n", False


class LateGenerator(SqueezedGenerator):
    how = "a CPU quota of 4 %, 4,000/s"
    stages = lifted_stages = ("@4000",)


class SqueezedGateway(Squeezed):
    word, how, share = "gateway", "a CPU quota of 5 %", 0.05


class SqueezedProvider(Squeezed):
    word, how, share = "provider", "a CPU quota of 4 %", 0.04


class SqueezedStore(Squeezed):
    word, how, share = "store", "a CPU quota of 2 %", 0.02


class Wired(Planted):
    """The servers are in a network of their own."""

    host = Network.address

    def plant(self):
        super().plant()
        self.network = self.enter(Network())
        for name in ("gateway", "provider", "store"):
            self.places[name] = [self.network, *self.places[name]]


class LossyNetwork(Wired):
    word, how = "network", "5 % of the packets to the gateway lost"

    def plant(self):
        super().plant()
        self.network.lose(5)

    def lift(self):
        self.network.call("nft flush ruleset")
        return []


class NarrowNetwork(Wired):
    word, how = "network", "5 Mbit/s from the gateway"

    def plant(self):
        super().plant()
        self.network.call("tc qdisc add dev wire root tbf rate 5mbit burst 8kb latency 1s")

    def lift(self):
        self.network.call("tc qdisc del dev wire root")
        return []


class BusyHost(Planted):
    """Loops of others, as many on each core. Everything waits for CPUs, and for no more than a part of the time."""

    word, how, loops = "host", "4 busy loops of others on each core", 4

    def plant(self):
        for _ in range(self.loops):
            for core in (SERVERS, GENERATOR):
                name, command = f"loop-{len(self.foreign)}", ["sh", "-c", "while :; do :; done"]
                self.foreign.append(self.enter(Foreign(name, self.folder, command, [core])))

    def lift(self):
        for loop in self.foreign:
            loop.__exit__()
        return []


class StarvedGateway(BusyHost):
    """A gateway that reads long texts would fill its core, if it were its own."""

    how, loops = "2 busy loops of others on each core, long texts", 2
    stages = lifted_stages = ("32",)
    models, tokens, layers = "{output: from_request}", 512, HEAVY


class Overflowing(Wired):
    """A program of others overflows its own sockets beside the bottleneck."""

    def plant(self):
        super().plant()
        self.before = overflows()
        command = [sys.executable, "-c", OVERFLOW]
        self.foreign.append(self.enter(Foreign("overflow", self.folder, command, [GENERATOR])))

    def lift(self):
        dropped = [after - before for after, before in zip(overflows(), self.before)]
        if min(dropped) < 100:
            raise Unable(f"{dropped} datagrams and connections overflowed")
        return super().lift()


def overflows():
    """Datagrams, and connections, that this host dropped so far because a queue of a socket was full."""
    counters = host.counters()
    return counters["Udp:RcvbufErrors"], counters["TcpExt:ListenOverflows"]


class Moderate(Planted):
    """An open load of at most half the chain's capacity."""

    word, how = "none", "300/s"
    stages, lifted_stages = ("@300",), ("@600",)
    rise = 1.9


class FewUsers(Planted):
    """Users bound the throughput; with twice as many it is nearly twice as high."""

    word, how = "none", "2 users, then 4"
    stages, lifted_stages = ("2", "4"), ("8",)
    rise = 1.6


class OverflowBesideGateway(Overflowing, SqueezedGateway):
    how = "a CPU quota of 5 %, sockets of others overflow"


class OverflowBesideNone(Overflowing, Moderate):
    how = "300/s, sockets of others overflow"


class OverloadedGateway(SqueezedGateway):
    """An open load, which falls behind."""

    how = "a CPU quota of 5 %, 2,500/s"
    stages = lifted_stages = ("@2500",)


class BusyGateway(Planted):
    """No quota: the gateway reads long texts, and has a core of its own."""

    word, how = "gateway", "a core of its own, full"
    stages = lifted_stages = ("32",)
    models, tokens, layers = "{output: from_request}", 512, HEAVY

    def core(self, name):
        return SERVERS if name == "gateway" else GENERATOR

    def lift(self):
        """The same gateway without its layers, reading shorter texts."""
        return ["--set", "content.approx_input_tokens=16"]


class SlowProvider(Planted):
    """A provider elsewhere: more requests at once make each slower, and no CPU of this machine shows it."""

    word, how = "provider", "slower with each request in flight"
    models = f"{{ttft: {TTFT_MS}ms, output: from_request, slowdown: {{knee: 2, slope: 0.5}}}}"

    def lift(self):
        return ["-H", f"x-mock-ttft: {TTFT_MS}ms"]


class BlockedStore(Planted):
    """A Redis that stands still for 20 ms of every 25, without using CPU."""

    word, how = "store", "blocked 20 ms of every 25"

    def __enter__(self):
        super().__enter__()
        command = ["redis-cli", "-p", self.watched["store"].port, "-r", "-1", "-i", "0.005", "DEBUG", "SLEEP", "0.02"]
        self.blocker = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        return self

    def lift(self):
        self.blocker.kill()
        self.blocker.wait()
        return []

    def __exit__(self, *_):
        self.lift()
        super().__exit__()


# Named in 9 of 10; named or "cannot be told"; and more of these.
PLAIN = (SqueezedGenerator, LateGenerator, SqueezedGateway, SqueezedProvider, SqueezedStore, Moderate)
UNSEEN = (LossyNetwork, NarrowNetwork, BusyHost, StarvedGateway, OverflowBesideGateway, OverflowBesideNone)
MORE = (OverloadedGateway, BusyGateway, SlowProvider, BlockedStore, FewUsers)
