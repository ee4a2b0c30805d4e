"""What a gateway does to requests, answers, streams and errors: single exchanges with the provider of `scripted`.

Every observation is a short text; the same question is asked of all gateways. Times are of this process's clock at both
ends, so that they need no joining.
"""

import json
import statistics
import time

from . import scripted
from .exchange import ask

SENT = [
    ("authorization", "Bearer of-the-client"),
    ("user-agent", "probe/1"),
    ("accept", "*/*"),
    ("x-request-id", "probe-1"),
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("x-custom-request", "kept"),
]
# How a message is framed and which connection it takes is each hop's own business.
OWN = {"content-length", "transfer-encoding", "connection", "keep-alive", "date"}
LEAVE_AFTER, IN_TURN, NAMED = 4, 5, 6
# The first streams of a process may be slow: modules are loaded, code is compiled. The last one counts.
STREAMS = 4
# Seconds in which a gateway that gives up the provider's answer should have done so: the answer lasts as long.
ANSWER_LASTS = scripted.LONG * scripted.LONG_GAP
MS = 1e3


class Probe:
    """A gateway's port, the scripted provider behind it, and headers that the gateway needs."""

    def __init__(self, port, upstream, headers=()):
        self.port, self.upstream, self.headers = port, upstream, list(headers)

    def send(self, case, stream=False, model="mock", leave_after=None):
        """The request's document, the answer, and the calls that the provider got for it."""
        message = {"role": "user", "content": f"case={case}"}
        document = {
            "model": model,
            "messages": [message],
            "max_tokens": 20,
            "stream": stream,
            "seed": 7,
            "x_unknown": scripted.UNKNOWN,
        }
        before = len(self.upstream.calls)
        answer = ask(self.port, document, [*SENT, *self.headers], leave_after, timeout=60)
        return document, answer, self.upstream.calls[before:]


def observe(probe):
    """All observations by subject. Errors come last: a gateway may avoid its provider for a while after."""
    return {**chats(probe), **streams(probe), **failures(probe)}


def chats(probe):
    document, answer, calls = probe.send("chat")
    call = calls[0]
    sent, expected = [*SENT, *probe.headers], [*scripted.HEADERS, ("content-type", "application/json")]
    connections = set()
    for _ in range(IN_TURN):
        connections |= {call.connection for call in probe.send("chat")[2]}
    return {
        "request headers": headers(sent, call.headers),
        "request body": changes(json.dumps(document).encode(), call.body),
        "answer headers": headers(expected, answer.headers),
        "answer body": changes(scripted.chat(), answer.body),
        f"connections to the provider for {IN_TURN} chats in turn": str(len(connections)),
    }


def streams(probe):
    for _ in range(STREAMS):
        _, answer, calls = probe.send("stream", stream=True)
    seen = {"stream": stream_changes(answer), **timing(answer, calls[0])}
    _, answer, calls = probe.send("cut", stream=True)
    seen["stream that the provider cuts"] = cut(answer, calls)
    _, answer, calls = probe.send("long", stream=True, leave_after=LEAVE_AFTER)
    seen["client leaves a stream"] = leaving(answer, calls[0])
    return seen


def failures(probe):
    seen = {}
    for status in (429, 500, 503):
        _, answer, calls = probe.send(f"status_{status}")
        seen[f"provider says {status}"] = outcome(answer, calls)
    _, answer, calls = probe.send("stale")
    seen["kept connection is closed unanswered"] = outcome(answer, calls)
    _, answer, calls = probe.send("reset")
    seen["every connection is closed unanswered"] = outcome(answer, calls)
    _, answer, calls = probe.send("chat", model="no-such-model")
    seen["unknown model"] = outcome(answer, calls)
    return seen


def headers(sent, got):
    """Names that were lost, are new, or have another value."""
    before = {name.lower(): value for name, value in sent if name.lower() not in OWN}
    after = {name.lower(): value for name, value in got if name.lower() not in OWN}
    new = sorted(after.keys() - before.keys() - {"host", "content-type"})
    other = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    return differences(sorted(before.keys() - after.keys()), new, other) or "all kept, none added"


def differences(lost, new, other):
    parts = [
        f"{word} {listed(names)}" for word, names in (("lost:", lost), ("new:", new), ("changed:", other)) if names
    ]
    return "; ".join(parts)


def listed(names):
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:NAMED]) + more


