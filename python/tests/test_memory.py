"""Codebase memory in-process, on a server, and as tools of each framework."""

from __future__ import annotations

from typing import Any

import pytest

from reasonblocks import CodebaseMemory
from reasonblocks.integrations.claude_tools import make_claude_agent_sdk_tools, make_claude_tools
from reasonblocks.integrations.langchain_tools import make_langchain_tools
from reasonblocks.integrations.openai_agents import make_openai_tools


def filled(**where: Any) -> CodebaseMemory:
    memory = CodebaseMemory("pydantic/pydantic", **where)
    memory.store(
        "The session expiry is set in the settings file.", file_path="app/settings.py", finding_type="behavior"
    )
    memory.store("The fence is painted green.", file_path="yard.py")
    return memory


def test_findings_are_recalled_by_similarity():
    with filled() as memory:
        found = memory.recall("when do session tokens expire?")
        assert [finding["file_path"] for finding in found][:1] == ["app/settings.py"]
        assert found[0]["score"] > 0.25
        assert "behavior, app/settings.py: The session expiry" in memory.format_recall("session expiry")
        assert memory.format_recall("quantum chromodynamics", score_threshold=0.9).startswith("No stored findings")
        assert memory.coverage_for(["settings.py", "app/settings.py", "other.py", "x/yard.py"]) == 0.75
        assert memory.coverage_for([]) == 1.0
        assert memory.store("  ") is None
        assert memory.recall(" ") == []
        assert memory.store_many([{"content": "a"}, {"content": ""}, {"content": "b", "file_path": "b.py"}]) == 2
        assert memory.invalidate(["yard.py", ""]) == 1
        assert len(memory.list_all()) == 3
        assert memory.clear() is True
        assert memory.list_all() == []
    with pytest.raises(ValueError, match="codebase_id"):
        CodebaseMemory("")


def test_findings_persist_in_a_file(tmp_path):
    path = tmp_path / "memory" / "findings.jsonl"
    filled(path=path)
    again = CodebaseMemory("pydantic/pydantic", path=path)
    assert len(again.list_all()) == 2
    assert again.invalidate(["yard.py"]) == 1
    assert len(CodebaseMemory("pydantic/pydantic", path=path).list_all()) == 1


def test_findings_on_a_server(serve):
    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path.endswith("/search"):
            return 200, {"results": [{"content": "x", "file_path": "", "finding_type": "note", "score": None}]}
        if path.endswith("/invalidate"):
            return 200, {"invalidated": len(body["file_paths"])}
        if method == "DELETE":
            return 200, {"status": "cleared"}
        if method == "GET":
            return 200, {"findings": [{"file_path": "a.py"}], "count": 1}
        return 200, {"finding_id": "f-1", "stored": True}

    server = serve(answer)
    memory = CodebaseMemory("pydantic/pydantic", api_key="k", base_url=server.url)
    assert memory.store("x" * 9_000, metadata={"pr": 1}) == "f-1"
    assert memory.recall("q", top_k=900) == [{"content": "x", "file_path": "", "finding_type": "note", "score": None}]
    assert "note, the codebase: x" in memory.format_recall("q")
    assert memory.invalidate([f"{n}.py" for n in range(1_500)]) == 1_500
    assert memory.coverage_for(["src/a.py"]) == 1.0
    assert memory.clear() is True
    first = server.requests[0]
    assert first[:2] == ("POST", "/findings/pydantic/pydantic")
    assert (len(first[2]["content"]), first[2]["metadata"]) == (8_000, {"pr": 1})
    assert server.bodies("/findings/pydantic/pydantic/search")[0]["top_k"] == 50
    assert [len(b["file_paths"]) for b in server.bodies("/findings/pydantic/pydantic/invalidate")] == [1024, 476]
    gone = CodebaseMemory("a#b", base_url="http://127.0.0.1:1", timeout=0.1)
    assert (gone.store("x"), gone.recall("x"), gone.list_all(), gone.invalidate(["a"]), gone.clear()) == (
        None, [], [], 0, False,
    )  # fmt: skip


async def test_memory_tools_of_every_framework():
    memory = filled()
    recall, store = make_langchain_tools(memory)
    assert (recall.name, store.name) == ("recall_findings", "store_finding")
    assert "app/settings.py" in recall.invoke({"query": "session expiry"})
    assert store.invoke({"content": "Tests live in tests/."}).startswith("stored (id=")

    specs, dispatch = make_claude_tools(memory, enable_store=False)
    assert [spec["name"] for spec in specs] == ["recall_findings"]
    assert specs[0]["input_schema"]["required"] == ["query"]
    assert "tests/" in dispatch("recall_findings", {"query": "where do the tests live"})
    assert dispatch("recall_findings", {}) == "missing arguments of `recall_findings`: query"
    assert dispatch("delete_all", {}) == "unknown tool: `delete_all`"

    sdk_recall, _ = make_claude_agent_sdk_tools(memory)
    answer = await sdk_recall.handler({"query": "session expiry"})
    assert "app/settings.py" in answer["content"][0]["text"]

    openai_recall, openai_store = make_openai_tools(memory)
    assert "app/settings.py" in await openai_recall.on_invoke_tool(None, '{"query": "session expiry"}')
    assert await openai_store.on_invoke_tool(None, "no json") == "invalid arguments: not JSON"
