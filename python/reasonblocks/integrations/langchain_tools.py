"""Memory tools for LangChain."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from reasonblocks.codebase_memory import CodebaseMemory
from reasonblocks.integrations.memory_tools import MemoryTool, memory_tools


def make_langchain_tools(memory: CodebaseMemory, **options: Any) -> list[BaseTool]:
    """Create the tools `recall_findings` and `store_finding`; options as for `memory_tools`."""
    return [_tool(tool) for tool in memory_tools(memory, **options)]


def _tool(tool: MemoryTool) -> BaseTool:
    return StructuredTool.from_function(
        func=lambda **arguments: tool.call(arguments),
        name=tool.name,
        description=tool.description,
        args_schema=tool.schema,
    )
