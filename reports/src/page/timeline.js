// One session over its steps: context, cost, cache and facts of one or two strategies.

const SIDES = ["a", "b"];

// The step that is pointed at, and what follows it.
let pointed = 0;
let followers = [];

// The last place in a list of steps that is not behind one.
function placeAt(steps, step) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// A chart over steps: `draw(x, y, box)` fills it.
function overSteps(name, runs, { height, high, title, show: shown = axisNumber, draw }) {
  const last = Math.max(1, ...runs.map((r) => r.steps));
  return drawing(name, (width) => {
    const box = { left: 52, right: width - 14, top: 26, bottom: height - 40 };
    const xs = scale(0, last, box.left, box.right);
    const ys = scale(0, high, box.bottom, box.top);
    const cursor = s("line", { class: "cursor", y1: box.top, y2: box.bottom });
    const follow = (step) => {
      cursor.setAttribute("x1", xs(step));
      cursor.setAttribute("x2", xs(step));
    };
    followers.push(follow);
    follow(pointed);
    return s("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": name,
      onpointermove: (e) => {
        const at = e.currentTarget.getBoundingClientRect();
        const share = (e.clientX - at.left) * (width / at.width) - box.left;
        point(Math.round((share / (box.right - box.left)) * last));
      },
    },
    axes(box, { low: 0, high: last, at: xs, show: axisNumber, title: "step of the session" },
      { low: 0, high, at: ys, show: shown, title }),
    draw(xs, ys, box), cursor);
  });
}

// A line that stands still between its points.
const path = (xs, ys, steps, values) => steps.map((step, i) =>
  (i === 0 ? `M${xs(step).toFixed(1)},` : `H${xs(step).toFixed(1)}V`) +
    ys(values[i]).toFixed(1)).join("");

// A compaction in a chart leads to its words.
function compactionMark(run, c, x, y) {
  const a = s("a", {
    href: link({ compaction: run.side === "b" ? `b${c.seq}` : String(c.seq) }),
    class: `compaction ${run.side}`, transform: `translate(${x},${y})`,
    "aria-label": `${run.label}, compaction ${c.seq + 1} at step ${c.step}: ` +
      `${tokens(c.before)} to ${known(c.after, tokens)} tokens`,
  }, s("path", { d: "M0,-8L8,0L0,8L-8,0z" }));
  return tells(a, () => [
    h("b", {}, `${run.label}: compaction ${c.seq + 1}`), `${c.mechanism}, at step ${c.step}`,
    `${tokens(c.before)} → ${known(c.after, tokens)} tokens`,
    c.lost == null ? "effect on facts unknown"
      : `${c.lost} facts left, ${c.carried} of them kept in other words`,
  ]);
}

function contextChart(runs, windowSize) {
  const most = Math.max(1, ...runs.flatMap((r) => r.context));
  const near = windowSize && windowSize < most * 2.5;
  const high = Math.max(most, near ? windowSize : 0) * 1.12;
  return overSteps("Context size", runs, {
    height: 250, high, title: "tokens in the prompt",
    draw: (xs, ys, box) => [
      near ? [
        s("line", { class: "window", x1: box.left, x2: box.right, y1: ys(windowSize),
          y2: ys(windowSize) }),
        s("text", { class: "tick", x: box.right, y: ys(windowSize) - 4, "text-anchor": "end" },
          `window ${tokens(windowSize)}`),
      ] : [],
      runs.map((r) => s("path", { class: `line ${r.side}`, d: path(xs, ys, r.step, r.context) })),
      runs.map((r) => r.compactions.map((c) => [
        s("line", { class: `fall ${r.side}`, x1: xs(c.step), x2: xs(c.step), y1: ys(c.before),
          y2: ys(c.after ?? c.before) }),
        compactionMark(r, c, xs(c.step), ys(Math.min(high, c.before)) - 9),
      ])),
    ],
  });
}

const costChart = (runs) => overSteps("Cost so far", runs, {
  height: 180, high: Math.max(1e-6, ...runs.map((r) => r.cost.at(-1) ?? 0)) * 1.1,
  title: "US dollars so far",
  draw: (xs, ys) => runs.map((r) =>
    s("path", { class: `line ${r.side}`, d: path(xs, ys, r.step, r.cost) })),
});

// What of each prompt came out of the cache, was written to it, and the rest, one above another.
function cacheChart(run) {
  const name = `Prompt cache: ${run.label}`;
  const tops = [run.read, run.read.map((x, i) => x + run.write[i]), run.context];
  const area = (xs, ys, top) =>
    `${path(xs, ys, run.step, top)}V${ys(0)}H${xs(run.step[0] ?? 0)}z`;
  return overSteps(name, [run], {
    height: 170, high: Math.max(1, ...run.context) * 1.1, title: `${run.label}: tokens of each prompt`,
    draw: (xs, ys) => (run.step.length ? ["rest", "write", "read"].map((part, i) =>
      s("path", { class: `area ${part}`, d: area(xs, ys, tops[2 - i]) })) : []),
  });
}

