"""Access to provider messages, which are dictionaries or objects depending on the caller."""

from __future__ import annotations

from typing import Any

ToolResults = dict[str, tuple[str, bool]]
"""Text of each tool result by call id, and whether it is an error."""


def get(item: Any, name: str) -> Any:
    """Return a key of a dictionary or an attribute of an object; `None` if it is missing."""
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def count(usage: Any, name: str) -> int:
    """Return a token count; 0 if it is missing."""
    value = get(usage, name)
    return value if isinstance(value, int) else 0


def join_texts(content: Any, name: str = "text") -> str:
    """Return the text of a string or of a list of content blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(str(get(block, name) or "") for block in content or [])


def strip_provider(model_id: str) -> str:
    """Return `claude-x` for `anthropic:claude-x`."""
    return model_id.split(":", 1)[-1]
