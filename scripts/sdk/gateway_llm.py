"""The official Python SDKs of OpenAI and Anthropic as clients of the gateway: what a client gets through the gateway,
in the same dialect and translated, is what it gets from the provider itself.

Usage: gateway_llm.py DIRECT,SAME,CROSSED (URLs). Prints the number of conversations, and of the answers compared.
"""

import json
import sys

import anthropic
import openai
from llm_conversations import conversations

DIRECT, *GATEWAYS = sys.argv[1].split(",")


def openai_request(conversation):
    messages = [{"role": "system", "content": conversation["system"]}] if conversation["system"] else []
    for turn in conversation["turns"]:
        if turn["kind"] == "calls":
            calls = [
                {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(values)}}
                for name, tool, values in turn["calls"]
            ]
            messages.append({"role": "assistant", "content": turn["text"], "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": call[0], "content": turn["result"]} for call in turn["calls"]]
        elif turn["kind"] == "image":
            parts = [{"type": "text", "text": turn["text"]}, {"type": "image_url", "image_url": {"url": turn["url"]}}]
            messages.append({"role": "user", "content": parts})
        else:
            messages.append({"role": turn["kind"], "content": turn["text"]})
    tools = [
        {"type": "function", "function": {"name": name, "description": "d", "parameters": schema}}
        for name, schema in conversation["tools"]
    ]
    return {
        "model": "m",
        "messages": messages,
        "max_completion_tokens": 50,
        "stop": ["END"],
        "temperature": 0.5,
        **({"tools": tools} if tools else {}),
    }


def anthropic_image(url):
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    kind, data = url.removeprefix("data:").split(";base64,")
    return {"type": "base64", "media_type": kind, "data": data}


def anthropic_request(conversation):
    messages = []
    for turn in conversation["turns"]:
        if turn["kind"] == "calls":
            text = [{"type": "text", "text": turn["text"]}] if turn["text"] else []
            calls = [
                {"type": "tool_use", "id": name, "name": tool, "input": values} for name, tool, values in turn["calls"]
            ]
            results = [
                {"type": "tool_result", "tool_use_id": call[0], "content": turn["result"]} for call in turn["calls"]
            ]
            messages += [{"role": "assistant", "content": text + calls}, {"role": "user", "content": results}]
        elif turn["kind"] == "image":
            source = anthropic_image(turn["url"])
            parts = [{"type": "text", "text": turn["text"]}, {"type": "image", "source": source}]
            messages.append({"role": "user", "content": parts})
        elif turn["text"].strip():
            messages.append({"role": turn["kind"], "content": turn["text"]})
    tools = [{"name": name, "description": "d", "input_schema": schema} for name, schema in conversation["tools"]]
    return {
        "model": "m",
        "messages": messages,
        "max_tokens": 50,
        "stop_sequences": ["END"],
        "extra_body": {"temperature": 0.5},
        **({"system": conversation["system"]} if conversation["system"] else {}),
        **({"tools": tools} if tools else {}),
    }


def openai_answers(url, conversation):
    client = openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)
    request = openai_request(conversation)
    whole = client.chat.completions.create(**request)
    message, usage = whole.choices[0].message, whole.usage
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    tokens = (usage.prompt_tokens, usage.completion_tokens)
    yield message.content, calls, whole.choices[0].finish_reason, tokens
    text, calls, end, tokens = "", {}, None, None
    for chunk in client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}):
        if chunk.usage:
            tokens = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        for choice in chunk.choices:
            text += choice.delta.content or ""
            end = choice.finish_reason or end
            for call in choice.delta.tool_calls or []:
                known = calls.setdefault(call.index, [None, None, ""])
                known[0], known[1] = known[0] or call.id, known[1] or call.function.name
                known[2] += call.function.arguments or ""
    calls = [(name, tool, json.loads(values)) for name, tool, values in calls.values()]
    yield text, calls, end, tokens


def anthropic_answers(url, conversation):
    client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)
    request = anthropic_request(conversation)
    with client.messages.stream(**request) as stream:
        streamed = stream.get_final_message()
    for message in [client.messages.create(**request), streamed]:
        text = "".join(block.text for block in message.content if block.type == "text")
        calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
        yield text, calls, message.stop_reason, (message.usage.input_tokens, message.usage.output_tokens)


compared = 0
for conversation in conversations():
    digests = set()
    for answers in [openai_answers, anthropic_answers]:
        direct = list(answers(DIRECT, conversation))
        digests |= {answer[0][:16] for answer in direct}
        assert all(len(answer[1]) == conversation["calls"] for answer in direct), direct
        for gateway in GATEWAYS:
            through = list(answers(gateway, conversation))
            assert through == direct, (conversation, gateway, through, direct)
            compared += len(through)
    assert len(digests) == 1, "both SDKs ask the same"
print(len(conversations()), compared)
