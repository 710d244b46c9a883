"use strict";
// The pipe timeline: a canvas over typed arrays. Far out it draws shares of buckets of time, near it draws instructions.
(function () {
  const LABEL = 118, ROW = 17, GAP = 9, AXIS = 26, OVERVIEW = 34;
  const KINDS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array };

  // ---- reading ----
  function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text); // browsers of 2025 and later have it
    const raw = atob(text), out = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k++) out[k] = raw.charCodeAt(k);
    return out;
  }
  async function unpacked(column) {
    const stream = new Blob([bytesOf(column.data)]).stream().pipeThrough(new DecompressionStream("deflate"));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    const kind = KINDS[column.kind], size = kind.BYTES_PER_ELEMENT, n = planes.length / size;
    const raw = new Uint8Array(planes.length);
    for (let b = 0; b < size; b++) for (let k = 0, from = b * n; k < n; k++) raw[k * size + b] = planes[from + k];
    const out = new kind(raw.buffer);
    if (column.delta) for (let k = 1; k < n; k++) out[k] += out[k - 1];
    return out;
  }
  async function columnsOf(data, names) {
    const found = await Promise.all(names.map((n) => unpacked(data.columns[n])));
    return Object.fromEntries(names.map((n, k) => [n, found[k]]));
  }
  const DRAWN = ["start", "length", "line"]; // what the first picture needs; what a single instruction says comes after it
  async function opened(data) {
    const levels = await Promise.all(data.levels.map(async (l) => ({ ...l, busy: await unpacked(l.busy), line: await unpacked(l.line) })));
    return { ...data, columns: await columnsOf(data, DRAWN), packed: data, levels };
  }
  async function rest(timeline) {
    const names = Object.keys(timeline.data.packed.columns).filter((n) => !DRAWN.includes(n));
    Object.assign(timeline.data.columns, await columnsOf(timeline.data.packed, names));
    timeline.data.packed = null;
    timeline.draw();
  }

  const least = (array, x, low, high) => { // first place in low..high whose number is above x
    while (low < high) { const mid = (low + high) >> 1; if (array[mid] > x) high = mid; else low = mid + 1; }
    return low;
  };
  const plain = (x) => x.toLocaleString("en-US", { maximumFractionDigits: x < 100 ? 2 : 0 });

  class Timeline {
    constructor(box, data) {
      Object.assign(this, { box, data, t0: 0, whole: data.axis || data.span, t1: data.axis || data.span, chosen: -1, by: "pipe", hover: -1 });
      this.start = data.columns.start; this.length = data.columns.length; this.line = data.columns.line;
      this.lanes = box.querySelector(".lanes"); this.canvas = this.lanes.querySelector("canvas");
      this.over = box.querySelector("canvas.over"); this.spacer = box.querySelector(".spacer");
      this.detail = box.parentElement.querySelector(".timeline-detail");
      this.show = data.lanes.map((_, k) => k);
      this.listen();
      this.layout();
    }

    // ---- places ----
    layout() {
      let y = 0, core = null;
      this.top = new Map();
      for (const k of this.show) {
        if (core !== null && this.data.lanes[k].core !== core) y += GAP;
        core = this.data.lanes[k].core;
        this.top.set(k, y);
        y += ROW;
      }
      this.tall = y + 6;
      this.resize();
    }
    resize() {
      const ratio = devicePixelRatio || 1;
      this.width = this.box.clientWidth;
      this.height = Math.min(this.tall + AXIS, matchMedia("print").matches ? 900 : 440);
      for (const [canvas, height] of [[this.canvas, this.height], [this.over, OVERVIEW]]) {
        canvas.width = this.width * ratio; canvas.height = height * ratio;
        canvas.style.width = this.width + "px"; canvas.style.height = height + "px";
        canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
      }
      this.lanes.style.height = this.height + "px";
      this.spacer.style.height = Math.max(0, this.tall + AXIS - this.height) + "px";
      this.draw();
    }
    x(t) { return LABEL + (t - this.t0) / (this.t1 - this.t0) * (this.width - LABEL - 8); }
    t(x) { return this.t0 + (x - LABEL) / (this.width - LABEL - 8) * (this.t1 - this.t0); }
    look(t0, t1) {
      const span = Math.max(8, Math.min(t1 - t0, this.whole));
      const middle = (t0 + t1) / 2;
      this.t0 = Math.max(0, Math.min(middle - span / 2, this.whole - span));
      this.t1 = this.t0 + span;
      this.draw();
    }
    zoom(factor, at = (this.t0 + this.t1) / 2) { this.look(at - (at - this.t0) * factor, at + (this.t1 - at) * factor); }
    pan(share) { const d = share * (this.t1 - this.t0); const s = this.t1 - this.t0;
      const t0 = Math.max(0, Math.min(this.t0 + d, this.whole - s)); this.look(t0, t0 + s); }

    // ---- drawing ----
    draw() {
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.paint(); });
    }
    paint() {
      const g = this.canvas.getContext("2d"), css = window.ascendtile.colour;
      this.ink = css("ink"); this.soft = css("soft"); this.rule = css("rule"); this.card = css("card"); this.faint = css("faint");
      this.colours = [0, 1, 2, 3, 4, 5, 6, 7].map((k) => css("c" + k));
      g.fillStyle = this.card; g.fillRect(0, 0, this.width, this.height);
      this.font = getComputedStyle(document.body).fontFamily;
      const scroll = this.lanes.scrollTop;
      for (const k of this.show) {
        const y = this.top.get(k) - scroll + AXIS;
        if (y > -ROW && y < this.height) this.lane(g, k, y);
      }
      this.axis(g);
      this.overview();
    }
    axis(g) {
      g.fillStyle = this.card; g.fillRect(0, 0, this.width, AXIS);
      const cycles = (this.t1 - this.t0) * this.data.cycles_per_tick, raw = cycles / Math.max(2, (this.width - LABEL) / 130);
      const unit = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw) || 10 * unit;
      g.strokeStyle = this.rule; g.fillStyle = this.soft; g.font = "11.5px " + this.font; g.textAlign = "center"; g.textBaseline = "middle";
      for (let c = Math.ceil(this.t0 * this.data.cycles_per_tick / step) * step; c <= this.t1 * this.data.cycles_per_tick; c += step) {
        const x = this.x(c / this.data.cycles_per_tick);
        g.beginPath(); g.moveTo(x, AXIS - 6); g.lineTo(x, AXIS); g.stroke();
        g.fillText(plain(c), x, 10);
      }
      g.textAlign = "left"; g.fillText("cycle", 8, 10);
      g.beginPath(); g.moveTo(0, AXIS - .5); g.lineTo(this.width, AXIS - .5); g.stroke();
    }
    lane(g, k, y) {
      const lane = this.data.lanes[k], first = k === this.show[0] || this.data.lanes[this.show[this.show.indexOf(k) - 1]].core !== lane.core;
      const over = Math.min(this.x(this.data.span), this.width - 8); // where its program is over: another timeline may be longer
      g.fillStyle = this.faint; g.fillRect(LABEL, y + 1, Math.max(0, over - LABEL), ROW - 2);
      const perPixel = (this.t1 - this.t0) / (this.width - LABEL);
      const level = this.data.levels.find((l) => l.width <= 1.5 * perPixel);
      g.save(); g.beginPath(); g.rect(LABEL, Math.max(y, AXIS), this.width - LABEL - 8, ROW); g.clip();
      if (level) this.buckets(g, k, y, level); else this.exact(g, k, y, perPixel);
      g.restore();
      g.textBaseline = "middle"; g.font = "11.5px " + this.font; g.textAlign = "right";
      g.fillStyle = this.soft; g.fillText(lane.pipe, LABEL - 8, y + ROW / 2);
      if (first) { g.textAlign = "left"; g.fillStyle = this.ink; g.fillText("core " + lane.core, 8, y + ROW / 2); }
    }
    tint(k, line) {
      if (this.by === "line") return this.colours[line === 65535 ? 7 : line % 7];
      return this.colours[this.data.lanes[k].colour];
    }
    buckets(g, k, y, level) {
      const from = Math.max(0, Math.floor(this.t0 / level.width)), to = Math.min(level.buckets, Math.ceil(this.t1 / level.width));
      const row = k * level.buckets, wide = level.width / (this.t1 - this.t0) * (this.width - LABEL - 8) + .4;
      for (let b = from; b < to; b++) {
        const busy = level.busy[row + b];
        if (!busy) continue;
        g.globalAlpha = .12 + .88 * busy / 255;
        g.fillStyle = this.tint(k, level.line[row + b]);
        g.fillRect(this.x(b * level.width), y + 1, wide, ROW - 2);
      }
      g.globalAlpha = 1;
    }
    exact(g, k, y, perPixel) {
      const lane = this.data.lanes[k], end = lane.first + lane.count;
      let i = Math.max(lane.first, least(this.start, this.t0, lane.first, end) - 1), drawn = -1;
      for (; i < end && this.start[i] <= this.t1; i++) {
        const a = Math.max(LABEL - 2, this.x(this.start[i])), b = Math.min(this.width, this.x(this.start[i] + this.length[i]));
        if (b - a < .7 && a - drawn < .5) continue;
        g.fillStyle = this.tint(k, this.line[i]);
        g.fillRect(a, y + 1, Math.max(b - a - (b - a > 4 ? 1 : 0), .7), ROW - 2);
        drawn = a;
        this.waits(g, i, k, y);
        if (b - a > 58) this.label(g, i, a, b, y);
        if (i === this.chosen) { g.strokeStyle = this.ink; g.lineWidth = 2; g.strokeRect(a + 1, y + 2, Math.max(b - a - 2, 2), ROW - 4); g.lineWidth = 1; }
      }
    }
    waits(g, i, k, y) { // the gap before an instruction, where it is wide enough to be seen
      const gap = this.data.columns.gap;
      if (!gap || !gap[i]) return;
      const a = this.x(this.start[i] - gap[i]), b = this.x(this.start[i]);
      if (b - a < 3) return;
      g.strokeStyle = this.soft; g.beginPath(); g.moveTo(a + 1, y + ROW / 2); g.lineTo(b - 1, y + ROW / 2); g.stroke();
      const word = this.data.reasons[this.data.columns.reason[i]];
      if (word && b - a > 60) { g.font = "10.5px " + this.font; g.textAlign = "center"; g.textBaseline = "middle"; const w = g.measureText(word).width;
        g.fillStyle = this.faint; g.fillRect((a + b - w) / 2 - 3, y + 2, w + 6, ROW - 4);
        g.fillStyle = this.soft; g.fillText(word, (a + b) / 2, y + ROW / 2 + .5); }
    }
    label(g, i, a, b, y) {
      g.save(); g.beginPath(); g.rect(a, y, b - a - 4, ROW); g.clip();
      g.font = "11px " + this.font; g.textAlign = "left"; g.textBaseline = "middle"; g.fillStyle = this.card;
      const at = this.data.lines[this.line[i]];
      g.fillText(this.name(i) + (at ? "  line " + at[1] : ""), Math.max(a, LABEL) + 5, y + ROW / 2 + .5);
      g.restore();
    }
    overview() {
      const g = this.over.getContext("2d"), load = this.data.load;
      g.fillStyle = this.card; g.fillRect(0, 0, this.width, OVERVIEW);
      const w = this.width - LABEL - 8, wide = w / load.length * this.data.span / this.whole;
      g.fillStyle = this.colours[7];
      for (let b = 0; b < load.length; b++) {
        const h = (OVERVIEW - 8) * load[b] / 255;
        g.fillRect(LABEL + b * wide, OVERVIEW - 4 - h, wide + .4, h);
      }
      g.fillStyle = this.soft; g.font = "11.5px " + this.font; g.textBaseline = "middle"; g.textAlign = "left"; g.fillText("all pipes", 8, OVERVIEW / 2);
      const a = LABEL + this.t0 / this.whole * w, b = LABEL + this.t1 / this.whole * w;
      g.strokeStyle = this.ink; g.lineWidth = 1.5; g.strokeRect(a, 2, Math.max(b - a, 3), OVERVIEW - 4); g.lineWidth = 1;
    }

    // ---- one instruction ----
    laneOf(i) { return this.data.lanes.findIndex((l) => i >= l.first && i < l.first + l.count); }
    name(i) { const c = this.data.columns.name; return c ? this.data.names[c[i]] : this.data.lanes[this.laneOf(i)].pipe; }
    where(i) { const l = this.data.lines[this.line[i]]; return l ? l[0] + ":" + l[1] : ""; }
    at(x, y) {
      if (x < LABEL || y < AXIS) return -1;
      const row = y - AXIS + this.lanes.scrollTop;
      const k = this.show.find((n) => row >= this.top.get(n) && row < this.top.get(n) + ROW);
      if (k === undefined) return -1;
      const lane = this.data.lanes[k], t = this.t(x), slack = 3 * (this.t1 - this.t0) / this.width;
      const i = least(this.start, t + slack, lane.first, lane.first + lane.count) - 1;
      return i >= lane.first && t <= this.start[i] + this.length[i] + slack ? i : -1;
    }
    facts(i) {
      const c = this.data.columns, per = this.data.cycles_per_tick, lane = this.data.lanes[this.laneOf(i)], line = this.data.lines[this.line[i]];
      const out = ["core " + lane.core + ", " + lane.unit + "." + lane.pipe + ", " + this.name(i) + (c.program ? ", program " + c.program[i] : ""),
        "cycles " + plain(this.start[i] * per) + " to " + plain((this.start[i] + this.length[i]) * per) + ": " + plain(this.length[i] * per) + " taken"
        + (c.bytes && c.bytes[i] ? ", " + plain(c.bytes[i]) + " bytes" : "")];
      if (c.gap && c.gap[i]) {
        const j = c.waited[i], reason = this.data.reasons[c.reason[i]] || "";
        out.push("waited " + plain(c.gap[i] * per) + " cycles for " + reason + (j >= 0 ? ": " + this.name(j) + " at " + this.where(j) : ""));
      }
      if (c.bandwidth && c.bandwidth[i]) out.push(plain(c.bandwidth[i] * per) + " of these cycles because bandwidth was shared");
      return { words: out, line };
    }
    choose(i, move) {
      this.chosen = i;
      if (i >= 0) this.detail.dataset.chosen = "1"; else delete this.detail.dataset.chosen;
      this.detail.replaceChildren();
      if (i < 0) { this.detail.textContent = "No instruction is chosen."; this.draw(); return; }
      const { words, line } = this.facts(i);
      for (const w of words) { const p = document.createElement("p"); p.textContent = w; p.style.margin = ".1rem 0"; this.detail.append(p); }
      if (line) { const code = document.createElement("span"); code.className = "code"; code.textContent = line[0] + ":" + line[1] + "   " + line[2]; this.detail.append(code); }
      if (move) this.reveal(i);
      this.draw();
    }
    reveal(i) {
      const s = this.start[i], e = s + this.length[i], k = this.laneOf(i), y = this.top.get(k);
      if ((e - s) * 150 < this.t1 - this.t0) this.look((s + e) / 2 - Math.max(e - s, 4) * 20, (s + e) / 2 + Math.max(e - s, 4) * 20);
      else if (s < this.t0 || e > this.t1) this.look(s - (this.t1 - this.t0) / 2, s + (this.t1 - this.t0) / 2);
      if (y === undefined) return;
      if (y < this.lanes.scrollTop) this.lanes.scrollTop = y;
      if (y + ROW > this.lanes.scrollTop + this.height - AXIS) this.lanes.scrollTop = y + ROW - this.height + AXIS;
    }
    next(by) {
      if (this.chosen < 0) {
        const lane = this.data.lanes[this.show[0]];
        this.choose(Math.min(lane.first + lane.count - 1, Math.max(lane.first, least(this.start, this.t0, lane.first, lane.first + lane.count))), true);
        return;
      }
      const lane = this.data.lanes[this.laneOf(this.chosen)];
      this.choose(Math.max(lane.first, Math.min(this.chosen + by, lane.first + lane.count - 1)), true);
    }
    other(by) { // the instruction at the same time on the lane above or below
      if (this.chosen < 0) { this.next(1); return; }
      const place = this.show.indexOf(this.laneOf(this.chosen)) + by;
      if (place < 0 || place >= this.show.length) return;
      const lane = this.data.lanes[this.show[place]];
      this.choose(Math.max(lane.first, least(this.start, this.start[this.chosen], lane.first, lane.first + lane.count) - 1), true);
    }

    // ---- mouse, wheel, keyboard ----
    listen() {
      const c = this.canvas, at = (e) => { const b = c.getBoundingClientRect(); return [e.clientX - b.left, e.clientY - b.top]; };
      this.lanes.addEventListener("scroll", () => this.draw());
      c.addEventListener("wheel", (e) => {
        if (e.ctrlKey || e.metaKey) { e.preventDefault(); this.zoom(Math.exp(e.deltaY * .0025), this.t(at(e)[0])); }
        else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); this.pan((e.deltaX || e.deltaY) / this.width); }
      }, { passive: false });
      let held = null;
      c.addEventListener("pointerdown", (e) => { held = { x: e.clientX, y: e.clientY, t0: this.t0, t1: this.t1, moved: false }; c.setPointerCapture(e.pointerId); });
      c.addEventListener("pointermove", (e) => {
        if (held && (held.moved || Math.abs(e.clientX - held.x) > 4)) {
          held.moved = true; c.classList.add("moving"); window.ascendtile.hush();
          const d = (e.clientX - held.x) / (this.width - LABEL) * (held.t1 - held.t0), s = held.t1 - held.t0;
          const t0 = Math.max(0, Math.min(held.t0 - d, this.whole - s)); this.look(t0, t0 + s);
          return;
        }
        const i = this.at(...at(e)), tip = document.getElementById("tip");
        if (i < 0) { delete tip.dataset.held; return; }
        const { words, line } = this.facts(i);
        tip.dataset.held = "1";
        window.ascendtile.say([...words, line ? line[0] + ":" + line[1] + "  " + line[2] : ""].join("\n"), e.clientX, e.clientY);
      });
      c.addEventListener("pointerleave", () => { delete document.getElementById("tip").dataset.held; window.ascendtile.hush(); });
      c.addEventListener("pointerup", (e) => { if (held && !held.moved) this.choose(this.at(...at(e))); held = null; c.classList.remove("moving"); });
      c.addEventListener("dblclick", (e) => this.zoom(.25, this.t(at(e)[0])));
      const jump = (e) => { const b = this.over.getBoundingClientRect(), w = this.width - LABEL - 8; const t = (e.clientX - b.left - LABEL) / w * this.whole, s = (this.t1 - this.t0) / 2; this.look(t - s, t + s); };
      this.over.addEventListener("pointerdown", (e) => { jump(e); this.over.setPointerCapture(e.pointerId); });
      this.over.addEventListener("pointermove", (e) => { if (e.buttons) jump(e); });
      const keys = {
        ArrowLeft: () => this.pan(-.2), ArrowRight: () => this.pan(.2), "+": () => this.zoom(.5), "=": () => this.zoom(.5), "-": () => this.zoom(2),
        Home: () => this.look(0, this.whole), "0": () => this.look(0, this.whole), n: () => this.next(1), p: () => this.next(-1),
        ArrowDown: () => this.other(1), ArrowUp: () => this.other(-1),
      };
      c.addEventListener("keydown", (e) => { if (keys[e.key] && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); keys[e.key](); } });
      document.addEventListener("theme", () => this.draw());
      addEventListener("beforeprint", () => this.paint());
      new ResizeObserver(() => { if (this.box.clientWidth && this.box.clientWidth !== this.width) this.resize(); }).observe(this.box);
      const controls = this.box.parentElement;
      controls.querySelectorAll("[data-do]").forEach((b) => b.addEventListener("click", () => ({
        in: () => this.zoom(.5), out: () => this.zoom(2), fit: () => this.look(0, this.whole), left: () => this.pan(-.4), right: () => this.pan(.4),
        next: () => this.next(1), previous: () => this.next(-1),
      })[b.dataset.do]()));
      controls.querySelector("select.core").addEventListener("change", (e) => {
        const core = e.target.value;
        this.show = this.data.lanes.map((_, k) => k).filter((k) => core === "" || String(this.data.lanes[k].core) === core);
        this.lanes.scrollTop = 0; this.layout();
      });
      controls.querySelector("select.colour").addEventListener("change", (e) => { this.by = e.target.value; this.draw(); });
    }
  }

  window.ascendtile.timelines = {};
  for (const box of document.querySelectorAll(".timeline")) {
    const name = box.dataset.name;
    const begin = async function () {
      try {
        const shown = window.ascendtile.timelines[name] = new Timeline(box, await opened(window.ascendtile.data(name)));
        box.dataset.ready = "drawn";
        await rest(shown);
        box.dataset.ready = "whole";
      }
      catch (e) { box.parentElement.querySelector(".timeline-detail").textContent = "This browser cannot show the timeline (" + e.message + ")."; }
    };
    const details = box.closest("details");
    if (details && !details.open) details.addEventListener("toggle", begin, { once: true }); else begin();
  }
})();
