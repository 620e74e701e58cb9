// Newest replies verbatim, before them a journal of exact lines: the built-in `generational`.
// strategies/src/generational/README.md describes the rules. `journal` is in tokens.
import { keep, run } from 'ctxbench';

const HEADER =
  '(Journal of earlier work: exact lines of messages, calls (>) and results; some are left out.)';
const HIGH = 0.85, LOW = 0.6, STEPS = 6, LONGEST = 200;

class Generational {
  name = 'generational';
  version = '1';
  #paid = 0;
  #requestedAt;
  #lines = new Map();
  // Text of the user and the model, and short forms of calls, without the blanks around them.
  #said = new Set();
  #sizes = new Map();

  async context(messages, ctx) {
    // `ttl`: lifetime of cache entries, 5m or 1h.
    const { young = 7, journal = 30_000, rent = 2, ttl = '5m' } = ctx.settings;
    const limits = { young, journal, rent, ttl };
    const { window } = ctx.model;
    const used = await ctx.countTokens();
    const fixed = await ctx.countTokens([]);
    // Tokens of a prompt that fills a share of the window after system prompt and tools.
    const filled = (share) => fixed + Math.trunc((window - fixed) * share);
    const limit = filled(HIGH);
    let plan, trigger;
    if (ctx.reason === 'overflow') {
      if (ctx.attempt > 4) return undefined;
      plan = await this.#shrink(messages, ctx, used, filled(LOW / ctx.attempt), limits);
    } else if (used > limit) {
      trigger = { check: 'before_request', believed: used, limit };
      plan = await this.#shrink(messages, ctx, used, filled(LOW), limits);
    } else {
      plan = await this.#plan(messages, ctx, Math.max(young, 1), journal, false);
      if (plan && !this.#isDue(ctx, used, plan, limits)) plan = undefined;
    }
    this.#requestedAt = ctx.now;
    if (plan) this.#paid = 0;
    const shown = plan ? plan.messages : messages;
    const ends = shown.filter((m, i) => !shown[i + 1] || isReply(m) !== isReply(shown[i + 1])).slice(-2);
    const journals = shown.filter((m) => isJournal(m) && m.id);
    const marked = shown.filter((m) => m.id && (m === journals.at(-1) || ends.includes(m)));
    return keep(shown, {
      trigger,
      compaction: plan && { kind: 'clear', mechanism: 'collect' },
      breakpoints: journals.length
        ? ['system', ...marked.map((m) => m.id)].map((id) => ({ id, ttl }))
        : undefined,
    });
  }

  /** The messages after a collection of all but the newest `young` replies. */
  async #plan(messages, ctx, young, budget, isTight) {
    for (const m of messages) this.#read(m);
    const replies = messages.flatMap((m, i) => (isReply(m) ? [i] : []));
    if (!replies.length || replies.length <= young) return undefined;
    const first = young ? replies.at(-young) : messages.length;
    const asked = messages.findLast(isAsked);
    const pieces = [];
    const known = new Set();
    for (const m of messages.slice(0, first)) {
      if (isAsked(m) && (!isTight || m === asked)) {
        pieces.push({ stays: true, messages: [m], lines: [] });
        continue;
      }
      const isNew = (line) => !known.has(line.trim()) && known.add(line.trim());
      const lines = this.#read(m).filter(isNew);
      const last = pieces.at(-1);
      if (last && !last.stays && !isJournal(m)) last.lines.push(...lines);
      else pieces.push({ stays: isJournal(m), isJournal: isJournal(m), messages: [m], lines });
    }
    pieces.push({ stays: true, messages: messages.slice(first), lines: [] });
    const empty = await ctx.countTokens([]);
    const overhead = (await this.#size(ctx, 'a', empty)) - 1;
    const measure = async () => {
      for (const p of pieces) {
        if (p.stays) {
          p.size = (await ctx.countTokens(p.messages)) - empty;
          continue;
        }
        p.size = overhead;
        for (const line of p.lines) p.size += (await this.#size(ctx, line, empty)) - overhead + 1;
      }
    };
    await measure();
    if (sum(pieces.filter((p) => !p.stays || p.isJournal)) > budget) {
      const room = Math.trunc(budget / 2) - overhead;
      const cost = async (line) => (await this.#size(ctx, line, empty)) - overhead + 1;
      const kept = await this.#kept(pieces.flatMap((p) => p.lines).reverse(), room, cost);
      for (const p of pieces) {
        p.stays &&= !p.isJournal;
        p.lines = p.lines.filter((line) => kept.has(line.trim()));
      }
      await measure();
    }
    const changed = pieces.findIndex((p) => !p.stays);
    return {
      messages: pieces.flatMap((p) => (p.stays ? p.messages : journalOf(p.lines))),
      after: empty + sum(pieces),
      rewritten: changed < 0 ? 0 : sum(pieces.slice(changed)),
    };
  }

  /** The lines that stay: in half of the budget what was said and called, then the others. */
  async #kept(newest, budget, cost) {
    const kept = new Set();
    let used = 0;
    for (const [limit, isAny] of [[Math.trunc(budget / 2), false], [budget, true]]) {
      for (const line of newest) {
        const text = line.trim();
        if (kept.has(text) || !(isAny || this.#said.has(text))) continue;
        const more = await cost(line);
        if (used + more > limit) break;
        used += more;
        kept.add(text);
      }
    }
    return kept;
  }

  /** Tokens of a message with this text. */
  async #size(ctx, text, empty) {
    if (!this.#sizes.has(text)) {
      const tokens = await ctx.countTokens([{ role: 'user', content: text }]);
      this.#sizes.set(text, tokens - empty);
    }
    return this.#sizes.get(text);
  }

  /** Whether the garbage has cost `rent` times the collection, or the cache is cold. */
  #isDue({ model: { prices, cache }, now }, used, { after, rewritten }, { rent, ttl }) {
    const garbage = Math.max(0, used - after);
    this.#paid += garbage * prices.cache_read;
    const write = ttl === '1h' ? prices.cache_write_1h : prices.cache_write_5m;
    const lifetime = ttl === '1h' ? cache.lifetime_1h_ms : cache.lifetime_5m_ms;
    const isCold = now - (this.#requestedAt ?? now) > lifetime;
    const fee = rewritten * (write - prices.cache_read);
    return garbage >= 0.02 * used && (isCold || this.#paid >= rent * fee);
  }

  /** Collects with smaller and smaller limits, until the view has `target` tokens. */
  async #shrink(messages, ctx, used, target, { young, journal }) {
    let last;
    for (let step = 0; step < 2 * STEPS; step++) {
      // In the second half even the newest reply becomes lines.
      const fewer = step < STEPS ? Math.max(young >> step, 1) : 0;
      const budget = Math.min(journal, Math.trunc(ctx.model.window / 2)) >> (step % STEPS);
      last = (await this.#plan(messages, ctx, fewer, budget, step >= 2)) ?? last;
      if (last && last.after <= target) break;
    }
    return last && last.after < used ? last : undefined;
  }

  /** The lines of a message; the text of a journal has them as they are. */
  #read(m) {
    if (!this.#lines.has(m.id)) {
      const lines = isJournal(m) ? textOf(m).split('\n').slice(1) : [...linesOf(m)];
      this.#lines.set(m.id, lines.map((line) => line.trimEnd()).filter(Boolean));
      if (m.role !== 'tool' && !isJournal(m)) {
        const calls = (m.tool_calls ?? []).map((c) => shortForm(c.function.name, argumentsOf(c)));
        for (const line of [...textOf(m).split('\n'), ...calls]) this.#said.add(line.trim());
      }
    }
    return this.#lines.get(m.id);
  }
}

const sum = (pieces) => pieces.reduce((total, p) => total + p.size, 0);
const textOf = ({ content }) =>
  typeof content === 'string' ? content : (content ?? []).map((c) => c.text ?? '').join('\n');
const isReply = (m) => m.role === 'assistant';
const isJournal = (m) => m.role === 'user' && textOf(m).startsWith(HEADER);
const isAsked = (m) => m.role === 'user' && !isJournal(m);
const journalOf = (lines) =>
  lines.length ? [{ role: 'user', content: [HEADER, ...lines].join('\n') }] : [];
const isShort = (line) => Buffer.byteLength(line) <= LONGEST;

/** Text as it is, calls in short form, results without line numbers. */
function* linesOf(m) {
  if (m.role === 'tool') return yield* textOf(m).split('\n').map(unnumbered).filter(isShort);
  yield* textOf(m).split('\n');
  for (const call of m.tool_calls ?? []) {
    const given = argumentsOf(call);
    yield shortForm(call.function.name, given);
    for (const [, v] of given.filter(([, v]) => !isLine(v))) yield* v.split('\n').filter(isShort);
  }
}

const isLine = (text) => !text.includes('\n') && isShort(text);
const argumentsOf = (call) =>
  Object.entries(parsed(call.function.arguments)).map(([k, v]) =>
    [k, typeof v === 'string' ? v : JSON.stringify(v)]);
const shortForm = (name, given) =>
  `> ${name}${given.filter(([, v]) => isLine(v)).map(([k, v]) => ` ${k}=${v}`).join('')}`;

function parsed(given) {
  try {
    return JSON.parse(given);
  } catch {
    return { input: given };
  }
}

/** The line without the number that a tool wrote before it. */
function unnumbered(line) {
  return /^\s*\d+(?:→|\t|\||: )(.*)$/s.exec(line)?.[1] ?? line;
}

run(new Generational());
