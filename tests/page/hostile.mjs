// Results whose texts try to leave their place: `node hostile.mjs RESULTS.json OUT.json`.

import { readFileSync, writeFileSync } from "node:fs";

const [from, to] = process.argv.slice(2);
const BAD = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e \u0007\"'`${x}";
const LONG = "w".repeat(10_000);
const results = JSON.parse(readFileSync(from, "utf8"));
const most = results.runs.reduce((a, b) => (b.compactions.length > a.compactions.length ? b : a));

results.generator = BAD;
results.runs = results.runs.filter((r) => r.scenario.id === most.scenario.id);
for (const [i, r] of results.runs.entries()) {
  r.scenario = { ...r.scenario, id: `${BAD}${LONG}`, title: `${BAD}${LONG}`, why: BAD,
    tags: [BAD, LONG], warnings: [BAD, LONG] };
  r.strategy.label += i === 0 ? BAD : i === 1 ? LONG : "";
  r.strategy.settings[BAD] = LONG;
  r.note = `${BAD}${LONG}`;
  for (const c of r.compactions) {
    c.mechanism = BAD;
    for (const p of [...(c.went ?? []), ...(c.came ?? [])]) {
      p.kind = BAD;
      p.texts = [{ tool: BAD, tokens: 1, text: `${BAD}\n${LONG}` }];
    }
  }
  for (const f of r.facts) f.fact = `${f.fact}${BAD}`;
  for (const l of r.lives) {
    l.fact = `${l.fact}${BAD}`;
    l.tokens = [BAD, LONG];
    l.text = BAD;
    for (const m of l.moves ?? []) [m.before, m.after] = [BAD, LONG];
  }
}
writeFileSync(to, JSON.stringify(results));
