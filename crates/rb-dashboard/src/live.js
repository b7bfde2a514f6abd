// Draws what changes anew when a step is stored: the named parts of a run, or the list of runs. Pages are whole without.
"use strict";
(() => {
  const mark = document.querySelector("[data-live]");
  if (!mark || !window.EventSource) return;
  const run = mark.dataset.live;
  const source = new EventSource("/ui/stream?org=" + encodeURIComponent(mark.dataset.liveOrg || ""));
  let isBusy = false;
  let isDue = false;
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const draw = async () => {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = new Set([...document.querySelectorAll("details[open] > .inside")].map((it) => it.id));
    for (const part of document.querySelectorAll("[data-part]")) {
      const next = fresh.querySelector('[data-part="' + part.dataset.part + '"]');
      if (!next || part.contains(document.activeElement) && part.dataset.part !== "steps") continue;
      for (const inside of next.querySelectorAll("details > .inside")) {
        if (open.has(inside.id)) inside.parentElement.open = true;
      }
      part.replaceWith(next);
    }
  };
  const refresh = async () => {
    isDue = true;
    if (isBusy) return;
    isBusy = true;
    while (isDue) {
      isDue = false;
      await wait(run === "*" ? 800 : 200);
      await draw().catch(() => {});
    }
    isBusy = false;
  };
  source.addEventListener("ready", () => {
    mark.dataset.on = "";
    mark.textContent = "live";
    refresh(); // something may have happened since the page was drawn
  });
  source.addEventListener("step", (event) => {
    if (run !== "*" && JSON.parse(event.data).run_id !== run) return;
    refresh();
    // What the gateway saw is told a moment before it is stored.
    setTimeout(refresh, 700);
  });
  source.addEventListener("error", () => { delete mark.dataset.on; mark.textContent = "connection lost"; });
})();
