// Which product is the cheapest of those that lose little enough recall.

const metricOf = (column) => data.metrics.findIndex((m) => m.column === column);
const COST = metricOf("cost_usd");
const KEPT = metricOf("recall_pct");

const nameOf = (p) => [p.s, ...p.same].map((i) => data.strategies[i].name).join(" = ");

function cheapest(of) {
  const fit = of.points.filter((p) => p.loss <= Number(state.lose) + 1e-9);
  const best = fit.sort((a, b) => a.x - b.x)[0];
  return h("p", { class: "answer" }, data.groups.length > 1 && `${of.name}: `, best
    ? [`Cheapest of those that lose at most ${state.lose} points of recall against ${of.against}: `,
      h("b", {}, nameOf(best)), ` (cost ${best.cost}, recall ${best.kept}).`]
    : "No product that finished loses so little.");
}

const loseControl = () => data.groups.length > 0 && h("div", { class: "controls" },
  h("label", {}, "Cheapest that loses at most ",
    h("input", { type: "number", id: "lose", min: "0", step: "any", value: state.lose ?? "",
      oninput: (e) => go({ lose: e.target.value || null }, true) }), " points of recall"));

const answers = () => (state.lose === undefined ? [] : data.groups.map(cheapest));
