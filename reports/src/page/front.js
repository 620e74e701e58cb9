// The front of cost against recall: over all sessions of a model, or of one session.

const metricOf = (column) => data.metrics.findIndex((m) => m.column === column);
const COST = metricOf("cost_usd");
const KEPT = metricOf("recall_pct");

// The points of one session, as those over sessions come with the page.
function pointsOf(block) {
  const [cost, kept] = [data.metrics[COST], data.metrics[KEPT]];
  const reference = block.rows.find((r) => data.strategies[r.s].standing === "hypothetical");
  const most = reference?.v[KEPT] ?? 100;
  const known = block.rows.filter((r) => r.v[COST] != null && r.v[KEPT] != null);
  return {
    name: block.name,
    session: block.name,
    x: { title: "cost, US dollars" },
    y: { title: "recall, %" },
    against: reference ? "the reference" : "100 %",
    points: known.map((r) => ({
      s: r.s, same: [], x: r.v[COST], y: r.v[KEPT], loss: most - r.v[KEPT],
      cost: say(cost, r.v[COST]), kept: say(kept, r.v[KEPT]), front: r.front,
      counted: !r.end && !r.broken, product: data.strategies[r.s].standing === "contender",
      told: r.end ? [r.end] : [],
    })),
  };
}

const nameOf = (p) => [p.s, ...p.same].map((i) => data.strategies[i].label).join(" = ");

// What the chart is about: a group of sessions by its number, or a session by its name.
function chosen() {
  const block = data.blocks.find((b) => b.name === state.front);
  return block ? pointsOf(block) : data.groups[Number(state.front) || 0];
}

function range(values, share) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const more = (high - low) * share || Math.abs(high) * share || 1;
  return [low - more, high + more];
}

// More points than this have their names at the front only.
const NAMED = 16;

function scatter(of, points, width) {
  const height = Math.max(300, Math.min(440, width * 0.62));
  const box = { left: 52, right: width - 14, top: 30, bottom: height - 44 };
  const all = points.filter((p) => p.x != null && p.y != null);
  // Who is not compared does not stretch the chart, and stands at its edge if need be.
  const compared = all.some((p) => p.counted) ? all.filter((p) => p.counted) : all;
  const [x0, x1] = range(compared.map((p) => p.x), 0.15);
  const [y0, y1] = range(compared.map((p) => p.y), 0.15);
  const within = (low, high, at) => (v) => at(Math.min(high, Math.max(low, v)));
  const x = { low: x0, high: x1, show: axisNumber,
    at: within(x0, x1, scale(x0, x1, box.left, box.right)) };
  const y = { low: y0, high: y1, show: axisNumber,
    at: within(y0, y1, scale(y0, y1, box.bottom, box.top)) };
  const front = all.filter((p) => p.front).sort((a, b) => a.x - b.x);
  const steps = front.map((p, i) => (i === 0
    ? `M${x.at(p.x)},${y.at(p.y)}` : `H${x.at(p.x)}V${y.at(p.y)}`)).join("");
  const rest = all.filter((p) => p.counted && !p.front);
  const named = all.length > NAMED ? front : [...front, ...rest];
  // Names give way to marks and to one another.
  const taken = all.map((p) => ({ y: y.at(p.y) + 4, from: x.at(p.x) - 9, to: x.at(p.x) + 9 }));
  const label = (p) => {
    const full = nameOf(p);
    // The middle gives way: settings differ at the end.
    const name = full.length > 30 ? `${full.slice(0, 14)}…${full.slice(-15)}` : full;
    const long = name.length * 6.6;
    const right = x.at(p.x) + 12 + long < box.right;
    const at = { x: x.at(p.x) + (right ? 12 : -12), y: y.at(p.y) - 8 };
    const from = right ? at.x : at.x - long;
    const hits = (t) => Math.abs(t.y - at.y) < 13 && t.from < from + long && from < t.to;
    for (let i = 0; i < 12 && taken.some(hits); i += 1) at.y += 13;
    taken.push({ y: at.y, from, to: from + long });
    return s("text", { class: p.front ? "name" : "name soft", x: at.x, y: at.y,
      "text-anchor": right ? "start" : "end" }, name);
  };
  const least = state.lose === undefined ? null : Number(state.lose);
  // Marks at one place of the edge stand beside each other.
  const piled = new Map();
  const place = (p) => {
    const at = `${x.at(p.x)},${y.at(p.y)}`;
    const before = p.counted ? 0 : piled.get(at) ?? 0;
    piled.set(at, before + 1);
    return `translate(${x.at(p.x) - 18 * before},${y.at(p.y)})`;
  };
  const mark = (p) => {
    const look = [p.counted ? "" : "part", p.front ? "front" : "",
      least != null && p.loss > least ? "faint" : ""].join(" ");
    const a = s("a", { href: linkOf(of, p), class: "point", "aria-label": spoken(p),
      transform: place(p) },
    shape(data.strategies[p.s].mark, p.front ? 8 : 6, look));
    return tells(a, () => [h("b", {}, nameOf(p)), ...figures(p)]);
  };
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group",
    "aria-label": `Cost against recall, ${of.name}` },
  axes(box, { ...x, title: of.x.title }, { ...y, title: of.y.title }),
  s("path", { class: "frontline", d: steps }), all.map(mark), named.map(label));
}

