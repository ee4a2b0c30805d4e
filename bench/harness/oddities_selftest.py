"""Are a gateway's oddities really seen? The provider alone, and behind a gateway that does everything wrong at once."""

import json

from . import oddities, scripted
from .exchange import ask
from .scripted import Handler, Upstream

WORDS = len(scripted.WORDS)
# No time is expected: the machine may be busy.
ALONE = {
    "request headers": "all kept, none added",
    "request body": "the same bytes",
    "answer headers": "all kept, none added",
    "answer body": "the same bytes",
    "stream": "the same bytes",
    "stream that the provider cuts": "seen as cut off",
    "client leaves a stream": "the provider is left within",
    "provider says 429": "429",
    "provider says 500": "500",
    "provider says 503": "503",
    "kept connection is closed unanswered": "200",
    "every connection is closed unanswered": "closed without an answer",
}
MEDDLED = {
    "request headers": "lost: `x-custom-request`; new: `via`; changed: `user-agent`",
    "request body": "written anew; lost: `x_unknown.kept`; new: `user`",
    "answer headers": "lost: `openai-processing-ms`, `x-custom-answer`, `x-ratelimit-remaining-requests`",
    "answer body": "written anew; lost: `x_unknown.kept`; changed: `choices[0].message.role`",
    "stream": "written anew; the same JSON; no comment",
    "events written 30 ms apart come": f"{WORDS} or more of {WORDS} together",
    "stream that the provider cuts": "**looks complete**",
    "client leaves a stream": "**the provider goes on to its end**",
    "provider says 429": "429",
    "provider says 503": "503; provider asked 2 times",
    "every connection is closed unanswered": "502; provider asked 2 times",
}
HOP = {"host", "content-length", "content-type", "x-custom-request", "user-agent"}


class Meddler(Handler):
    """Drops, adds and changes headers and fields, collects streams, hides that they were cut, and asks twice."""

    def answer(self, call):
        question = json.loads(call.body)
        del question["x_unknown"]
        question["user"] = "meddler"
        headers = [pair for pair in call.headers if pair[0].lower() not in HOP] + [("via", "x"), ("user-agent", "x")]
        for _ in range(2):
            answer = ask(self.server.provider, question, headers)
            if answer.status not in (0, 503):
                break
        body = answer.body.replace(f"{scripted.COMMENT}\n\n".encode(), b"")
        if answer.status == 200 and not question["stream"]:
            document = json.loads(body)
            del document["x_unknown"]
            document["choices"][0]["message"]["role"] = "meddler"
            body = json.dumps(document).encode()
        head = f"HTTP/1.1 {answer.status or 502} Meddled\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self.request.sendall(head.encode() + body)


class Meddling(Upstream):
    def __init__(self, provider):
        super().__init__(Meddler)
        self.provider = provider


def run():
    """Errors of the observations, one line each."""
    with Upstream() as provider, Meddling(provider.port) as gateway:
        alone = oddities.observe(oddities.Probe(provider.port, provider))
        meddled = oddities.observe(oddities.Probe(gateway.port, provider))
    return differing("the provider alone", ALONE, alone) + differing("behind a meddling gateway", MEDDLED, meddled)


def differing(what, expected, seen):
    return [
        f"{what}: {row}: {seen.get(row)!r} in place of {text!r}"
        for row, text in expected.items()
        if not (seen.get(row) or "").startswith(text)
    ]
