"use strict";
// What every page has: light or dark, tips at points of charts, tables that sort and filter, copying, the section in view.
(function () {
  const root = document.documentElement;
  const remembered = (function () { try { return localStorage.getItem("ascendtile-theme"); } catch (e) { return null; } })();
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = document.getElementById("theme");

  function show() {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "Show in light colours" : "Show in dark colours");
    button.setAttribute("aria-pressed", String(dark()));
    document.dispatchEvent(new Event("theme"));
  }
  if (remembered === "dark" || remembered === "light") root.dataset.theme = remembered;
  button.addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("ascendtile-theme", root.dataset.theme); } catch (e) { /* a page without storage */ }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);

  // ---- tips ----
  const tip = document.getElementById("tip");
  function place(x, y) {
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
  }
  function say(text, x, y) { tip.textContent = text; tip.hidden = false; place(x, y); }
  function hush() { tip.hidden = true; }
  const tipped = (e) => e.target instanceof Element && e.target.closest("[data-tip]");
  document.addEventListener("pointermove", function (e) {
    const at = tipped(e);
    if (at) say(at.dataset.tip, e.clientX, e.clientY); else if (!tip.dataset.held) hush();
  });
  document.addEventListener("focusin", function (e) {
    const at = tipped(e);
    if (!at) { hush(); return; }
    const box = at.getBoundingClientRect();
    say(at.dataset.tip, box.right, box.top);
  });
  document.addEventListener("keydown", function (e) { if (e.key === "Escape") hush(); });

  // ---- tables ----
  const figure = (cell) => (cell.dataset.v === undefined ? NaN : Number(cell.dataset.v));
  function compare(a, b, k) {
    const x = a.cells[k], y = b.cells[k], n = figure(x), m = figure(y);
    if (Number.isNaN(n) !== Number.isNaN(m)) return Number.isNaN(n) ? 1 : -1;
    return Number.isNaN(n) ? x.textContent.localeCompare(y.textContent, undefined, { numeric: true }) : n - m;
  }
  function sort(table, th, k) {
    const up = th.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = Array.from(table.tBodies[0].rows);
    rows.sort((a, b) => (up ? 1 : -1) * compare(a, b, k));
    table.tBodies[0].append(...rows);
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach(function (th, k) {
      const press = document.createElement("button");
      press.type = "button"; press.className = "sort";
      press.append(...th.childNodes);
      th.append(press);
      press.addEventListener("click", () => sort(table, th, k));
    });
  }
  for (const input of document.querySelectorAll("input[data-filters]")) {
    const table = document.getElementById(input.dataset.filters);
    const count = document.getElementById(input.dataset.filters + "-count");
    input.addEventListener("input", function () {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((w) => text.includes(w));
        shown += row.hidden ? 0 : 1;
      }
      if (count) count.textContent = shown + " of " + table.tBodies[0].rows.length;
    });
  }

  // ---- copying ----
  for (const copy of document.querySelectorAll("button[data-copies]")) {
    copy.addEventListener("click", async function () {
      const from = document.getElementById(copy.dataset.copies);
      try { await navigator.clipboard.writeText(from.textContent); copy.textContent = "Copied"; }
      catch (e) { getSelection().selectAllChildren(from); copy.textContent = "Selected: copy with the keyboard"; }
    });
  }

  // ---- the section in view ----
  const links = new Map(Array.from(document.querySelectorAll("nav a"), (a) => [a.getAttribute("href").slice(1), a]));
  const seen = new IntersectionObserver(function (entries) {
    for (const e of entries) {
      if (!e.isIntersecting) continue;
      for (const a of links.values()) a.removeAttribute("aria-current");
      links.get(e.target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  for (const id of links.keys()) seen.observe(document.getElementById(id));

  window.ascendtile = {
    say, hush,
    data: (name) => JSON.parse(document.getElementById("data-" + name).textContent),
    colour: (name) => getComputedStyle(root).getPropertyValue("--" + name).trim(),
  };
  show();
})();