const figures = (p) => [`cost ${p.cost}`, `recall ${p.kept}`, ...p.told,
  p.front ? "on the front" : ""].filter(Boolean);

const spoken = (p) => `${nameOf(p)}: ${figures(p).join(", ")}`;

// A point of a session leads to its run; one over sessions to what it is made of.
const linkOf = (of, p) => (of.session
  ? link({ session: of.session, strategy: data.strategies[p.s].label })
  : link({ metric: "cost_usd", sort: data.strategies[p.s].label, down: null }));

function cheapest(of, points) {
  const least = Number(state.lose);
  const fit = points.filter((p) => p.product && p.counted && p.x != null && p.loss <= least + 1e-9);
  const best = fit.sort((a, b) => a.x - b.x)[0];
  return best
    ? h("p", { class: "answer" }, "Cheapest of those that lose at most ", state.lose,
      " points of recall against ", of.against, ": ", h("b", {}, nameOf(best)),
      ` (cost ${best.cost}, recall ${best.kept}).`)
    : h("p", { class: "answer" }, "No product that finished loses so little.");
}

function frontView() {
  const of = chosen();
  if (!of) return hint("Nothing is compared here: no strategy has both a cost and recall.");
  const points = of.points.filter((p) => passes(state.who, nameOf(p)));
  const rows = [...points].sort((a, b) => (a.x ?? Infinity) - (b.x ?? Infinity)).map((p) => [
    h("a", { href: linkOf(of, p) }, badge(data.strategies[p.s].mark), nameOf(p)),
    p.front ? h("span", { title: data.front }, "◆ front") : "",
    p.cost, p.kept, p.told.join("; "),
  ]);
  const options = [
    ...data.groups.map((g, i) => h("option", { value: String(i),
      selected: of === g }, `all: ${g.name}`)),
    ...data.blocks.map((b) => h("option", { value: b.name, selected: of.session === b.name },
      b.name)),
  ];
  const lose = h("input", { type: "number", id: "lose", min: "0", step: "any", size: "5",
    value: state.lose ?? "", onchange: (e) => go({ lose: e.target.value || null }) });
  return [
    h("div", { class: "controls" },
      h("label", {}, "Over ", h("select", { id: "over",
        onchange: (e) => go({ front: e.target.value === "0" ? null : e.target.value }) }, options)),
      h("label", {}, "Lose at most ", lose, " points of recall")),
    state.lose === undefined ? "" : cheapest(of, points),
    points.some((p) => p.x != null && p.y != null)
      ? drawing("front", (width) => scatter(of, points, width))
      : hint(`Nothing to draw: no strategy ${state.who ? "of this name " : ""}has both a cost and `,
        "recall that can be compared here."),
    help(`Left is cheaper, up keeps more. The line joins the front; ◆: ${data.front}. `,
      "Hollow: not compared, because it did not finish as many sessions, never compacted, or is ",
      "no product; at the edge: beyond it. A mark tells its figures when pointed at."),
    h("details", { open: state.figures !== undefined }, h("summary", {}, "The points as a table"),
      wide("Points of the front", table(["strategy", "front", of.x.title, of.y.title, ""], rows))),
  ];
}
