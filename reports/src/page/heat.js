// Sessions × strategies by one metric: values in the cells, the stronger the better.

const LEVELS = 5;

const metricNow = () => data.metrics[Math.max(0, metricOf(state.metric || "cost_usd"))];

// Sessions and strategies that the filters let through.
function shown() {
  const products = state.products !== undefined;
  const blocks = data.blocks.filter((b) =>
    passes(state.find, b.name, b.title) && (!state.model || b.model === state.model) &&
    (!state.tag || b.tags.includes(state.tag)));
  const there = new Set(blocks.flatMap((b) => b.rows.map((r) => r.s)));
  const strategies = data.strategies.map((_, i) => i).filter((i) => there.has(i) &&
    passes(state.who, data.strategies[i].label) &&
    (!products || isProduct(i)));
  return { blocks, strategies };
}

// Compares with unknown values last, whichever way.
const order = (a, b, down) => {
  if (a == null || b == null) return (a == null) - (b == null);
  return down ? b - a : a - b;
};

function median(values) {
  const known = values.filter((v) => v != null).sort((a, b) => a - b);
  return known.length ? known[known.length >> 1] : null;
}

const whole = (row) => !row.end && !row.broken;

const isProduct = (i) => data.strategies[i].standing === "contender";

// Where each whole row of a product is between the lowest and the highest of its session, 0 to 4.
// The reference and what was recorded would stretch the scale, and a second row of a product repeats
// it.
function levels(metric, at, rows) {
  const stands = (row) => row && whole(row) && isProduct(row.s) && !row.beside &&
    row.v[at] != null;
  const values = rows.filter(stands).map((r) => r.v[at]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return (row) => {
    if (!stands(row) || low === high) return "";
    const place = (row.v[at] - low) / (high - low);
    const better = metric.better === "lower" ? 1 - place : place;
    return `q${Math.min(LEVELS - 1, Math.floor(better * LEVELS))}`;
  };
}

// What a cell says beside its value: in a sign, and in words for who points at it.
function remarks(row) {
  const out = [];
  if (row.broken) out.push(["⚠", `${row.broken} broken rules`]);
  if (row.end) out.push(["✕", row.end]);
  if (row.front) out.push(["◆", "on the front"]);
  return out;
}

function cell(block, i, row, metric, at, level) {
  const { label } = data.strategies[i];
  if (!row) return h("td", { class: "none" }, h("span", { tabindex: "-1" }, "–"));
  const told = remarks(row);
  const value = row.v[at];
  const a = h("a", {
    tabindex: "-1", href: link({ session: block.name, strategy: label, compaction: null }),
    "aria-label": `${block.name}, ${label}: ${metric.title} ${say(metric, value)}` +
      told.map(([, words]) => `, ${words}`).join(""),
  }, show(metric, value), told.map(([sign]) => h("span", { class: "sign" }, sign)));
  tells(a, () => [
    h("b", {}, label), block.name, `${metric.title}: ${say(metric, value)}`,
    ...[COST, KEPT].filter((m) => m !== at && m >= 0)
      .map((m) => `${data.metrics[m].title}: ${say(data.metrics[m], row.v[m])}`),
    ...told.map(([sign, words]) => `${sign} ${words}`),
  ]);
  return h("td", { class: value == null ? "na" : whole(row) ? level(row) : "part" }, a);
}

// Arrow keys go from cell to cell; the tab key enters and leaves the map.
function arrows(map) {
  const cells = () => [...map.tBodies[0].rows].map((r) =>
    [...r.cells].map((c) => c.firstElementChild));
  const first = cells()[0]?.[1];
  if (first) first.tabIndex = 0;
  map.addEventListener("keydown", (e) => {
    const all = cells();
    const row = all.findIndex((r) => r.includes(document.activeElement));
    if (row < 0) return;
    const column = all[row].indexOf(document.activeElement);
    const to = {
      ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column], Home: [row, 1], End: [row, all[row].length - 1],
    }[e.key];
    const next = to && all[to[0]]?.[to[1]];
    if (!next) return;
    e.preventDefault();
    all.flat().forEach((c) => { if (c) c.tabIndex = c === next ? 0 : -1; });
    next.focus();
  });
}

// A name that may be broken before its settings.
const breakable = (name) => name.replace(/[:,]/g, "$&\u200b");

