/** docs/schemas/exec.schema.json, held against the page, the Rust types and a recorded run. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import Ajv from 'ajv/dist/2020.js';

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const text = read('docs/schemas/exec.schema.json');
const schema = JSON.parse(text);
// Kits let ctxbench say more than is described; a recorded run of the present one does not.
const closed = JSON.parse(text, (_, value) =>
  value?.type === 'object' && value.properties
    ? { unevaluatedProperties: false, ...value } : value);

const ajv = new Ajv({ strictTypes: false });
ajv.addSchema(schema, 'open').addSchema(closed, 'closed');

/** What is wrong with a value, as a text; empty: nothing. */
function wrong(name, value, which = 'open') {
  const check = ajv.getSchema(name ? `${which}#/$defs/${name}` : which);
  return check(value) ? '' : ajv.errorsText(check.errors, { dataVar: name || 'line' });
}
const fits = (name, value, which) => assert.equal(wrong(name, value, which), '');
const refused = (name, value) =>
  assert.notEqual(wrong(name, value), '', `${name}: ${JSON.stringify(value)}`);

/** What is wrong with the lines of a transcript; an answer is checked by the call of its id. */
function problems(lines) {
  const calls = new Map();
  return lines.flatMap(({ from, line }, at) => {
    const other = from === 'ctxbench' ? 'program' : 'ctxbench';
    const checks = [[from === 'ctxbench' ? 'call' : 'callback', line]];
    if (line.method) {
      calls.set(`${from} ${line.id}`, line.method);
      checks.push([`${line.method}.params`, line.params]);
    } else {
      const method = calls.get(`${other} ${line.id}`);
      if (!method) return [`line ${at + 1} answers no call`];
      const own = `${method}.error` in schema.$defs ? `${method}.error` : 'error_object';
      checks[0][0] = line.error ? 'failure' : 'answer';
      checks.push(line.error ? [own, line.error] : [`${method}.result`, line.result]);
    }
    checks.push(['', line]);
    return checks.map(([name, value]) => wrong(name, value, 'closed')).filter(Boolean)
      .map((why) => `line ${at + 1}: ${why}`);
  });
}

const usage = {
  input_tokens: 100, cache_read_tokens: 90, cache_write_tokens: 10,
  output_tokens: 5, reasoning_tokens: 0,
};
const message = { role: 'user', content: 'hello' };
const added = [{ id: 'm1', message }];
const asked = { reason: 'step', now: 0, added, new_ids: [], usage: null, request_tokens: null };
const completion = {
  content: [{ type: 'text', text: 's' }], usage, stop_reason: 'end_turn',
};
const keep = ['m1'];
const trigger = { check: 'limit', believed: 90, limit: 80 };
const session = { id: 's', agent: null, tools: [], system: 'You code.' };
const prices = { input: 3, cache_read: 0.3, cache_write_5m: 3.75, cache_write_1h: 6, output: 15 };
const model = {
  id: 'm', provider: 'anthropic', window: 200000, max_output: 64000, prices,
  cache: { lifetime_5m_ms: 300000, lifetime_1h_ms: 3600000, min_tokens: 1024 },
};
const initialize = {
  protocol: 1,
  model,
  scale: 1,
  settings: { keep: 8, share: 0.5, tools: true, mode: 'fast' },
  session: {
    ...session, tools: [{ name: 'read', description: '', input_schema: { type: 'object' } }],
  },
  dialects: ['openai-chat', 'openai-responses', 'anthropic'],
};
const started = { name: 'mine', version: '1', dialect: 'anthropic' };

