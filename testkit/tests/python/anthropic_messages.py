"""Drives the fake model with the `anthropic` package."""

import sys

import anthropic

url = sys.argv[1]
client = anthropic.Anthropic(base_url=url, api_key="test", max_retries=0)
ask = {"model": "fake-1", "max_tokens": 2000}
tools = [{
    "name": "weather",
    "description": "The weather of a place.",
    "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}},
}]


def user(text):
    return {"role": "user", "content": text}


# One document.
message = client.messages.create(**ask, messages=[user("hello")])
assert message.content[0].text == "You said: hello", message
assert (message.type, message.role, message.stop_reason) == ("message", "assistant", "end_turn")
assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0
assert message._request_id.startswith("req_fake_"), message._request_id

# A stream, raw and with the helper.
with client.messages.create(**ask, messages=[user("hello")], stream=True) as stream:
    kinds = [event.type for event in stream]
assert kinds[0] == "message_start" and kinds[-1] == "message_stop", kinds
with client.messages.stream(**ask, messages=[user("hello")]) as stream:
    text = "".join(stream.text_stream)
    final = stream.get_final_message()
assert text == final.content[0].text == "You said: hello", final

# Thinking and tools, to the end and back.
thinking = {"type": "enabled", "budget_tokens": 1024}
for streamed in (True, False):
    messages = [user("weather?")]
    request = {**ask, "messages": messages, "tools": tools, "thinking": thinking}
    if streamed:
        with client.messages.stream(**request) as stream:
            reply = stream.get_final_message()
    else:
        reply = client.messages.create(**request)
    assert [block.type for block in reply.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert reply.stop_reason == "tool_use"
    assert reply.content[2].input == {"place": "Aarhus", "days": [1, 2.5]}, reply.content[2]
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": f"sunny in {block.input['place']}"}
        for block in reply.content
        if block.type == "tool_use"
    ]
    messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
    reply = client.messages.create(**request)
    assert reply.content[0].text == "Last: sunny in Bergen", reply

# Errors become the exceptions of the package.
try:
    client.messages.create(**ask, messages=[user("limited")])
    raise AssertionError("no error")
except anthropic.RateLimitError as error:
    assert error.response.headers["retry-after"] == "0", error.response.headers
    assert error.body["error"]["type"] == "rate_limit_error", error.body
try:
    client.messages.create(**ask, messages=[{"role": "assistant", "content": "x"}])
    raise AssertionError("no error")
except anthropic.BadRequestError as error:
    assert "first message must use" in str(error), error
flaky = anthropic.Anthropic(base_url=url, api_key="test", max_retries=2)
assert "flaky" in flaky.messages.create(**ask, messages=[user("flaky")]).content[0].text

# What was cached is in the usage.
system = [{"type": "text", "text": "word " * 2000, "cache_control": {"type": "ephemeral"}}]
first = client.messages.create(**ask, system=system, messages=[user("hello")]).usage
second = client.messages.create(**ask, system=system, messages=[user("hello")]).usage
assert first.cache_creation_input_tokens == second.cache_read_input_tokens == 2500, (first, second)

# And there is a list of models.
assert [model.id for model in client.models.list()] == ["fake-1"]
print("anthropic", anthropic.__version__)
