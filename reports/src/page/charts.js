// Charts as SVG: scales, axes, marks.

// Round values of an axis from low to high, about `count` of them and at least three.
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= raw * 0.999);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) {
    out.push(Number((i * step).toPrecision(12)));
  }
  return out.length > 2 || count > 30 ? out : ticks(low, high, count + 1);
}

// From a range of values to a range of pixels.
const scale = (low, high, from, to) => (x) =>
  from + ((x - low) / (high - low || 1)) * (to - from);

// The frame of a chart: lines and numbers of both axes, with what they count.
function axes(box, x, y) {
  const { left, right, top, bottom } = box;
  const across = ticks(x.low, x.high, (right - left) / 90).map((v) => [
    s("line", { class: "grid", x1: x.at(v), x2: x.at(v), y1: top, y2: bottom }),
    s("text", { class: "tick", x: x.at(v), y: bottom + 16, "text-anchor": "middle" }, x.show(v)),
  ]);
  const up = ticks(y.low, y.high, (bottom - top) / 36).map((v) => [
    s("line", { class: "grid", x1: left, x2: right, y1: y.at(v), y2: y.at(v) }),
    s("text", { class: "tick", x: left - 6, y: y.at(v) + 4, "text-anchor": "end" }, y.show(v)),
  ]);
  return [
    across, up,
    s("text", { class: "axis", x: right, y: bottom + 34, "text-anchor": "end" }, x.title),
    s("text", { class: "axis", x: left - 6, y: top - 10, "text-anchor": "start" }, y.title),
  ];
}

const axisNumber = (v) => {
  const size = Math.abs(v);
  if (size >= 1e6) return `${Number((v / 1e6).toPrecision(4))}M`;
  if (size >= 1e3) return `${Number((v / 1e3).toPrecision(4))}k`;
  return String(Number(v.toPrecision(4))).replace("-", "−");
};

// The same figures for pointer and keyboard: a note beside what is pointed at or has the focus.
const note = h("div", { id: "note", hidden: true, "aria-hidden": "true" });

function tells(element, lines) {
  const open = () => {
    note.replaceChildren(...lines().map((l) => h("div", {}, l)));
    note.hidden = false;
    const at = element.getBoundingClientRect();
    const room = document.documentElement.clientWidth - note.offsetWidth - 8;
    const above = at.top - note.offsetHeight - 6;
    note.style.left = `${Math.max(8, Math.min(at.left, room)) + scrollX}px`;
    note.style.top = `${(above > 0 ? above : at.bottom + 6) + scrollY}px`;
  };
  const close = () => { note.hidden = true; };
  for (const [on, off] of [["pointerenter", "pointerleave"], ["focus", "blur"]]) {
    element.addEventListener(on, open);
    element.addEventListener(off, close);
  }
  return element;
}

// Draws now, and again whenever the width changes.
const widths = new ResizeObserver((all) => {
  for (const { target } of all) {
    if (target.clientWidth && target.clientWidth !== target.drawn) {
      target.drawn = target.clientWidth;
      target.replaceChildren(...[target.draw(target.clientWidth)].flat(Infinity));
    }
  }
});

function drawing(name, draw) {
  const element = h("div", { class: "drawing" });
  element.draw = draw;
  widths.observe(element);
  return element;
}