/** By the name of a message: values that fit, and values that do not. */
const examples = {
  'initialize.params': [
    [initialize, { ...initialize, session: { ...session, agent: 'explore' }, newer: 1 },
      { ...initialize, model: { ...model, prices: null } }],
    [{ ...initialize, protocol: 2 }, { ...initialize, scale: 0 }, { ...initialize, session: {} },
      { ...initialize, settings: { keep: [1] } },
      { ...initialize, model: { ...model, prices: { ...prices, output: '15' } } },
      { ...initialize, model: { ...model, cache: {} } }],
  ],
  'initialize.result': [
    [started, { ...started, moments: ['admit', 'reply', 'turn_end', 'error', 'rewind', 'idle',
      'manual', 'after_turn'], join_results: true }],
    [{ ...started, name: undefined }, { ...started, dialect: 'gemini' }, { ...started, more: 1 },
      { ...started, moments: ['overflow'] }, { ...started, moments: null }],
  ],
  'context.params': [
    [asked, { ...asked, usage, request_tokens: 5, new_ids: ['m7'] },
      { ...asked, reason: 'manual', instructions: 'the tests' }, { ...asked, reason: 'manual' },
      { ...asked, reason: 'idle', idle_ms: 5 }, { ...asked, reason: 'overflow', attempt: 1 }],
    [{ ...asked, reason: 'later' }, { ...asked, now: -1 }, { ...asked, added: ['m1'] },
      { ...asked, reason: 'idle' }, { ...asked, reason: 'overflow', attempt: 0 },
      { ...asked, usage: { ...usage, output_tokens: undefined } }, { ...asked, new_ids: [1] }],
  ],
  'context.result': [
    [{ unchanged: true }, { unchanged: false, keep: ['m1'] },
      { keep: ['m1', { id: 'm2', message }, { message }], scope: 'request' },
      { unchanged: true, trigger, breakpoints: [{ id: 'system' }, { id: 'm1', ttl: '1h' }],
        params: { max_tokens: 9, effort: 'low' } },
      { keep: ['m1'], compaction: { kind: 'drop', mechanism: 'old', ids: ['m0'] } },
      { keep: ['m1'], compaction: null, trigger: null, breakpoints: null, fail: null },
      { fail: 'no room' }, { unchanged: true, fail: 'no room' }],
    [{}, { unchanged: false }, { fail: null }, { fail: true },
      { unchanged: true, keep }, { keep: [] }, { keep: 'm1' }, { keep: [1] },
      { keep: [{ id: 'm1' }] }, { keep: [{ id: 'm1', message, role: 'user' }] },
      { keep: [{ message: 'hello' }] }, { keep, scope: 'turn' }, { keep, drop: ['m1'] },
      { keep, compaction: { kind: 'forget' } }, { keep, compaction: { id: 'm1' } },
      { keep, compaction: { mechanism: '' } }, { keep, compaction: { mechanism: 'a\nb' } },
      { keep, trigger: { ...trigger, limit: 0.5 } }, { keep, trigger: { check: 'limit' } },
      { keep, breakpoints: ['m1'] }, { keep, breakpoints: [{ id: 'm1', ttl: '1d' }] },
      { keep, params: { temperature: 0 } }, { keep, params: null }],
  ],
  'admit.params': [
    [{ id: 'm1', message, call: null },
      { id: 'm1', message, call: { name: 'read', arguments: {} } }],
    [{ id: 'm1', message }, { id: 1, message, call: null }],
  ],
  'admit.result': [[{}, { message }], [{ message: 'short' }, { keep: ['m1'] }]],
  'reply.params': [[{ usage, stop_reason: 'tool_use' }], [{ usage }, { usage, stop_reason: 'x' }]],
  'reply.result': [[{}], [null, 'ok', { keep }]],
  'turn_end.params': [[{ usage, stop_reason: 'end_turn' }], [{ stop_reason: 'end_turn' }]],
  'turn_end.result': [[{}], [null, { keep }]],
  'error.params': [
    [{ class: 'server', status: 529, message: 'overloaded', attempt: 1 },
      { class: 'stream', status: 0, message: 'broken off', attempt: 2 }],
    [{ class: 'timeout', status: 0, message: '', attempt: 1 },
      { class: 'server', status: 529, message: 'overloaded', attempt: 0 }],
  ],
  'error.result': [
    [{}, { again: true }, { fail: 'no money' }], [{ again: 'yes' }, { fail: true }, { retry: 1 }],
  ],
  'rewind.params': [[{ to: 'm1' }, { to: null }], [{}, { to: 1 }]],
  'rewind.result': [[{}], [null, { keep }]],
  'shutdown.params': [[{}], [null]],
  'shutdown.result': [[{}], [null]],
  'complete.params': [
    [{ messages: ['m1', { message }] },
      { messages: [{ message }], system: true, tools: true, max_tokens: 9, model: 'summary',
        background: true },
      { messages: ['m1'], tools: [{ name: 'note', input_schema: {} }] },
      { messages: [{ message }], system: 'You sum up.' }, { messages: ['m1'], system: null }],
    [{}, { messages: [] }, { messages: 'hello' }, { messages: ['m1'], system: 1 },
      { messages: ['m1'], model: 'small' }, { messages: ['m1'], tools: null },
      { messages: ['m1'], tools: [] }, { messages: ['m1'], tools: [{ name: 'note' }] },
      { messages: ['m1'], max_tokens: -1 }, { messages: ['m1'], temperature: 0 }],
  ],
  'complete.result': [
    [completion, { task: 0 }, { ...completion, content: [
      { type: 'tool_use', id: 'call_1', name: 'note', input: {} }] }],
    [{}, { ...completion, usage: null }],
  ],
  'complete.error': [
    [{ code: -32000, message: 'slow down', data: { class: 'rate_limited', status: 429 } },
      { code: -32602, message: '`messages` is empty' }],
    [{ code: -32000, message: 'slow down' }, { code: 'x', message: '' }, { code: -32602 }],
  ],
  'collect.params': [
    [{ task: 0 }, { task: 1, wait: true }], [{}, { task: '0' }, { task: 0, ms: 1 }],
  ],
  'collect.result': [[completion, { pending: true }], [{ pending: false }, { task: 0 }]],
  'collect.error': [
    [{ code: -32602, message: 'there is no task 7' }], [{ code: -32000, message: 'x', data: {} }],
  ],
  'count_tokens.params': [
    [{}, null, { messages: ['m1', { message }] }], [{ messages: {} }, { text: 'hello' }],
  ],
  'count_tokens.result': [[{ tokens: 7 }], [{ tokens: 7.5 }, {}]],
  'log.params': [[{ message: 'hello' }], [{}, { message: 1 }, { text: 'hello' }]],
  'log.result': [[{}], [null]],
};