// The needs of a run that ask for memory, in piles by step: those that were met below the others.
function piles(run) {
  const known = run.needs.filter((n) => n.counts && n.step != null);
  const gone = (n) => n.place === "nowhere";
  const out = new Map();
  for (const n of [...known.filter((n) => !gone(n)), ...known.filter(gone)]) {
    out.set(n.step, [...(out.get(n.step) ?? []), n]);
  }
  return out;
}

// Needs over the session: a circle where the fact stood there, a cross where it was gone.
function factsChart(runs) {
  const all = runs.map(piles);
  const most = Math.max(1, ...all.flatMap((p) => [...p.values()].map((pile) => pile.length)));
  const apart = Math.min(7, 110 / most);
  const lane = 34 + apart * most;
  return overSteps("Facts at their needs", runs, {
    height: 72 + lane * runs.length, high: 1, title: "facts at their needs", show: () => "",
    draw: (xs, _, box) => runs.map((r, i) => {
      const bottom = box.top + lane * (i + 1) - 14;
      const mark = (n, level) => {
        const gone = n.place === "nowhere";
        const at = `translate(${xs(n.step)},${bottom - 14 - level * apart})`;
        return s("path", { class: gone ? "gone" : "kept", transform: at,
          d: gone ? "M-3.5,-3.5l7,7m0,-7l-7,7" : "M-2.5,0a2.5,2.5 0 1,0 5,0a2.5,2.5 0 1,0 -5,0z" },
        s("title", {}, `${n.fact.id}: ${gone ? "gone" : PLACES[n.place]} at step ${n.step}`));
      };
      return [
        s("line", { class: "lane", x1: box.left, x2: box.right, y1: bottom, y2: bottom }),
        s("text", { class: "tick", x: box.left + 4, y: bottom - 6 }, r.label),
        [...all[i].values()].map((pile) => pile.map(mark)),
        r.compactions.map((c) => compactionMark(r, c, xs(c.step), bottom)),
      ];
    }),
  });
}

function point(step) {
  pointed = Math.max(0, step);
  followers.forEach((f) => f(pointed));
}

function told(run, step) {
  const i = placeAt(run.step, step);
  if (i < 0) return `${run.label}: not begun`;
  const rest = run.context[i] - run.read[i] - run.write[i];
  const over = step > run.step.at(-1) ? " (ended before)" : "";
  return `${run.label}${over}: ${tokens(run.context[i])} tokens in the prompt, of these ` +
    `${tokens(run.read[i])} read from the cache, ${tokens(run.write[i])} written to it, ` +
    `${tokens(Math.max(0, rest))} neither; $${usd(run.cost[i])} so far`;
}

function timeline(runs, windowSize) {
  followers = [];
  const last = Math.max(1, ...runs.map((r) => r.steps));
  const slider = h("input", { type: "range", id: "step", min: "0", max: String(last),
    value: "0", oninput: (e) => point(Number(e.target.value)) });
  const out = h("div", { class: "readout", role: "status" });
  followers.push((step) => {
    slider.value = String(step);
    out.replaceChildren(h("b", {}, `Step ${Math.min(step, last)}`),
      ...runs.map((r) => h("div", { class: `side ${r.side}` }, told(r, step))));
  });
  const parts = [
    h("p", { class: "legend" }, runs.map((r) => h("span", { class: `side ${r.side}` }, r.label)),
      h("span", {}, "◆ compaction: click to see its texts")),
    h("h4", {}, "Context size"), contextChart(runs, windowSize),
    help("Tokens in each prompt of the main conversation. A fall is a compaction."),
    h("h4", {}, "Cost so far"), costChart(runs),
    help("US dollars by price list for all requests of the main conversation, summaries too."),
    h("h4", {}, "Prompt cache"), runs.map(cacheChart),
    help(h("span", { class: "swatch read" }), " read from the cache (cheap), ",
      h("span", { class: "swatch write" }), " written to it, ",
      h("span", { class: "swatch rest" }), " neither. After a compaction, the cache is ",
      "written again."),
    h("h4", {}, "Facts at their needs"), factsChart(runs),
    help("A circle: the fact that a step needs is in the prompt. A cross: it is not. Only facts shown ",
      "at least six replies before."),
    h("label", { class: "slider" }, "Step ", slider), out,
  ];
  point(Math.min(pointed, last));
  return parts;
}
