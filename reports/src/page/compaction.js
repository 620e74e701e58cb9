// One compaction: the texts it removed and added, and the facts it took.

const known = (value, told) => (value == null ? "n/a" : told(value));

// Figures of a compaction: name, value, what it means.
const COMPACTION = [
  ["context", (c) => `${tokens(c.before)} → ${known(c.after, tokens)} tokens`, "before and after"],
  ["rewritten", (c) => `${tokens(c.invalidated)} tokens`,
    "come after the first change, so the prompt cache cannot serve them"],
  ["summary", (c) => `${tokens(c.summary)} tokens`, "the text that replaces the rest"],
  ["waited", (c) => known(c.blocked_ms, (ms) => `${seconds(ms / 1e3)} s`), "modelled waiting"],
  ["cost", (c) => known(c.usd, (n) => `$${usd(n)}`), "its own requests"],
  ["facts left the text", (c) => known(c.lost, (n) => `${n}, ${c.carried} of them kept in other words`),
    "facts no longer there word for word, and those that a summary or restored file has"],
  ["still needed later", (c) => known(c.needed, (n) => (c.retained == null ? `${n}`
    : `${n}, of these ${fixed(c.retained, 1)} % there`)),
    "facts shown so far that the session needs later, and how many are still in the context"],
  ["pays off after", (c) => known(c.break_even, (n) => (n === "never" ? n : `${fixed(n, 1)} calls`)),
    "later calls until the tokens saved have paid for it"],
  ["calls that followed", (c) => `${c.calls}${c.paid == null ? "" :
    c.paid ? ", it paid off" : ", it did not pay off"}`, "before the next compaction"],
];

const toCompaction = (run, c, text) => h("a", {
  href: link({ compaction: `${run.side === "b" ? "b" : ""}${c.seq}` }) }, text);

function compactionView(run, c) {
  const [before, after] = [run.compactions[c.seq - 1], run.compactions[c.seq + 1]];
  const moved = run.moves.filter((m) => m.compaction === c.seq);
  const texts = c.went.length + c.came.length > 0;
  const tokensOf = run.needs.flatMap((n) => n.fact.tokens);
  return [
    h("h3", {}, `${run.label}: compaction ${c.seq + 1} of ${run.compactions.length}`),
    h("nav", { class: "back", "aria-label": "compactions" },
      before && toCompaction(run, before, "← previous"),
      after && toCompaction(run, after, "next →"),
      h("a", { href: link({ compaction: null }) }, "close")),
    h("p", { class: "terms" }, `${c.mechanism} (${c.kind}), ${c.phase.replace("_", " ")}, before request `,
      `${c.request}, at step ${c.step}`),
    h("dl", {}, COMPACTION.map(([name, value, meaning]) => h("div", {},
      h("dt", {}, name), h("dd", {}, value(c), h("span", { class: "why" }, meaning))))),
    texts ? h("div", { class: "exchange" },
      portions("Removed", c.went, tokensOf), portions("Added", c.came, tokensOf))
      : h("p", { class: "terms" }, "These results do not contain the texts."),
    movedFacts(moved, c),
  ];
}

