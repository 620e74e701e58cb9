// The official Anthropic SDK for TypeScript and JavaScript, unmodified, against `ctxbench serve`.
// Usage: anthropic_check.mjs http://127.0.0.1:PORT FOLDER_WITH_NODE_MODULES
import { randomUUID } from 'node:crypto';
import { all, assert, base, fault, load, raises, run } from './check.mjs';

const Anthropic = load('@anthropic-ai/sdk').default;
const options = { baseURL: base, apiKey: 'none', maxRetries: 0 };
const client = new Anthropic(options);
const model = 'claude-sonnet-4-6';
const tools = [{
  name: 'read_file',
  description: 'Reads a file',
  input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
}];
const CALL = 'Please do this:\ncall read_file {"path": "a b.txt", "lines": [1, 2.50]}';
const LONG = 'The parser of the archive reads one line after the other. '.repeat(6_000);

const user = (content) => ({ role: 'user', content });
const params = (text, more = {}) => ({ model, max_tokens: 500, messages: [user(text)], ...more });
const ask = (text, more, request) => client.messages.create(params(text, more), request);

/** What a reply says, without what is new in each: ids, and what the cache did. */
function said(reply) {
  const { content, stop_reason, model, role, type } = JSON.parse(JSON.stringify(reply));
  for (const block of content) if (block.type === 'tool_use') delete block.id;
  return { content, stop_reason, model, role, type };
}

async function plain() {
  const reply = await ask('Hello there');
  assert.equal(reply.stop_reason, 'end_turn');
  assert.equal(reply.content[0].text, 'You said: Hello there');
  // "Hello there" is two tokens of o200k, 1.17 each; a block costs 34 more.
  assert.equal(reply.usage.input_tokens, 36);
  assert.match(reply._request_id, /^req_/);
}

async function streaming() {
  const text = 'Count the words of this rather long sentence, piece by piece, as they come in.';
  const stream = client.messages.stream(params(text));
  const pieces = [];
  stream.on('text', (t) => pieces.push(t));
  const final = await stream.finalMessage();
  assert.ok(pieces.length > 2);
  assert.equal(pieces.join(''), `You said: ${text}`);
  const whole = await ask(text);
  assert.deepEqual(said(final), said(whole));
  assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
  const events = await all(await client.messages.create(params(text, { stream: true })));
  assert.equal(events[0].type, 'message_start');
  assert.equal(events.at(-1).type, 'message_stop');
}

async function toolsRoundTrip() {
  const first = await ask(CALL, { tools });
  assert.equal(first.stop_reason, 'tool_use');
  const call = first.content.at(-1);
  assert.deepEqual([call.type, call.name, call.input], ['tool_use', 'read_file', { path: 'a b.txt', lines: [1, 2.5] }]);
  const streamed = await client.messages.stream(params(CALL, { tools })).finalMessage();
  assert.deepEqual(said(streamed), said(first));
  const talk = [user(CALL), { role: 'assistant', content: first.content }];
  const result = user([{ type: 'tool_result', tool_use_id: call.id, content: 'first line' }]);
  const second = await client.messages.create({ model, max_tokens: 500, tools, messages: [...talk, result] });
  assert.match(second.content[0].text, /first line/);
  const lone = () => client.messages.create({ model, max_tokens: 9, tools, messages: [...talk, user('x')] });
  assert.match((await raises(Anthropic.BadRequestError, lone)).message, new RegExp(call.id));
}

async function thinking() {
  const more = { max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } };
  const whole = await ask('Think first', more);
  assert.deepEqual(whole.content.map((b) => b.type), ['thinking', 'text']);
  assert.ok(whole.content[0].signature);
  const streamed = await client.messages.stream(params('Think first', more)).finalMessage();
  assert.deepEqual(said(streamed), said(whole));
}

async function cacheOverTwoCalls() {
  const text = `Session ${randomUUID()}. ` + 'A rule that always holds, whatever else may happen. '.repeat(300);
  const system = [{ type: 'text', text, cache_control: { type: 'ephemeral' } }];
  const first = (await ask('Hello', { system })).usage;
  const second = (await ask('Hello', { system })).usage;
  assert.ok(first.cache_creation_input_tokens > 1024);
  assert.equal(first.cache_read_input_tokens, 0);
  assert.equal(second.cache_read_input_tokens, first.cache_creation_input_tokens);
  assert.equal(second.cache_creation_input_tokens, 0);
}

