"""Workflows on the pages: watch a live run, send a message, edit the library, sign in."""

from __future__ import annotations

import http.server
import json
import re
import threading
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from conftest import KEY
from rb_server import Server


def test_a_logged_step_shows_within_a_second(server: Server, page: Page) -> None:
    server.post("/monitor/runs", run_id="watched", task="Repair the parser.")
    server.post("/monitor/runs/watched/steps", step_index=0, thought="I look at the parser.")
    page.goto(server.url + "/ui/run?id=watched")
    expect(page.locator(".live")).to_have_text("live")
    page.locator("textarea[name=text]").fill("half a sentence")
    page.locator("details.step > summary").first.click()
    for at in range(1, 4):
        server.post("/monitor/runs/watched/steps", step_index=at, thought=f"Thought number {at}.", action="read_file")
        begun = time.monotonic()
        expect(page.locator("details.step")).to_have_count(at + 1, timeout=1_000)
        assert time.monotonic() - begun < 1.0
    expect(page.locator("details.step").first).to_have_attribute("open", "")
    expect(page.locator("textarea[name=text]")).to_have_value("half a sentence")


def test_a_new_run_appears_in_the_list_by_itself(server: Server, page: Page) -> None:
    page.goto(server.url)
    expect(page.locator(".live")).to_have_text("live")
    server.post("/monitor/runs/newcomer/steps", step_index=0, thought="Hello.")
    expect(page.locator("table.runs")).to_contain_text("newcomer", timeout=3_000)


def test_an_operator_message_is_delivered_through_the_walk(server: Server, page: Page) -> None:
    server.post("/monitor/runs/steered/walk", step_index=0, task="Repair the parser.")
    page.goto(server.url + "/ui/run?id=steered")
    page.locator("textarea[name=text]").fill("The lexer changed yesterday; look there first.")
    page.get_by_role("button", name="Say it").click()
    expect(page.locator("[data-part=waiting]")).to_contain_text("look there first")
    reply = server.post(
        "/monitor/runs/steered/walk",
        step_index=1,
        thought="I read the parser.",
        action="read_file",
        observation="fn parse()",
    )
    assert reply["decision"] == "steer" and reply["sources"][0] == "hand"
    assert "A person who is watching this run says: The lexer changed yesterday" in reply["guidance"]
    expect(page.locator("[data-part=waiting]")).not_to_contain_text("look there first")
    expect(page.locator("details.step").last).to_contain_text("guidance given")
    page.locator("details.step > summary").last.click()
    expect(page.locator("details.step").last).to_contain_text("operator")


class Provider(http.server.BaseHTTPRequestHandler):
    """A provider with Anthropic's format that records its requests."""

    requests: list[str] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.requests.append(body)
        answer = json.dumps(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "content": [{"type": "text", "text": "I look."}],
                "usage": {"input_tokens": 20, "output_tokens": 5},
            }
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def stored(server: Server, run_id: str) -> None:
    """Waits until the gateway has stored the run."""
    deadline = time.monotonic() + 5
    while not any(run["run_id"] == run_id for run in server.ask("GET", "/v1/monitor/runs")):
        assert time.monotonic() < deadline, "the run was not stored"
        time.sleep(0.02)


def test_a_message_to_a_gateway_run_is_sent_and_stays_in_the_conversation(tmp_path: Path, browser: Browser) -> None:
    provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{provider.server_address[1]}"
    server = Server(tmp_path / "data", RB_UPSTREAM_ANTHROPIC=upstream).start()
    messages: list[dict[str, object]] = [{"role": "user", "content": "Repair the parser."}]

    def call() -> str:
        request = urllib.request.Request(f"{server.url}/anthropic/v1/messages", method="POST")
        for name, value in [
            ("content-type", "application/json"),
            ("x-api-key", "sk-none"),
            ("anthropic-version", "2023-06-01"),
            ("x-reasonblocks-run-id", "gateway-run"),
        ]:
            request.add_header(name, value)
        body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages}
        urllib.request.urlopen(request, json.dumps(body).encode(), timeout=10).close()
        return Provider.requests[-1]

    def turn(at: int) -> None:
        messages.append(
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"t{at}", "name": "read", "input": {"path": f"{at}.rs"}}],
            }
        )
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{at}", "content": f"file {at}"}]}
        )

    try:
        assert "person" not in call()
        stored(server, "gateway-run")
        page = browser.new_context().new_page()
        page.goto(server.url + "/ui/run?id=gateway-run")
        page.locator("textarea[name=text]").fill("Read the changelog.")
        page.get_by_role("button", name="Say it").click()
        said = "A person who is watching this run says: Read the changelog."
        for at in range(3):
            turn(at)
            assert call().count(said) == 1, "it goes with the next call and stays where it was put"
        expect(page.locator("[data-part=waiting]")).not_to_contain_text("Read the changelog", timeout=3_000)
        page.context.close()
    finally:
        server.stop()
        provider.shutdown()


