"""Every page in a real browser: rendering, accessibility and escaping."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from rb_server import Server

PAGES = [
    "/",
    "/ui/run?id=sign-out",
    "/ui/run?id=live-now",
    "/ui/health",
    "/ui/experiments",
    "/ui/experiments?id=steering-autumn",
    "/ui/patterns",
    "/ui/pattern?tier=e1",
    "/ui/profiles",
    "/ui/profiles?new=1",
    "/ui/findings",
    "/ui/keys",
    "/ui/quickstart",
]
AXE = Axe()
EVIL = "</pre><script>window.evil = 1</script><img src=x onerror='window.evil = 1'>\u202egpj.exe\x1b[2J\x07"


# A scheme only changes colours, so other rules are checked once.
@pytest.mark.parametrize(
    ("scheme", "rules"),
    [("light", {}), ("dark", {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}})],
)
def test_pages_have_no_serious_accessibility_violation(server: Server, browser: Browser, scheme: str, rules: dict[str, object]) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    found = []
    for path in PAGES:
        page.goto(server.url + path)
        for step in page.locator("details.step.fired > summary").all()[:1]:
            step.click()
        violations = AXE.run(page, options={"resultTypes": ["violations"], "preload": False, **rules}).response[
            "violations"
        ]
        found += [
            (path, it["id"], it["nodes"][0]["html"][:200], it["nodes"][0].get("failureSummary", "")[:200])
            for it in violations
            if it["impact"] in ("serious", "critical")
        ]
    context.close()
    assert found == [], found


def test_every_page_fits_a_phone(server: Server, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    wide = {}
    for path in PAGES:
        page.goto(server.url + path)
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if over > 0:
            wide[path] = over
    context.close()
    assert wide == {}


def test_pages_work_without_a_script(server: Server, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(server.url)
    page.get_by_label("Search").fill("umlauts")
    page.get_by_role("button", name="Show").click()
    assert page.locator("table.runs tbody tr").count() >= 1
    page.locator("table.runs a").first.click()
    assert page.locator("h1").inner_text().startswith("Users report that exported CSV")
    context.close()


def test_runs_are_filtered_and_searched(server: Server, page: Page) -> None:
    page.goto(server.url)
    rows = page.locator("table.runs tbody tr")
    everything = rows.count()
    page.get_by_label("Fired").select_option("semantic_loop")
    page.get_by_role("button", name="Show").click()
    assert 0 < rows.count() < everything
    assert all("semantic_loop" in row or "+" in row for row in rows.locator("td.chips").all_inner_texts())
    page.get_by_role("link", name="Reset").click()
    page.get_by_label("Outcome").select_option("success")
    page.get_by_label("Search").fill("reviewer")
    page.get_by_role("button", name="Show").click()
    assert set(page.locator("table.runs .outcome").all_inner_texts()) == {"success"}
    assert all("reviewer" in row for row in rows.all_inner_texts())
    page.get_by_label("Search").fill("no such run")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("main")).to_contain_text("No run fits")


def test_older_runs_come_on_the_next_page(server: Server, page: Page) -> None:
    for at in range(60):
        server.post("/monitor/runs", run_id=f"page-{at}", agent_name="pager")
    page.goto(server.url + "/?agent=pager")
    seen = page.locator("table.runs td.what .soft").all_inner_texts()
    page.get_by_role("link", name="Older runs").click()
    seen += page.locator("table.runs td.what .soft").all_inner_texts()
    assert len(seen) == len(set(seen)) == 60


def test_the_keyboard_reaches_everything(server: Server, page: Page) -> None:
    page.goto(server.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")
    page.goto(server.url + "/ui/run?id=sign-out")
    page.locator("details.step > summary").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("details.step").first).to_have_attribute("open", "")
    page.locator(".story a").first.press("Enter")
    assert page.evaluate("document.querySelector('.inside:target').parentElement.open")


def test_hostile_content_is_shown_and_does_nothing(server: Server, page: Page) -> None:
    long = "x" * 10_000_000
    server.post(
        "/monitor/runs",
        run_id="evil",
        task=EVIL,
        agent_name=EVIL,
        model=EVIL,
        metadata={"experiment_id": "evil" + EVIL, "arm": "on"},
    )
    server.post(
        "/monitor/runs/evil/steps", step_index=0, thought=EVIL, action=EVIL, action_input=EVIL, observation=EVIL
    )
    server.post("/monitor/runs/evil/steps", step_index=1, thought=long, observation="y" * 900_000)
    server.post("/monitor/runs/evil/steer", text=EVIL)
    server.post("/findings/evil", content=EVIL, file_path=EVIL[:60], finding_type="note")
    server.post(
        "/library/patterns", tier="e1", context=EVIL, fields={"situation": EVIL, "dead_ends": EVIL, "unlock": EVIL}
    )
    paths = [
        "/",
        "/ui/run?id=evil",
        "/ui/patterns",
        "/ui/findings?codebase=evil",
        "/ui/experiments",
        "/ui/health",
        "/?q=" + "%3Cscript%3Ewindow.evil=1%3C/script%3E",
    ]
    for path in paths:
        page.goto(server.url + path)
        text = page.locator("body").inner_text()
        assert page.evaluate("window.evil") is None, path
        assert not any(character in text for character in "\u202e\x1b\x07"), path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert len(page.content()) < 2_000_000, path
    page.goto(server.url + "/ui/run?id=evil")
    page.locator("details.step > summary").first.click()
    expect(page.locator("details.step").first).to_contain_text("<script>window.evil")