async function contextEditing() {
  const messages = [user('Read the files')];
  for (let i = 0; i < 5; i++) {
    messages.push({ role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${i}`, name: 'read_file', input: { path: `file ${i}` } }] });
    messages.push(user([{ type: 'tool_result', tool_use_id: `toolu_${i}`, content: `line of file ${i}\n`.repeat(100) }]));
  }
  const edit = {
    type: 'clear_tool_uses_20250919',
    trigger: { type: 'tool_uses', value: 3 },
    keep: { type: 'tool_uses', value: 2 },
  };
  const more = { model, messages, tools, betas: ['context-management-2025-06-27'], context_management: { edits: [edit] } };
  const reply = await client.beta.messages.create({ ...more, max_tokens: 500 });
  const [applied] = reply.context_management.applied_edits;
  assert.equal(applied.cleared_tool_uses, 3);
  const streamed = await client.beta.messages.stream({ ...more, max_tokens: 500 }).finalMessage();
  assert.deepEqual(streamed.context_management, reply.context_management);
  const count = await client.beta.messages.countTokens(more);
  assert.equal(count.context_management.original_input_tokens - count.input_tokens, applied.cleared_input_tokens);
}

function compaction(pause) {
  const edit = { type: 'compact_20260112', trigger: { type: 'input_tokens', value: 50_000 }, pause_after_compaction: pause };
  const messages = [user(LONG), { role: 'assistant', content: 'Read.' }, user('Go on')];
  return { model, max_tokens: 500, messages, betas: ['compact-2026-01-12'], context_management: { edits: [edit] } };
}

async function compactionWithPause() {
  const more = compaction(true);
  const paused = await client.beta.messages.stream(more).finalMessage();
  assert.equal(paused.stop_reason, 'compaction');
  assert.equal(paused.content.length, 1);
  assert.ok(paused.content[0].content);
  assert.deepEqual(paused.usage.iterations.map((i) => i.type), ['compaction']);
  const messages = [...more.messages.slice(0, -1), { role: 'assistant', content: paused.content }, user('Go on')];
  const reply = await client.beta.messages.create({ ...more, messages });
  assert.equal(reply.content[0].text, 'You said: Go on');
  assert.ok(reply.usage.input_tokens < 6_000);
}

async function compactionAtTheThreshold() {
  const whole = await client.beta.messages.create(compaction(false));
  assert.deepEqual(whole.content.map((b) => b.type), ['compaction', 'text']);
  assert.deepEqual(whole.usage.iterations.map((i) => i.type), ['compaction', 'message']);
  const streamed = await client.beta.messages.stream(compaction(false)).finalMessage();
  assert.deepEqual(said(streamed), said(whole));
  assert.equal(streamed.usage.iterations.length, 2);
}

async function compactionOnDemand() {
  const more = { model, max_tokens: 4096, betas: ['compact-2026-09-04'] };
  const talk = [user('The port is 8443. Remember it.'), { role: 'assistant', content: 'I will.' }, user('And the host is db-7.')];
  const reply = await client.beta.messages.create({ ...more, messages: talk, compaction: { type: 'summarize' } });
  assert.deepEqual([reply.stop_reason, reply.content.map((b) => b.type)], ['compaction', ['compaction']]);
  const block = { role: 'assistant', content: reply.content };
  const after = await client.beta.messages.create({ ...more, messages: [block, user('Which port?')] });
  assert.equal(after.content[0].text, 'You said: Which port?');
  // The SDK has a class of its own for each code of a compaction.
  const misplaced = () => client.beta.messages.create({ ...more, messages: [user('x'), block, user('y')] });
  assert.ok((await raises({ name: 'CompactionBlockMisplacedError' }, misplaced)) instanceof Anthropic.BadRequestError);
}

async function counting() {
  assert.equal((await client.messages.countTokens({ model, messages: [user('Hello there')] })).input_tokens, 36);
}

async function overflow() {
  const error = await raises(Anthropic.BadRequestError, () => ask('word '.repeat(210_000)));
  assert.equal(error.error.error.type, 'invalid_request_error');
  assert.match(error.message, /prompt is too long: \d+ tokens > 200000 maximum/);
}

async function errors() {
  const error = await raises(Anthropic.NotFoundError, () => ask('x', { model: 'claude-none' }));
  assert.equal(error.error.error.type, 'not_found_error');
  await raises(Anthropic.InternalServerError, () => ask('x', {}, fault('500')));
  await raises(Anthropic.APIConnectionTimeoutError, () => ask('x', {}, { ...fault('slow=3000'), timeout: 300 }));
  const models = await client.models.list();
  assert.ok(models.data.some((m) => m.id === model));
}

async function retriedByTheSdk() {
  const error = await raises(Anthropic.RateLimitError, () => ask('x', {}, fault('429;retry-after=7')));
  assert.equal(error.headers.get('retry-after'), '7');
  const begin = Date.now();
  const once = fault(`429;retry-after=1;times=1;id=${randomUUID()}`);
  const reply = await ask('Again', {}, { ...once, maxRetries: 2 });
  assert.equal(reply.content[0].text, 'You said: Again');
  assert.ok(Date.now() - begin >= 900, 'the SDK waited as long as it was told');
}

async function cutStream() {
  const stream = client.messages.stream(params('Hello'), fault('cut=4'));
  await assert.rejects(() => stream.finalMessage(), (e) => !(e instanceof Anthropic.BadRequestError));
}

await run([
  plain, streaming, toolsRoundTrip, thinking, cacheOverTwoCalls, contextEditing, compactionWithPause, compactionAtTheThreshold,
  compactionOnDemand, counting, overflow, errors, retriedByTheSdk, cutStream,
]);