test('every message of the page has its params and its result, and both have examples', () => {
  const methods = read('docs/exec.md').split('\n## ')
    .filter((part) => /^Calls from (ctxbench|the program)/.test(part))
    .flatMap((part) => [...part.split('\n### ')[0].matchAll(/^\| `(\w+)` \|/gm)])
    .map(([, method]) => method);
  assert.equal(methods.length, 12);
  const wanted = methods.flatMap((method) => [`${method}.params`, `${method}.result`]);
  const dotted = Object.keys(schema.$defs).filter((name) => name.includes('.'));
  const errors = dotted.filter((name) => name.endsWith('.error'));
  assert.deepEqual(dotted.toSorted(), [...wanted, ...errors].toSorted());
  assert.deepEqual(Object.keys(examples).toSorted(), dotted.toSorted());
});

for (const [name, [good, bad]] of Object.entries(examples)) {
  test(`examples of ${name}`, () => {
    good.forEach((value) => fits(name, value));
    bad.forEach((value) => refused(name, value));
  });
}

test('lines that are no message are refused', () => {
  const call = { jsonrpc: '2.0', id: 1, method: 'context', params: asked };
  const log = { jsonrpc: '2.0', method: 'log', params: { message: 'hello' } };
  const answer = { jsonrpc: '2.0', id: 1, result: {} };
  const error = { code: -32603, message: 'ValueError: no room' };
  const failure = { jsonrpc: '2.0', id: 1, error };
  const count = { jsonrpc: '2.0', id: 'c1', method: 'count_tokens' };
  [call, log, answer, failure, count].forEach((line) => fits('', line));
  [
    [], 'hello', {}, { ...call, jsonrpc: '1.0' }, { ...call, method: 'admit' },
    { ...call, method: 'keep' }, { ...call, params: undefined }, { ...call, id: undefined },
    { ...log, method: 'complete', params: { messages: ['m1'] } }, { ...answer, result: null },
    { ...answer, error }, { ...answer, id: undefined }, { ...failure, error: 'no room' },
  ].forEach((line) => refused('', JSON.parse(JSON.stringify(line))));
});

