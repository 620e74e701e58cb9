// A session's own part of the page, unpacked when it is first looked at.

const unpacked = new Map();

async function open(i) {
  if (!unpacked.has(i)) {
    const packed = find(`#d${i}`)?.textContent.trim();
    if (!packed) return null;
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const chunk = JSON.parse(await new Response(stream).text());
    const facts = chunk.facts.map((f) => ({ ...f, text: chunk.texts[f.text] }));
    const runs = chunk.runs.map((r) => series(r, { texts: chunk.texts, facts }));
    unpacked.set(i, { left: chunk.left, runs });
  }
  return unpacked.get(i);
}

// Sums of what is stored as differences.
const sums = (all) => {
  let sum = 0;
  return all.map((d) => (sum += d));
};

function series(run, chunk) {
  const { q } = run;
  const text = (i) => chunk.texts[i];
  const excerpts = (all = []) => all.map((p) => ({
    ...p, texts: (p.texts ?? []).map((x) => ({ ...x, text: text(x.text) })),
  }));
  return {
    ...run,
    step: sums(q.step), context: sums(q.context), read: q.read, write: q.write,
    cost: sums(q.micro_usd).map((x) => x / 1e6),
    compactions: run.compactions.map((c) => ({
      ...c, request: c.before_request, before: c.before_tokens, after: c.after_tokens,
      invalidated: c.invalidated_tokens, summary: c.summary_tokens, usd: c.cost_usd,
      lost: c.facts_lost_verbatim, carried: c.facts_carried, needed: c.facts_needed_later,
      break_even: c.break_even_calls, calls: c.calls_after, paid: c.paid_off,
      retained: c.retained_pct, went: excerpts(c.went), came: excerpts(c.came),
    })),
    moves: run.moves.map((m) => ({
      ...m, fact: chunk.facts[m.fact], before: text(m.before), after: text(m.after),
    })),
    needs: run.needs.map((n) => ({ ...n, fact: chunk.facts[n.fact] })),
  };
}