function heatMap() {
  const metric = metricNow();
  const at = data.metrics.indexOf(metric);
  const { blocks, strategies } = shown();
  const rowsOf = new Map(blocks.map((b) => [b, new Map(b.rows.map((r) => [r.s, r]))]));
  const value = (b, i) => rowsOf.get(b).get(i)?.v[at];
  const sorted = data.strategies.findIndex((x) => x.label === state.sort);
  const down = state.down !== undefined;
  if (sorted >= 0) blocks.sort((a, b) => order(value(a, sorted), value(b, sorted), down));
  if (state.columns === "value") {
    const middle = new Map(strategies.map((i) => [i, median(blocks.map((b) => value(b, i)))]));
    strategies.sort((a, b) => order(middle.get(a), middle.get(b), metric.better === "higher"));
  }
  const heading = (i) => {
    const { label, name } = data.strategies[i];
    const on = i === sorted;
    return h("th", { scope: "col", "aria-sort": on ? (down ? "descending" : "ascending") : null },
      h("button", { type: "button", title: label,
        onclick: () => go({ sort: on && down ? null : label, down: on && !down ? "1" : null }) },
      h("span", { class: "turned" }, breakable(name), on ? (down ? " ↓" : " ↑") : "")));
  };
  const row = (b) => {
    const rows = rowsOf.get(b);
    const level = levels(metric, at, strategies.map((i) => rows.get(i)));
    return h("tr", {},
      h("th", { scope: "row" }, h("a", { href: link({ session: b.name, compaction: null }),
        title: b.title }, b.name)),
      strategies.map((i) => cell(b, i, rows.get(i), metric, at, level)));
  };
  const map = h("table", { class: "heat", role: "grid",
    "aria-label": `${metric.title} by session and strategy` },
  h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "session"), strategies.map(heading))),
  h("tbody", {}, blocks.map(row)));
  arrows(map);
  const told = blocks.length && strategies.length
    ? h("div", { class: "wide map" }, map)
    : h("p", {}, "No session and strategy matches these filters.");
  return [
    help(h("b", {}, metric.title), `: ${metric.help}. `, BETTER[metric.better]),
    h("p", { class: "count", role: "status" }, `${blocks.length} of ${data.blocks.length} sessions`,
      `, ${strategies.length} of ${data.strategies.length} strategies`),
    told, key(metric),
  ];
}

const BETTER = {
  lower: "Lower is better.", higher: "Higher is better.",
  neither: "Neither is better by itself.",
};

const key = (metric) => h("p", { class: "key" },
  "Products within a session, ", metric.better === "neither" ? "least" : "worst", " ",
  [...Array(LEVELS).keys()].map((i) => h("span", { class: `swatch q${i}` }, "")),
  metric.better === "neither" ? " most. " : " best. ",
  h("span", { class: "swatch part" }, "✕"), " did not finish, so it measures less work. ",
  h("span", { class: "swatch na" }, "n/a"), " unknown or cannot be. ⚠ broke a rule. ",
  `◆ ${data.front}. Click a strategy to sort, a value to open its session.`);

const choice = (name, key_, options, now) => h("label", {}, `${name} `,
  h("select", { id: key_, onchange: (e) => go({ [key_]: e.target.value || null }) },
    options.map(([value, text]) => h("option", { value, selected: value === now }, text))));

const words = (name, key_, hint) => h("label", {}, `${name} `,
  h("input", { type: "search", id: key_, value: state[key_] ?? "", placeholder: hint,
    oninput: (e) => go({ [key_]: e.target.value || null }, true) }));

function heatControls() {
  const models = [...new Set(data.blocks.map((b) => b.model))];
  const tags = [...new Set(data.blocks.flatMap((b) => b.tags))].sort();
  const metric = metricNow();
  const option = (m) => [m.column, m.title];
  const parts = [data.metrics.filter((m) => m.scored), data.metrics.filter((m) => !m.scored)];
  const group = (name, all) => h("optgroup", { label: name }, all.map(option)
    .map(([value, text]) => h("option", { value, selected: value === metric.column }, text)));
  return h("div", { class: "controls" },
    h("label", {}, "Metric ", h("select", { id: "metric",
      onchange: (e) => go({ metric: e.target.value }) },
    group("most asked for", parts[0]), group("more", parts[1]))),
    words("Sessions", "find", "words of a name"),
    words("Strategies", "who", "codex aider"),
    models.length > 1 && choice("Model", "model",
      [["", "all"], ...models.map((m) => [m, m])], state.model ?? ""),
    tags.length > 0 && choice("Tag", "tag",
      [["", "all"], ...tags.map((t) => [t, t])], state.tag ?? ""),
    choice("Columns", "columns", [["", "as listed"], ["value", "best first"]],
      state.columns ?? ""),
    h("label", {}, h("input", { type: "checkbox", id: "products",
      checked: state.products !== undefined,
      onchange: (e) => go({ products: e.target.checked ? "1" : null }) }), " products only"));
}
