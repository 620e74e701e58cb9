// One session: its strategies, one or two of them over its steps, their compactions and facts.

const blockNow = () => data.blocks.find((b) => b.name === state.session);

const rowOf = (block, label) => block.rows.find((r) => data.strategies[r.s].label === label);

// What is looked at where the address names nobody: the cheapest on the front, else the first.
function strategyNow(block) {
  if (rowOf(block, state.strategy)) return state.strategy;
  const front = block.rows.filter((r) => r.front).sort((a, b) => a.v[COST] - b.v[COST]);
  const some = front[0] ?? block.rows.find((r) => r.v[metricOf("compactions")] > 0) ??
    block.rows[0];
  return data.strategies[some.s].label;
}

const LEFT_OUT = {
  whole: "",
  short: "The words of this session are cut short, because the page would be too large with them.",
  no_texts: "The words of this session are left out, because the page would be too large with them.",
  thin: "The words of this session are left out and its curves are drawn by some of its steps, " +
    "because the page would be too large otherwise.",
};

const REST = " results.json and `ctxbench explain` have all of it.";

async function sessionView(block) {
  const index = data.blocks.indexOf(block);
  const label = strategyNow(block);
  const chunk = await open(index);
  const against = rowOf(block, state.against) && state.against !== label ? state.against : null;
  const head = [sessionHead(block, index), pickers(block, label, against)];
  if (!chunk) {
    return [head, h("p", { class: "terms" },
      "What happened in this session is left out, because the page would be too large with it.",
      REST), figuresOf(block, label, against), strategiesOf(block)];
  }
  const runs = [label, against].filter(Boolean).map((l, i) => {
    const row = rowOf(block, l);
    const run = chunk.runs.find((r) => r.s === row.s);
    return { ...run, label: l, side: SIDES[i], row, steps: Math.max(...run.step, 1) };
  });
  const number = /^(b?)(\d+)$/.exec(state.compaction ?? "");
  const side = number && runs.find((r) => r.side === (number[1] || "a"));
  const picked = side?.compactions.find((c) => c.seq === Number(number[2]));
  return [
    head,
    chunk.left === "whole" ? "" : h("p", { class: "terms" }, LEFT_OUT[chunk.left], REST),
    runs.map((r) => r.notes.length > 0 && h("p", { class: "terms" },
      `${r.label}: ${r.notes.join("; ")}`)),
    h("section", { "aria-labelledby": "steps" }, h("h3", { id: "steps" }, "Over its steps"),
      timeline(runs, block.window)),
    h("section", { id: "compaction", tabindex: "-1" },
      picked ? compactionView(side, picked) : hint("Click a compaction in a chart or in the list ",
        "to see the texts that it removed and added, and the facts that were lost.")),
    runs.map(compactionsOf),
    runs.map(lostFacts),
    figuresOf(block, label, against),
    strategiesOf(block),
    runs.map((r) => settingsOf(r)),
  ];
}

function sessionHead(block, index) {
  const to = (i, text) => data.blocks[i] && h("a", {
    href: link({ session: data.blocks[i].name, compaction: null }) }, text);
  return [
    h("nav", { class: "back", "aria-label": "sessions" },
      h("a", { href: link(OF_SESSION) }, "← all sessions"), to(index - 1, "previous session"),
      to(index + 1, "next session")),
    h("h2", { id: "name", tabindex: "-1" }, block.title),
    h("p", { class: "terms" }, block.terms),
    block.why && h("p", {}, block.why),
    block.warnings.map((w) => h("p", { class: "terms" }, `Note: ${w}`)),
  ];
}

function pickers(block, label, against) {
  const all = block.rows.map((r) => data.strategies[r.s].label);
  const options = (now, none) => [
    none && h("option", { value: "", selected: !now }, none),
    ...all.map((l) => h("option", { value: l, selected: l === now }, l)),
  ];
  return h("div", { class: "controls" },
    h("label", {}, "Strategy ", h("select", { id: "strategy",
      onchange: (e) => go({ strategy: e.target.value, compaction: null }) }, options(label))),
    h("label", {}, "Compare with ", h("select", { id: "against",
      onchange: (e) => go({ strategy: label, against: e.target.value || null, compaction: null }) },
    options(against, "none"))));
}

// Every figure of one or two strategies, with what it means.
function figuresOf(block, label, against) {
  const [a, b] = [rowOf(block, label), against && rowOf(block, against)];
  const row = (m) => {
    const at = data.metrics.indexOf(m);
    return [m.title, say(m, a.v[at]),
      ...(b ? [say(m, b.v[at]), change(m, a.v[at], b.v[at])] : []),
      h("span", { class: "why" }, `${m.help}${m.better === "neither" ? "" : `; ${m.better} is better`}`)];
  };
  const head = ["figure", label, ...(b ? [against, "change"] : []), "what it means"];
  const part = (name, all) => wide(name, table(head, all.map(row), { class: "figures" }));
  return h("section", { "aria-labelledby": "figures" }, h("h3", { id: "figures" }, "Figures"),
    part("Scores", data.metrics.filter((m) => m.scored)),
    h("details", {}, h("summary", {}, "More figures"),
      part("More figures", data.metrics.filter((m) => !m.scored))));
}

// What is remarked of a row, without the reasons in brackets: its own notes tell them.
function remarkCell(told) {
  const said = told.map(([sign, text]) => `${sign} ${text}`);
  return h("td", { class: "remark", title: said.join("; ") || null },
    said.map((text) => text.replace(/ \(.*$/s, "")).join("; "));
}

// All strategies of the session in the scores; a name opens its run.
function strategiesOf(block) {
  const scores = data.metrics.filter((m) => m.scored);
  const body = block.rows.map((r) => {
    const { label } = data.strategies[r.s];
    const cells = scores.map((m) => {
      const at = data.metrics.indexOf(m);
      return h("td", { "data-v": r.v[at] ?? "" }, show(m, r.v[at]));
    });
    return h("tr", { class: whole(r) ? "" : "broken" },
      h("th", { scope: "row" }, h("a", { href: link({ strategy: label, against: null,
        compaction: null }) }, label)),
      remarkCell(remarks(r)),
      cells,
      h("td", {}, h("a", { href: link({ against: label, compaction: null }),
        "aria-label": `compare with ${label}` }, "compare")));
  });
  const all = h("table", { class: "sort" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "l" }, "strategy"),
      h("th", { scope: "col", class: "l" }, "remarks"),
      scores.map((m) => h("th", { scope: "col", title: m.help }, m.title + m.suffix)),
      h("td", {}))),
    h("tbody", {}, body));
  sortable(all);
  return h("section", { "aria-labelledby": "strategies" },
    h("h3", { id: "strategies" }, "All strategies on this session"),
    wide("Scores of all strategies", all));
}

function settingsOf(run) {
  return h("details", {}, h("summary", {}, `Settings of ${run.label}`),
    h("p", { class: "terms" }, `follows version ${run.version}`),
    table(["setting", "value"], run.settings));
}
