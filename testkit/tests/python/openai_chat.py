"""Drives the fake model with the `openai` package: Chat Completions."""

import json
import sys

import openai

url = sys.argv[1]
client = openai.OpenAI(base_url=f"{url}/v1", api_key="test", max_retries=0)
ask = {"model": "fake-1"}
tools = [{
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}]


def user(text):
    return {"role": "user", "content": text}


# One document.
completion = client.chat.completions.create(**ask, messages=[user("hello")])
choice = completion.choices[0]
assert choice.message.content == "You said: hello" and choice.finish_reason == "stop", completion
usage = completion.usage
assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 0, usage
assert completion._request_id.startswith("req_fake_"), completion._request_id

# A stream, raw and with the helper.
stream = client.chat.completions.create(
    **ask, messages=[user("hello")], stream=True, stream_options={"include_usage": True}
)
chunks = list(stream)
text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
assert text == "You said: hello", text
assert chunks[-1].usage == usage and chunks[-2].choices[0].finish_reason == "stop", chunks[-2:]
with client.chat.completions.stream(**ask, messages=[user("hello")]) as stream:
    for event in stream:
        pass
    final = stream.get_final_completion()
assert final.choices[0].message.content == "You said: hello", final

# Tools, to the end and back.
for streamed in (True, False):
    messages = [user("weather?")]
    request = {**ask, "messages": messages, "tools": tools}
    if streamed:
        with client.chat.completions.stream(**request) as stream:
            stream.until_done()
            reply = stream.get_final_completion().choices[0]
    else:
        reply = client.chat.completions.create(**request).choices[0]
    assert reply.finish_reason == "tool_calls", reply
    calls = reply.message.tool_calls
    assert [call.id for call in calls] == ["call_0_0", "call_0_1"], calls
    assert json.loads(calls[0].function.arguments) == {"place": "Aarhus", "days": [1, 2.5]}, calls
    assert reply.message.reasoning_content == "Which place?", reply.message
    messages.append(reply.message.model_dump(exclude_none=True))
    for call in calls:
        place = json.loads(call.function.arguments)["place"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"sunny in {place}"})
    reply = client.chat.completions.create(**request)
    assert reply.choices[0].message.content == "Last: sunny in Bergen", reply

# Errors become the exceptions of the package.
try:
    client.chat.completions.create(**ask, messages=[user("limited")])
    raise AssertionError("no error")
except openai.RateLimitError as error:
    assert error.response.headers["retry-after"] == "0", error.response.headers
    assert (error.type, error.code) == ("requests", "rate_limit_exceeded"), error.body
try:
    client.chat.completions.create(**ask, messages=[{"role": "wizard", "content": "x"}])
    raise AssertionError("no error")
except openai.BadRequestError as error:
    assert error.param == "messages[0].role", error.body
flaky = openai.OpenAI(base_url=f"{url}/v1", api_key="test", max_retries=2)
reply = flaky.chat.completions.create(**ask, messages=[user("flaky")])
assert "flaky" in reply.choices[0].message.content

# What was cached is in the usage.
messages = [{"role": "system", "content": "word " * 2000}, user("hello")]
for expected in (0, 2432):
    usage = client.chat.completions.create(**ask, messages=messages).usage
    assert usage.prompt_tokens_details.cached_tokens == expected, usage

# And there is a list of models.
assert [model.id for model in client.models.list()] == ["fake-1"]
print("openai", openai.__version__)