/** Fields of the Rust types: by struct, its fields with whether they must be there. */
const rust = read('harness/agents/src/exec/protocol.rs');
const structs = {
  Introduction: 'initialize.result', ErrorAnswer: 'error.result', AdmitAnswer: 'admit.result',
  ContextAnswer: 'context.result', CompactionNote: 'compaction', TriggerNote: 'trigger',
  Breakpoint: 'breakpoint', RequestParams: 'request_params', Complete: 'complete.params',
  Collect: 'collect.params', CountTokens: 'count_tokens.params', LogMessage: 'log.params',
  RpcError: 'error_object', OwnTool: 'own_tool', ContextParams: 'context.params',
};
for (const [name, where] of Object.entries(structs)) {
  test(`fields of ${where} are those of the type ${name}`, () => {
    const [, head, body] = rust.match(
      new RegExp(`((?:#\\[.*\\]\\n)*)pub\\(super\\) struct ${name}(?:<'a>)? \\{\\n([^}]*)\\n\\}`));
    const isRead = head.includes('Deserialize');
    const fields = [...body.matchAll(/((?: +#\[.*\]\n)*) +(?:pub\(super\) )?(\w+): (.*),/g)];
    const may = ([, attributes, , type]) =>
      /serde\((default|.*skip_serializing_if)/.test(attributes)
      || (isRead && type.startsWith('Option<'));
    const object = where.split('/').reduce((at, key) => at[key], schema.$defs);
    const names = (list) => list.map(([, , field]) => field).toSorted();
    assert.deepEqual(Object.keys(object.properties).toSorted(), names(fields));
    assert.deepEqual((object.required ?? []).toSorted(), names(fields.filter((f) => !may(f))));
    assert.equal(object.additionalProperties === false, head.includes('deny_unknown_fields'));
  });
}

test('words are those of the Rust types', () => {
  const { $defs } = schema;
  const words = {
    Moment: $defs['initialize.result'].properties.moments.items.enum,
    Reason: $defs['context.params'].properties.reason.enum,
    Scope: $defs['context.result'].properties.scope.enum,
    ModelChoice: $defs['complete.params'].properties.model.enum,
  };
  for (const [name, list] of Object.entries(words)) {
    const [, body] = rust.match(new RegExp(`enum ${name} \\{\\n([^}]*)\\}`));
    const variants = [...body.matchAll(/^ +(\w+),/gm)].map(([, variant]) =>
      variant.replace(/\B[A-Z]/g, '_$&').toLowerCase());
    assert.deepEqual(list, variants, name);
  }
});

// The messages of python/examples/summarise.py on the scenario window-8k, with their sender.
const recorded = () => read('tests/data/exec/transcript.jsonl').trimEnd().split('\n')
  .map((line) => JSON.parse(line));

test('a recorded run says what the schema describes, and nothing else', () => {
  const lines = recorded();
  assert.deepEqual(problems(lines), []);
  const methods = new Set(lines.map(({ line }) => line.method));
  ['initialize', 'context', 'complete', 'count_tokens', 'log', 'shutdown'].forEach((method) =>
    assert.ok(methods.has(method), method));
  assert.ok(lines.some(({ line }) => line.result?.compaction), 'a compaction');
  assert.ok(JSON.stringify(lines).length < 60_000);
});

test('broken variants of its lines are refused', () => {
  const lines = recorded();
  const broken = (at, change) => {
    const copy = structuredClone(lines);
    change(copy[at].line, copy[at]);
    const found = problems(copy);
    assert.notDeepEqual(found, [], JSON.stringify(copy[at]).slice(0, 200));
  };
  lines.forEach(({ line }, at) => {
    broken(at, (one) => delete one.jsonrpc);
    broken(at, (one) => (one.more = 1));
    const part = ['params', 'result'].find((key) => key in line);
    broken(at, (one) => delete one[part]);
    broken(at, (one) => (one[part] = [one[part]]));
    // A function is of none of JSON's types.
    for (const key of Object.keys(line[part])) broken(at, (one) => (one[part][key] = () => 1));
    if (!line.method) broken(at, (one) => (one.id += 1000));
  });
});
