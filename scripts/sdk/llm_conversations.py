"""The conversations that the official SDKs have with a provider, directly and through the gateway."""

import json

PIXEL = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}


def conversations():
    """Forty: 0 to 4 calls of tools, with eight kinds of what was said before."""
    said = [
        {"kind": "user", "text": 'first "words" \\ \u00e4\u4e16\U0001f600'},
        {"kind": "assistant", "text": "an answer"},
    ]
    called = {
        "kind": "calls",
        "text": "",
        "result": "it\nis",
        "calls": [["c1", "tool_1", {"at": 1}], ["c2", "none", {}]],
    }
    empty = [{"kind": "user", "text": "x"}, {"kind": "assistant", "text": "y"}, {"kind": "user", "text": " "}]
    kinds = [
        ("", [], "stop"),
        ("be brief", said, "stop"),
        ("", [{"kind": "user", "text": "x"}, called], "stop"),
        ("", [{"kind": "user", "text": "x"}, {**called, "text": "I ask"}, *said], "stop"),
        ("", [{"kind": "image", "text": "see", "url": PIXEL}], "stop"),
        ("", [{"kind": "image", "text": "see", "url": "https://example.com/a.png"}], "stop"),
        ("", empty, "stop"),
        ("", said, "length"),
    ]
    tools = [["none", {"type": "object", "properties": {}}], *([f"tool_{at}", SCHEMA] for at in range(1, 4))]
    return [
        {
            "system": system,
            "turns": [
                *turns,
                {"kind": "user", "text": json.dumps({"text": ' \u00e9\n"\U0001f600 done', "tools": calls, "end": end})},
            ],
            "tools": tools if calls else [],
            "calls": calls,
        }
        for calls in range(5)
        for system, turns, end in kinds
    ]