// Literals of facts stand out in the words of a summary.
function marked(text, literals) {
  const known = [...new Set(literals)].filter((l) => l.length > 2).sort((a, b) =>
    b.length - a.length);
  if (!known.length || !text) return [text];
  const escaped = known.map((l) => l.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${escaped.join("|")})`)).map((part, i) =>
    (i % 2 ? h("mark", {}, part) : part));
}

function portions(title, all, literals) {
  const part = (p) => [
    h("h5", {}, `${p.blocks} × ${p.kind}, ${tokens(p.tokens)} tokens`),
    p.texts.filter((t) => t.text).map((t) => h("figure", { class: "words" },
      h("figcaption", {}, [t.tool, `${tokens(t.tokens)} tokens`].filter(Boolean).join(", ")),
      h("blockquote", { dir: "auto", tabindex: "0" }, title === "Added" ? marked(t.text, literals) : t.text))),
    p.blocks > p.texts.length && p.texts.some((t) => t.text)
      ? h("p", { class: "more" }, `and ${p.blocks - p.texts.length} smaller ones`) : "",
  ];
  return h("div", {}, h("h4", {}, title),
    all.length ? all.map(part) : h("p", {}, "nothing"));
}

const PLACES = {
  nowhere: "gone", summary: "in a summary", memory: "in constant context",
  restored: "in a restored file", verbatim: "word for word",
};

function movedFacts(moved, c) {
  if (!moved.length) {
    return c.lost > 0 ? h("p", { class: "terms" }, "This page does not contain the texts of the facts ",
      "that it moved.") : h("p", {}, "It moved no fact of the session.");
  }
  const rows = [...moved].sort((a, b) => (b.to === "nowhere") - (a.to === "nowhere")).map((m) => [
    m.fact.id, h("span", { class: m.to === "nowhere" ? "gone" : "" },
      `${PLACES[m.from]} → ${PLACES[m.to]}`),
    h("span", { dir: "auto" }, m.before),
    h("span", { dir: "auto" }, m.after || (m.to === "nowhere" ? "nothing like it" : "")),
  ]);
  return [h("h4", {}, "Facts it moved"),
    wide("Facts it moved", table(["fact", "from → to", "text before",
      "text after, or the nearest line of a summary"], rows, { class: "texts" }))];
}

function compactionsOf(run) {
  const head = ["compaction", "at step", "before", "after", "waited s", "cost $",
    "facts left", "kept in other words", "paid off"];
  const rows = run.compactions.map((c) => [
    toCompaction(run, c, `${c.seq + 1}: ${c.mechanism}`), c.step, tokens(c.before),
    known(c.after, tokens), known(c.blocked_ms, (ms) => seconds(ms / 1e3)), known(c.usd, usd), known(c.lost, String),
    known(c.carried, String),
    c.paid == null ? "n/a" : c.paid ? "yes" : "no",
  ]);
  const name = `Compactions of ${run.label}`;
  return h("details", { open: rows.length <= 12 }, h("summary", {}, `${name}: ${rows.length}`),
    rows.length ? wide(name, table(head, rows)) : h("p", {}, "It never compacted."));
}

// Why a need was not met: where the fact was said, which compaction took it, what was left.
function lostFacts(run) {
  const needs = run.needs.filter((n) => n.counts && !n.undelivered);
  const lost = needs.filter((n) => n.place === "nowhere");
  const name = `Facts lost by ${run.label}`;
  const row = (n) => {
    const took = run.moves.filter((m) => m.fact === n.fact && m.to === "nowhere" &&
      m.compaction < n.compactions).at(-1);
    const c = took && run.compactions[took.compaction];
    return [
      n.fact.id, n.fact.kind, h("span", { dir: "auto" }, n.fact.tokens.join(" · ")),
      n.step == null ? `${n.need}, not reached` : `${n.need}, step ${n.step}`,
      c ? toCompaction(run, c, `compaction ${c.seq + 1}, step ${c.step}`) : n.step == null ? "the run ended before" : "never shown",
      h("span", { dir: "auto" }, n.fact.text),
      h("span", { dir: "auto" }, took?.after ?? ""),
    ];
  };
  return h("details", { open: lost.length > 0 && lost.length <= 12 },
    h("summary", {}, `${name}: ${lost.length} of ${needs.length} needs`),
    help("Needs whose fact was no longer in the prompt, with the last compaction that removed it, the ",
      "text around it where it was shown, and the nearest line of a summary."),
    lost.length ? wide(name, table(["fact", "kind", "says", "needed by", "removed by", "text",
      "nearest in a summary"], lost.map(row), { class: "texts" })) : h("p", {}, "None."));
}