def changes(sent, got):
    """Compares a JSON document."""
    if sent == got:
        return "the same bytes"
    try:
        before, after = leaves(json.loads(sent)), leaves(json.loads(got))
    except ValueError:
        return f"no JSON: {got[:60]!r}"
    other = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    found = differences(sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys()), other)
    return f"written anew; {found}" if found else "written anew, the same JSON"


def leaves(value, path=""):
    """Every value except objects and lists, by its path."""
    if isinstance(value, dict) and value:
        return {name: leaf for key, inner in value.items() for name, leaf in leaves(inner, f"{path}.{key}").items()}
    if isinstance(value, list) and value:
        return {name: leaf for at, inner in enumerate(value) for name, leaf in leaves(inner, f"{path}[{at}]").items()}
    return {path.lstrip("."): value}


def documents(events):
    """The JSON documents of events, each with its time."""
    found = []
    for at, event in events:
        for line in event.split(b"\n"):
            if line.startswith(b"data:") and line[5:].strip().startswith(b"{"):
                found.append((at, json.loads(line[5:])))
    return found


def text_of(document):
    choices = document.get("choices") or [{}]
    return (choices[0].get("delta") or {}).get("content") or ""


def message_of(answer):
    """The text of an answer that is not a stream."""
    return json.loads(answer.body)["choices"][0]["message"]["content"]


def contents(answer):
    """(time, document) of the events that have text."""
    return [(at, document) for at, document in documents(answer.events()) if text_of(document)]


def stream_changes(answer):
    if answer.body == scripted.stream():
        return "the same bytes"
    seen, whole = contents(answer), answer.body
    notes = ["written anew"]
    if [text_of(document) for _, document in seen] != scripted.WORDS:
        notes.append(f"**other text in {len(seen)} events**")
    elif found := changes(scripted.content(scripted.WORDS[0])[6:].encode(), json.dumps(seen[0][1]).encode()):
        notes.append(found.removeprefix("written anew").lstrip("; ,"))
    missing = {"comment": scripted.COMMENT.encode(), "usage": b'"completion_tokens"', "`[DONE]`": b"[DONE]"}
    notes += [f"no {what}" for what, part in missing.items() if part not in whole]
    return "; ".join(notes + ([] if answer.end == "complete" else ["**no proper end**"]))


def timing(answer, call):
    """When events came, by the clock that was read when they were sent."""
    times, sends = [at for at, _ in contents(answer)], call.sends
    together = len(times) - len(set(times))
    alone = f"{together + 1} or more of {len(times)} together" if together else f"each of {len(times)} alone"
    delays = [(got - sent) * MS for got, sent in zip(times, sends)]
    if not delays or len(times) != len(sends):
        return {"events written 30 ms apart come": alone}
    return {
        "events written 30 ms apart come": alone,
        "delay of the role": f"{(documents(answer.events())[0][0] - call.began) * MS:.1f} ms",
        "delay of the first word": f"{delays[0]:.1f} ms",
        "delay of the other words, median": f"{statistics.median(delays[1:]):.1f} ms",
    }


def cut(answer, calls):
    ends = {"cut": "seen as cut off", "timed out": "no end within our timeout"}
    end = ends.get(answer.end, "**looks complete**")
    error = ", with an error event" if b'"error"' in answer.body else ""
    done = ", with `[DONE]`" if b"[DONE]" in answer.body else ""
    return f"{end}{error}{done}{asked(calls)}"


def asked(calls):
    return f"; provider asked {len(calls)} times" if len(calls) != 1 else ""


def outcome(answer, calls):
    return f"{answer.status or 'closed without an answer'}{asked(calls)}"


def leaving(answer, call):
    """How long the provider went on."""
    deadline = answer.left_at + ANSWER_LASTS + 2
    while not call.gone and not call.to_the_end and time.monotonic() < deadline:
        time.sleep(0.02)
    if answer.end != "left" and not call.to_the_end:
        return f"the stream ends by itself: {answer.end}"
    if call.to_the_end or not call.gone:
        return "**the provider goes on to its end**"
    # The provider looks before each event.
    return f"the provider is left within {max(call.gone - answer.left_at, 0) * MS:.0f} ms"


def table(seen):
    """Markdown: a row for each observation, a column for each gateway. `seen` is by gateway's title."""
    rows = list(dict.fromkeys(name for observations in seen.values() for name in observations))
    lines = ["| | " + " | ".join(seen) + " |", "|---" * (len(seen) + 1) + "|"]
    for row in rows:
        cells = [observations.get(row, "-").replace("|", "\\|") for observations in seen.values()]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
