// Elements, numbers and words.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  const told = children.flat(Infinity).filter((c) => c != null && c !== false && c !== "");
  element.append(...told);
  return element;
}

// An element; texts among the children stay texts, whatever stands in them.
const h = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

const s = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

const find = (selector) => document.querySelector(selector);

// `digits` decimals, halves to even, as the other reports round.
function fixed(x, digits) {
  const size = Math.abs(x);
  const halves = size * 2 ** (digits + 1);
  let text = size.toFixed(digits);
  if (Number.isInteger(halves) && halves % 2 === 1 && "13579".includes(text.at(-1))) {
    text = (size - 0.5 / 10 ** digits).toFixed(digits);
  }
  return x < 0 && /[1-9]/.test(text) ? `-${text}` : text;
}

function tokens(n) {
  if (n < 1e3) return fixed(n, 0);
  if (n < 9950) return `${fixed(n / 1e3, 1)}k`;
  if (n < 999500) return `${fixed(n / 1e3, 0)}k`;
  return n < 99950000 ? `${fixed(n / 1e6, 2)}M` : `${fixed(n / 1e6, 0)}M`;
}

function usd(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  return fixed(x, size < 0.1 ? 4 : size < 100 ? 3 : 1);
}

const seconds = (x) => (x === 0 ? "0" : fixed(x, x >= 1000 ? 0 : 1));

// How a number of a column is shown, by the kind of its unit.
const SHOW = {
  tokens,
  usd,
  percent: (x) => fixed(x, 1),
  share: (x) => fixed(x * 100, 1),
  ratio: (x) => fixed(x, 3),
  millis: (x) => seconds(x / 1e3),
  count: (x) => fixed(x, 0),
};

const show = (metric, x) => (x == null ? "n/a" : SHOW[metric.kind](x));

// The same in a sentence, with its unit.
const say = (metric, x) =>
  x == null ? "n/a" : metric.kind === "usd" ? `$${usd(x)}` : show(metric, x) + metric.suffix;

// The change from one number to another, in words.
function change(metric, from, to) {
  if (from == null || to == null) return "n/a";
  const relative = ["tokens", "usd", "millis"].includes(metric.kind) && from > 0;
  const by = relative ? (to / from - 1) * 100 : to - from;
  const text = relative ? fixed(Math.abs(by), 1) : show(metric, Math.abs(by));
  if (!/[1-9]/.test(text)) return "±0";
  const points = ["percent", "share"].includes(metric.kind) ? " points" : metric.suffix;
  return `${by < 0 ? "−" : "+"}${text}${relative ? " %" : points}`;
}

// Whether a text holds one of the words of a filter; an empty filter lets everything through.
function passes(filter, ...texts) {
  const words = (filter || "").toLowerCase().split(/[\s,]+/).filter(Boolean);
  const all = texts.join(" ").toLowerCase();
  return words.length === 0 || words.some((w) => all.includes(w));
}

// A table of texts and elements, with the first cell of each row as its heading.
function table(head, rows, attributes = {}) {
  const row = (cells, i) =>
    h("tr", {}, cells.map((c, at) => (at === 0 ? h("th", { scope: "row" }, c) : h("td", {}, c))));
  return h("table", attributes,
    h("thead", {}, h("tr", {}, head.map((c) => h("th", { scope: "col" }, c)))),
    h("tbody", {}, rows.map(row)));
}

// What may be wider than the window scrolls in a box of its own.
const wide = (name, ...children) =>
  h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": name }, ...children);

const help = (...children) => h("p", { class: "help" }, ...children);

const hint = (...children) => h("p", { class: "hint" }, ...children);
