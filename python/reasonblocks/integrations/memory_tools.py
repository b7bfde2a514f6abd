"""Framework-independent tools of a `CodebaseMemory`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reasonblocks.codebase_memory import CodebaseMemory


@dataclass
class MemoryTool:
    """A tool that an integration converts to the type of its framework."""

    name: str
    description: str
    properties: dict[str, dict[str, Any]]
    required: list[str]
    run: Callable[..., str]

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        return {"type": "object", "properties": self.properties, "required": self.required}

    def call(self, arguments: dict[str, Any]) -> str:
        """Run the tool on arguments from a model; missing arguments result in a message, not an exception."""
        known = {name: str(value) for name, value in arguments.items() if name in self.properties and value is not None}
        missing = [name for name in self.required if not known.get(name)]
        if missing:
            return f"missing arguments of `{self.name}`: {', '.join(missing)}"
        return self.run(**known)


def memory_tools(
    memory: CodebaseMemory,
    *,
    recall_top_k: int = 5,
    recall_threshold: float = 0.25,
    enable_recall: bool = True,
    enable_store: bool = True,
) -> list[MemoryTool]:
    """Return the tools of a memory."""

    def recall_findings(query: str) -> str:
        return memory.format_recall(query, top_k=recall_top_k, score_threshold=recall_threshold)

    def store_finding(content: str, file_path: str = "", finding_type: str = "note") -> str:
        finding_id = memory.store(content, file_path=file_path, finding_type=finding_type)
        return f"stored (id={finding_id})" if finding_id else "store failed"

    def text(about: str) -> dict[str, Any]:
        return {"type": "string", "description": about}

    tools = []
    if enable_recall:
        tools.append(
            MemoryTool(
                "recall_findings",
                "Searches findings of earlier runs about this codebase. Use it before reading files.",
                {"query": text("What you want to know, in a sentence.")},
                ["query"],
                recall_findings,
            )
        )
    if enable_store:
        tools.append(
            MemoryTool(
                "store_finding",
                "Stores one short fact about this codebase for later runs.",
                {
                    "content": text("The fact, in a sentence or two."),
                    "file_path": text("The file that the fact is about, if any."),
                    "finding_type": text("bug, behavior, pattern or note."),
                },
                ["content"],
                store_finding,
            )
        )
    return tools
