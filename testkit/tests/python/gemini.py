"""Drives the fake model with the `google-genai` package."""

import sys

from google import genai
from google.genai import errors, types

url = sys.argv[1]
client = genai.Client(api_key="test", http_options=types.HttpOptions(base_url=url))
weather = types.FunctionDeclaration(
    name="weather",
    description="The weather of a place.",
    parameters_json_schema={"type": "object", "properties": {"place": {"type": "string"}}},
)
config = types.GenerateContentConfig(
    tools=[types.Tool(function_declarations=[weather])],
    thinking_config=types.ThinkingConfig(include_thoughts=True),
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    system_instruction="be kind",
)

# One document.
reply = client.models.generate_content(model="fake-1", contents="hello")
assert reply.text == "You said: hello", reply
assert reply.candidates[0].finish_reason == types.FinishReason.STOP, reply
usage = reply.usage_metadata
assert usage.total_token_count == usage.prompt_token_count + usage.candidates_token_count, usage

# A stream.
chunks = list(client.models.generate_content_stream(model="fake-1", contents="hello"))
assert "".join(chunk.text or "" for chunk in chunks) == "You said: hello", chunks
assert chunks[-1].usage_metadata.candidates_token_count == usage.candidates_token_count, chunks[-1]

# Thoughts and tools, to the end and back.
for streamed in (True, False):
    contents = [types.Content(role="user", parts=[types.Part(text="weather?")])]
    request = {"model": "fake-1", "contents": contents, "config": config}
    if streamed:
        parts = []
        for chunk in client.models.generate_content_stream(**request):
            parts += chunk.candidates[0].content.parts or []
        parts = [part for part in parts if part.text != "" or part.thought_signature]
    else:
        parts = client.models.generate_content(**request).candidates[0].content.parts
    thoughts = "".join(part.text for part in parts if part.thought)
    assert thoughts == "Which place?", parts
    calls = [part.function_call for part in parts if part.function_call]
    assert [call.name for call in calls] == ["weather", "weather"], parts
    assert calls[0].args == {"place": "Aarhus", "days": [1, 2.5]}, calls
    contents.append(types.Content(role="model", parts=parts))
    results = [
        types.Part.from_function_response(
            name=call.name, response={"result": f"sunny in {call.args['place']}"}
        )
        for call in calls
    ]
    contents.append(types.Content(role="user", parts=results))
    reply = client.models.generate_content(**request)
    assert reply.text == "Last: sunny in Bergen", reply

# Errors become the exceptions of the package.
try:
    client.models.generate_content(model="fake-1", contents="limited")
    raise AssertionError("no error")
except errors.ClientError as error:
    assert (error.code, error.status) == (429, "RESOURCE_EXHAUSTED"), error
try:
    stray = types.Part.from_function_response(name="weather", response={"result": "x"})
    client.models.generate_content(
        model="fake-1", contents=[types.Content(role="user", parts=[stray])]
    )
    raise AssertionError("no error")
except errors.ClientError as error:
    assert "immediately after a function call turn" in str(error), error

# What was cached is in the usage.
for expected in (None, 2432):
    long = types.GenerateContentConfig(system_instruction="word " * 2000)
    usage = client.models.generate_content(model="fake-1", contents="hello", config=long)
    assert usage.usage_metadata.cached_content_token_count == expected, usage.usage_metadata

# And there is a list of models.
assert [model.name for model in client.models.list()] == ["models/fake-1"]
print("google-genai", genai.__version__)
