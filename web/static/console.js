// Conveniences on top of pages that are complete without them: remaining times
// count down, texts can be copied, slow layers fill in, a page can read itself
// anew, and the search box remembers. Words come from the page.
"use strict";

(() => {
  const words = document.body.dataset;
  const main = document.getElementById("main");

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

  function button(word, name, act) {
    const b = document.createElement("button");
    b.type = "button";
    b.className = name;
    b.textContent = word;
    b.addEventListener("click", act);
    return b;
  }

  // Remaining times, counted from when the page that holds them came.
  let clocks = [], since = 0;
  function tick() {
    for (const clock of clocks) {
      const left = Number(clock.dataset.ttl) - (performance.now() - since);
      clock.textContent = left > 0 ? span(left) : words.expired;
      const bar = clock.closest("[data-countdown]")?.querySelector("progress");
      if (bar) bar.value = Math.max(0, left);
    }
  }
  setInterval(tick, 1000);

  // The old way first: it needs no secure context, no focus and no permission,
  // and it answers at once. The text stays selected, so that it can be copied by
  // hand where both ways are refused.
  async function copy(block) {
    getSelection().selectAllChildren(block);
    if (!document.execCommand("copy")) await navigator.clipboard.writeText(block.textContent);
  }

  // What scripts add to a page, or to one that has taken its place.
  function dress() {
    clocks = [...document.querySelectorAll("[data-ttl]")];
    tick();
    for (const block of main.querySelectorAll("pre[data-copy]")) {
      const b = button(words.copy, "copy", () => copy(block).then(() => { b.textContent = words.copied; }, () => {}));
      block.before(b);
    }
    showRefresh();
  }

  // Somebody who types or marks something on the page must not lose it.
  function busy() {
    const at = document.activeElement, marked = getSelection();
    return main.contains(at) && at.matches("input:not([type=button]), select, textarea") || !marked.isCollapsed && main.contains(marked.anchorNode);
  }

  // Puts the main part of another page in the place of this one's, with the same
  // details open and the focus where it was.
  async function replace(address) {
    const reply = await fetch(address, { credentials: "same-origin" });
    if (!reply.ok) return false;
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fresh = page.getElementById("main");
    if (!fresh || busy()) return false;
    const open = [...main.querySelectorAll("details[id][open]")].map((d) => d.id);
    const links = () => [...main.querySelectorAll("a, button, summary, [tabindex]")];
    const focused = links().indexOf(document.activeElement);
    main.replaceChildren(...fresh.childNodes);
    document.title = page.title;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    since = performance.now();
    dress();
    if (focused >= 0) links()[focused]?.focus({ preventScroll: true });
    return true;
  }

  // Layers that had not answered: the complete page follows, once nobody is busy.
  async function fill() {
    if (!await replace(main.dataset.fill).catch(() => false) && busy()) setTimeout(fill, 1000);
  }

  // Reading the page anew by itself: never while it is hidden or paused, and not for ever.
  const every = Number(main.dataset.refresh) * 1000, longest = 600000;
  let paused = false, ends = Date.now() + longest;
  function showRefresh() {
    const box = main.querySelector(".refresh");
    if (!box) return;
    const over = Date.now() >= ends;
    box.firstElementChild.textContent = over ? box.dataset.ended : paused ? box.dataset.paused : box.dataset.refreshing;
    box.querySelector("button")?.remove();
    box.firstElementChild.after(" ", button(over || paused ? box.dataset.resume : box.dataset.pause, "plain", () => {
      paused = !(over || paused);
      if (!paused) ends = Date.now() + longest;
      showRefresh();
      box.querySelector("button").focus();
    }));
  }
  async function refresh() {
    const address = new URL(location.href);
    address.searchParams.set("wait", "all");
    if (Date.now() >= ends) showRefresh();
    else if (!paused && !document.hidden && !busy()) await replace(address).catch(() => false);
    setTimeout(refresh, every);
  }

  // A slash leads to the search box, except where one is typed.
  const box = document.getElementById("q");
  addEventListener("keydown", (event) => {
    const field = event.target instanceof Element && event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key !== "/" || field || event.ctrlKey || event.metaKey || event.altKey || !box) return;
    event.preventDefault();
    box.focus();
    box.select();
  });

  // Searches of late stay in this browser; they are sent nowhere.
  const kept = "idemscope.searches", most = 10, longestKept = 500;
  function searches(change) {
    try {
      let list = JSON.parse(localStorage.getItem(kept) ?? "[]").filter((s) => typeof s === "string");
      if (change) {
        list = change(list).slice(0, most);
        localStorage.setItem(kept, JSON.stringify(list));
      }
      return list;
    } catch {
      return []; // the browser keeps nothing, or something else stands there
    }
  }
  box?.form.addEventListener("submit", () => {
    const typed = box.value;
    if (typed !== "" && typed.length <= longestKept) searches((list) => [typed, ...list.filter((s) => s !== typed)]);
  });
  function showSearches() {
    const recent = document.getElementById("recent");
    if (!recent) return;
    const list = searches(), items = recent.querySelector("ul");
    recent.hidden = list.length === 0;
    items.replaceChildren(...list.map((text) => {
      const item = document.createElement("li"), link = document.createElement("a"), code = document.createElement("code");
      const address = new URL(box.form.action);
      address.searchParams.set("q", text);
      const lang = box.form.elements.namedItem("lang");
      if (lang) address.searchParams.set("lang", lang.value);
      link.href = address.href;
      code.className = "id";
      code.textContent = text;
      link.append(code);
      const remove = button("×", "plain", () => { searches((all) => all.filter((s) => s !== text)); showSearches(); });
      remove.setAttribute("aria-label", `${recent.dataset.remove} ${text}`);
      item.append(link, " ", remove);
      return item;
    }));
  }
  const clear = document.querySelector("#recent [data-clear]");
  if (clear) clear.append(button(clear.dataset.clear, "plain", () => { searches(() => []); showSearches(); }));

  dress();
  showSearches();
  if (main.dataset.fill) fill();
  if (every > 0) setTimeout(refresh, every);
})();
