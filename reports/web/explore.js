"use strict";
// Heat maps: the best of all points for each pair of values of two knobs.
(function () {
  const show = (x) => (x === null || x === undefined ? "" : Math.abs(x) < .01 && x !== 0 ? x.toExponential(2) : Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en-US") : Number(x.toPrecision(3)).toString());
  for (const box of document.querySelectorAll(".heat-box")) {
    const data = window.ascendtile.data(box.dataset.name), names = Object.keys(data.axes), table = box.querySelector("table");
    const rows = box.querySelector("select.rows"), cols = box.querySelector("select.cols"), what = box.querySelector("select.what");
    if (!names.length) { table.caption.textContent = "Nothing varied."; continue; }
    cols.selectedIndex = Math.min(1, names.length - 1);
    for (const k of [1, 2]) if (!data.points.some((p) => p[names.length + k] !== null)) what.querySelector("[value='" + k + "']").remove();

    function best(r, c, figure) {
      const found = new Map();
      for (const p of data.points) {
        const key = p[r] + "," + p[c], x = p[names.length + figure];
        if (x !== null && (!found.has(key) || x < found.get(key)[names.length + figure])) found.set(key, p);
      }
      return found;
    }
    const cell = (name, text) => { const e = document.createElement(name); e.textContent = text; return e; };
    function tipOf(p) {
      const knobs = names.map((n, k) => n + "=" + data.axes[n][p[k]]).join(" ");
      return ["us", "KiB of UB", "error"].map((u, k) => (p[names.length + k] === null ? "" : show(p[names.length + k]) + " " + u)).filter(Boolean).join(", ") + "\n" + knobs;
    }
    function draw() {
      const r = rows.selectedIndex, c = cols.selectedIndex, figure = Number(what.value), found = best(r, c, figure);
      const all = Array.from(found.values(), (p) => p[names.length + figure]).filter((x) => x !== null);
      const low = Math.min(...all), high = Math.max(...all);
      const depth = (x) => (high > low && low > 0 ? 1 - Math.log(x / low) / Math.log(high / low) : high > low ? 1 - (x - low) / (high - low) : 1);
      const head = document.createElement("thead"), body = document.createElement("tbody"), top = document.createElement("tr");
      top.append(cell("th", names[r] + " \\ " + names[c]));
      data.axes[names[c]].forEach((v) => { const th = cell("th", v); th.scope = "col"; th.className = "r"; top.append(th); });
      head.append(top);
      data.axes[names[r]].forEach(function (v, i) {
        const tr = document.createElement("tr"), th = cell("th", v);
        th.scope = "row"; tr.append(th);
        data.axes[names[c]].forEach(function (w, j) {
          const p = found.get(i + "," + j), td = cell("td", p ? show(p[names.length + figure]) : "");
          if (p) {
            const x = p[names.length + figure];
            td.style.background = "rgba(" + window.ascendtile.colour("heat") + "," + (.05 + .6 * depth(x)).toFixed(3) + ")";
            td.dataset.tip = tipOf(p); td.tabIndex = 0;
            if (x === low) td.className = "best";
          }
          tr.append(td);
        });
        body.append(tr);
      });
      table.caption.textContent = what.selectedOptions[0].textContent + ": " + show(low) + " to " + show(high) + ", the best is framed";
      table.replaceChildren(table.caption, head, body);
    }
    for (const s of [rows, cols, what]) s.addEventListener("change", draw);
    document.addEventListener("theme", draw);
    draw();
  }
})();
