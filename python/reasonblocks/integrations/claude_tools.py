"""Memory tools for the Anthropic Messages API and the Claude Agent SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reasonblocks.codebase_memory import CodebaseMemory
from reasonblocks.integrations.anthropic_messages import run_messages_agent_loop
from reasonblocks.integrations.memory_tools import MemoryTool, memory_tools

__all__ = ["make_claude_agent_sdk_tools", "make_claude_tools", "run_messages_agent_loop"]


def make_claude_tools(
    memory: CodebaseMemory, **options: Any
) -> tuple[list[dict[str, Any]], Callable[[str, dict[str, Any]], str]]:
    """Return the specifications for `tools=`, and a function that runs a tool by name."""
    tools = {tool.name: tool for tool in memory_tools(memory, **options)}
    specs = [{"name": t.name, "description": t.description, "input_schema": t.schema} for t in tools.values()]

    def dispatch(name: str, arguments: dict[str, Any]) -> str:
        tool = tools.get(name)
        return tool.call(arguments) if tool is not None else f"unknown tool: `{name}`"

    return specs, dispatch


def make_claude_agent_sdk_tools(memory: CodebaseMemory, **options: Any) -> list[Any]:
    """Create tools for `create_sdk_mcp_server`."""
    return [_sdk_tool(tool) for tool in memory_tools(memory, **options)]


def _sdk_tool(tool: MemoryTool) -> Any:
    from claude_agent_sdk import tool as as_tool

    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": tool.call(arguments)}]}

    return as_tool(tool.name, tool.description, tool.schema)(run)
