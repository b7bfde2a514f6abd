"""Agent loops on each SDK; a loop ends when the model calls no tool."""

from __future__ import annotations

from typing import Any

TASK = "Find where the session timeout is set and raise it."
SYSTEM = "You are careful."
RESULT = "no match for 'session timeout'"
TURNS_MAX = 20

ANTHROPIC_TOOL: Any = {
    "name": "search", "description": "Searches the code.",
    "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
}
CHAT_TOOL: Any = {
    "type": "function",
    "function": {"name": "search", "description": "Searches the code.",
                 "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}},
}
RESPONSES_TOOL: Any = {"type": "function", **CHAT_TOOL["function"]}


def anthropic_results(message: Any) -> list[Any]:
    return [{"type": "tool_result", "tool_use_id": block.id, "content": RESULT}
            for block in message.content if block.type == "tool_use"]


def anthropic_request(model: str, messages: list[Any]) -> dict[str, Any]:
    system = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    return {"model": model, "max_tokens": 100, "system": system, "messages": messages, "tools": [ANTHROPIC_TOOL]}


def run_anthropic(client: Any, model: str, stream: bool = False, **options: Any) -> int:
    """Runs the loop and returns the number of calls."""
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for call in range(1, TURNS_MAX):
        request = anthropic_request(model, messages)
        if stream:
            with client.messages.stream(**request, **options) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**request, **options)
        results = anthropic_results(message)
        if not results:
            return call
        messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    raise AssertionError("the model never stops")


async def run_anthropic_async(client: Any, model: str, **options: Any) -> int:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for call in range(1, TURNS_MAX):
        async with client.messages.stream(**anthropic_request(model, messages), **options) as events:
            message = await events.get_final_message()
        results = anthropic_results(message)
        if not results:
            return call
        messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    raise AssertionError("the model never stops")


def run_chat(client: Any, model: str, stream: bool = False, **options: Any) -> int:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
    for call in range(1, TURNS_MAX):
        request: dict[str, Any] = {"model": model, "messages": messages, "tools": [CHAT_TOOL], **options}
        if stream:
            with client.chat.completions.stream(**request) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**request).choices[0].message
        if not message.tool_calls:
            return call
        calls = [{"id": call.id, "type": "function",
                  "function": {"name": call.function.name, "arguments": call.function.arguments}}
                 for call in message.tool_calls]
        messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]
    raise AssertionError("the model never stops")


def run_responses(client: Any, model: str, stream: bool = False, **options: Any) -> int:
    items: list[Any] = [{"role": "user", "content": TASK}]
    for call in range(1, TURNS_MAX):
        request: dict[str, Any] = {"model": model, "instructions": SYSTEM, "input": items,
                                   "tools": [RESPONSES_TOOL], "store": False, **options}
        if stream:
            with client.responses.stream(**request) as events:
                response = events.get_final_response()
        else:
            response = client.responses.create(**request)
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return call
        ours = {"parsed_arguments", "parsed"}
        items += [item.model_dump(exclude_none=True, exclude=ours) for item in response.output]
        items += [{"type": "function_call_output", "call_id": item.call_id, "output": RESULT} for item in calls]
    raise AssertionError("the model never stops")
