"""Drives the fake model with the `openai` package: Responses."""

import json
import sys

import openai

url = sys.argv[1]
client = openai.OpenAI(base_url=f"{url}/v1", api_key="test", max_retries=0)
ask = {"model": "fake-1", "store": False, "include": ["reasoning.encrypted_content"]}
tools = [{
    "type": "function",
    "name": "weather",
    "description": "The weather of a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    "strict": False,
}]

# One document.
response = client.responses.create(**ask, input="hello", instructions="be kind")
assert response.output_text == "You said: hello" and response.status == "completed", response
usage = response.usage
assert usage.total_tokens == usage.input_tokens + usage.output_tokens > 0, usage
assert response._request_id.startswith("req_fake_"), response._request_id

# A stream, raw and with the helper.
events = list(client.responses.create(**ask, input="hello", stream=True))
assert [event.sequence_number for event in events] == list(range(len(events)))
deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
assert "".join(deltas) == "You said: hello" and len(deltas) > 1, deltas
assert events[-1].type == "response.completed", events[-1]
with client.responses.stream(**ask, input="hello") as stream:
    for event in stream:
        pass
    final = stream.get_final_response()
assert final.output_text == "You said: hello", final

# Reasoning and tools, to the end and back.
for streamed in (True, False):
    conversation = [{"role": "user", "content": "weather?"}]
    request = {**ask, "tools": tools}
    if streamed:
        with client.responses.stream(**request, input=conversation) as stream:
            stream.until_done()
            reply = stream.get_final_response()
    else:
        reply = client.responses.create(**request, input=conversation)
    kinds = [item.type for item in reply.output]
    assert kinds == ["reasoning", "message", "function_call", "function_call"], kinds
    assert reply.output[0].summary[0].text == "Which place?", reply.output[0]
    assert reply.output[0].encrypted_content, reply.output[0]
    calls = [item for item in reply.output if item.type == "function_call"]
    assert json.loads(calls[0].arguments) == {"place": "Aarhus", "days": [1, 2.5]}, calls
    conversation += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in reply.output]
    for item in conversation:
        for part in item.get("content", []):
            if isinstance(part, dict):
                part.pop("parsed", None)
    for call in calls:
        place = json.loads(call.arguments)["place"]
        conversation.append(
            {"type": "function_call_output", "call_id": call.call_id, "output": f"sunny in {place}"}
        )
    reply = client.responses.create(**request, input=conversation)
    assert reply.output_text == "Last: sunny in Bergen", reply

# Errors become the exceptions of the package.
try:
    client.responses.create(**ask, input="limited")
    raise AssertionError("no error")
except openai.RateLimitError as error:
    assert error.code == "rate_limit_exceeded", error.body
try:
    stray = {"type": "function_call_output", "call_id": "a", "output": "x"}
    client.responses.create(**ask, input=[stray])
    raise AssertionError("no error")
except openai.BadRequestError as error:
    assert "No tool call found" in str(error) and error.param == "input", error.body
try:
    conversation[1]["encrypted_content"] = "Zm9yZWlnbg=="
    client.responses.create(**ask, tools=tools, input=conversation)
    raise AssertionError("no error")
except openai.BadRequestError as error:
    assert error.code == "invalid_encrypted_content", error.body

# What was cached is in the usage.
for expected in (0, 2432):
    usage = client.responses.create(**ask, instructions="word " * 2000, input="hello").usage
    assert usage.input_tokens_details.cached_tokens == expected, usage
print("openai", openai.__version__)
