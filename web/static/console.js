// Two conveniences on top of pages that are complete without them: remaining
// times count down, and commands can be copied. Words come from the page.
"use strict";

(() => {
  const words = document.body.dataset;

  // Two units at most, worded as the server words them.
  function span(ms) {
    const [day, hour, minute, second] = words.units.split(" ");
    const s = Math.floor(ms / 1000);
    const two = (n, unit, rest, small) => `${n} ${unit}` + (rest > 0 ? ` ${rest} ${small}` : "");
    if (s < 60) return `${s} ${second}`;
    if (s < 3600) return two(Math.floor(s / 60), minute, s % 60, second);
    if (s < 86400) return two(Math.floor(s / 3600), hour, Math.floor((s % 3600) / 60), minute);
    return two(Math.floor(s / 86400), day, Math.floor((s % 86400) / 3600), hour);
  }

  const clocks = [...document.querySelectorAll("[data-ttl]")];
  function tick() {
    for (const clock of clocks) {
      const left = Number(clock.dataset.ttl) - performance.now();
      clock.textContent = left > 0 ? span(left) : words.expired;
      const bar = clock.closest("[data-countdown]")?.querySelector("progress");
      if (bar) bar.value = Math.max(0, left);
    }
  }
  if (clocks.length > 0) {
    tick();
    setInterval(tick, 1000);
  }

  // The old way first: it needs no secure context, no focus and no permission,
  // and it answers at once. The text stays selected, so that it can be copied by
  // hand where both ways are refused.
  async function copy(block) {
    getSelection().selectAllChildren(block);
    if (!document.execCommand("copy")) await navigator.clipboard.writeText(block.textContent);
  }

  for (const block of document.querySelectorAll("pre[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = words.copy;
    button.addEventListener("click", () => {
      copy(block).then(() => { button.textContent = words.copied; }, () => {});
    });
    block.before(button);
  }
})();
