// Draws a run anew when one of its steps is stored. The page is whole without this.
"use strict";
(() => {
  const mark = document.querySelector("[data-live-run]");
  if (!mark || !window.EventSource) return;
  const source = new EventSource("/ui/stream?org=" + encodeURIComponent(mark.dataset.liveOrg));
  let waiting = false;
  const refresh = async () => {
    if (waiting) return;
    waiting = true;
    await new Promise((done) => setTimeout(done, 250));
    waiting = false;
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = new Set([...document.querySelectorAll("details[open] > .inside")].map((it) => it.id));
    const now = document.querySelector("article.run");
    const next = fresh.querySelector("article.run");
    if (!now || !next) return;
    for (const inside of next.querySelectorAll("details > .inside")) {
      if (open.has(inside.id)) inside.parentElement.open = true;
    }
    now.replaceWith(next);
  };
  source.addEventListener("ready", () => { mark.dataset.on = ""; mark.textContent = "live"; });
  source.addEventListener("step", (event) => {
    if (JSON.parse(event.data).run_id === mark.dataset.liveRun) refresh();
  });
  source.addEventListener("error", () => { delete mark.dataset.on; mark.textContent = "connection lost"; });
})();
