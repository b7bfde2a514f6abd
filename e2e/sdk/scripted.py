"""A chat model that replays a script and records its requests."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool


class ScriptedModel(BaseChatModel):
    """Returns the next message of its script; the last one repeats."""

    script: list[AIMessage]
    model_name: str = "claude-sonnet-4-5"
    seen: list[list[BaseMessage]] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.seen.append(messages)
        line = self.script[min(len(self.seen), len(self.script)) - 1]
        message = line.model_copy(update={"id": f"m{len(self.seen)}"})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def system_texts(self) -> list[str]:
        """System message of each call."""
        return [text_of(messages[0]) for messages in self.seen]


def text_of(message: BaseMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if isinstance(block, dict) and "text" in block)


def call(thought: str, number: int, **arguments: Any) -> AIMessage:
    """A turn with a thought and a tool call."""
    usage = {"input_tokens": 1000, "output_tokens": 50, "total_tokens": 1050,
             "input_token_details": {"cache_read": 400}}
    return AIMessage(
        content=thought,
        tool_calls=[{"name": "search", "args": arguments, "id": f"call{number}"}],
        usage_metadata=usage,
    )


def looping(turns: int, thought: str = "I will search for the session timeout setting.") -> list[AIMessage]:
    """An agent that repeats the same call, then gives up."""
    lines = [call(thought, number, query="session timeout") for number in range(turns)]
    return [*lines, AIMessage(content="I give up.")]


@tool
def search(query: str) -> str:
    """Searches the code."""
    return f"no match for {query!r}"