def test_a_pattern_is_added_edited_and_deleted(server: Server, page: Page) -> None:
    page.goto(server.url + "/ui/patterns")
    page.get_by_role("link", name="Add E1").click()
    page.get_by_label("Situation", exact=True).fill("The build fails only on the second run.")
    page.get_by_label("Dead ends").fill("Cleaning and building again.")
    page.get_by_label("What unlocks it").fill("Compare the two environments.")
    page.get_by_role("button", name="Save").click()
    page.get_by_label("Search").fill("second run")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="The build fails only on the second run.").click()
    expect(page.locator("main")).to_contain_text("Shown 0 times")
    page.get_by_label("What unlocks it").fill("Compare both environments, variable by variable.")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="The build fails only on the second run.").click()
    expect(page.get_by_label("What unlocks it")).to_have_value("Compare both environments, variable by variable.")
    page.get_by_text("Delete this pattern").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.locator("main")).not_to_contain_text("The build fails only on the second run.")


def test_a_standing_rule_names_the_runs_it_was_shown_in(server: Server, page: Page) -> None:
    page.goto(server.url + "/ui/patterns")
    rule = page.locator("section", has=page.get_by_role("heading", name="E3")).locator("tbody tr").first
    rule.get_by_role("link").click()
    expect(page.locator("main")).to_contain_text("Where it was used")
    assert page.locator("table.runs tbody tr").count() >= 1


def test_weights_are_tried_on_stored_runs_before_they_are_saved(server: Server, page: Page) -> None:
    page.goto(server.url + "/ui/profiles?new=1")
    page.get_by_label("Name").fill("strict")
    page.get_by_label("semantic_loop").fill("0.9")
    page.get_by_role("button", name="Try on stored runs").click()
    expect(page.locator("#preview")).to_contain_text("Of the newest 20 runs")
    expect(page.get_by_label("semantic_loop")).to_have_value("0.9")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="strict").click()
    expect(page.get_by_label("semantic_loop")).to_have_value("0.9")


def test_an_experiment_shows_a_verdict(server: Server, page: Page) -> None:
    page.goto(server.url + "/ui/experiments")
    page.get_by_role("link", name="steering-autumn").click()
    expect(page.locator(".verdict")).to_contain_text("points (95 %:")
    expect(page.locator("svg.interval")).to_have_count(1)
    expect(page.get_by_role("heading", name="To be careful about")).to_be_visible()


def test_the_start_link_signs_in_once(closed: Server, browser: Browser) -> None:
    link = re.search(r"http://\S+/ui/enter\?link=[0-9a-f]+", closed.printed)
    assert link, closed.printed
    page = browser.new_context().new_page()
    page.goto(closed.url)
    assert page.url.endswith("/ui/sign-in")
    page.goto(link[0])
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    again = browser.new_context().new_page()
    again.goto(link[0])
    expect(again.locator("main")).to_contain_text("This link was used or is too old")
    again.get_by_label("Key").fill(KEY)
    again.get_by_role("button", name="Sign in").click()
    expect(again.get_by_role("heading", name="Runs")).to_be_visible()
    again.get_by_role("button", name="Sign out").click()
    assert again.url.endswith("/ui/sign-in")
    for one in (page, again):
        one.context.close()


def test_a_created_key_is_shown_once_and_can_be_revoked(closed: Server, browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.goto(closed.url)
    page.get_by_label("Key").fill(KEY)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Keys").click()
    page.get_by_label("What it is for").fill("laptop")
    page.get_by_role("button", name="Make a key").click()
    expect(page.locator("[role=status] code")).to_contain_text("rb_live_")
    page.get_by_role("button", name="Revoke this key").click()
    expect(page.locator("table")).to_contain_text("revoked")
    page.context.close()
