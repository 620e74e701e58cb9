// The official OpenAI SDK for TypeScript and JavaScript, unmodified, against `ctxbench serve`.
// Usage: openai_check.mjs http://127.0.0.1:PORT FOLDER_WITH_NODE_MODULES
import { randomUUID } from 'node:crypto';
import { all, assert, base, fault, load, raises, run } from './check.mjs';

const OpenAI = load('openai').default;
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none', maxRetries: 0 });
const model = 'gpt-5.5';
const parameters = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const tools = [{ type: 'function', name: 'read_file', description: 'Reads a file', parameters, strict: false }];
const chatTools = [{ type: 'function', function: { name: 'read_file', description: 'Reads a file', parameters } }];
const ARGUMENTS = '{"path": "a b.txt", "lines": [1, 2.50]}';
const CALL = `Please do this:\ncall read_file ${ARGUMENTS}`;
const SENTENCE = 'Count the words of this rather long sentence, piece by piece, as they come in.';

const user = (content) => ({ role: 'user', content });
const ask = (input, more = {}, request) => client.responses.create({ model, input, ...more }, request);
const chat = (text, more = {}, request) => client.chat.completions.create({ model, messages: [user(text)], ...more }, request);

/** What a response says, without ids of calls and items, which are new in each. */
function output(response) {
  const items = JSON.parse(JSON.stringify(response.output));
  for (const item of items) {
    for (const key of ['id', 'call_id', 'parsed_arguments']) delete item[key];
    for (const part of item.content ?? []) delete part.parsed;
  }
  return items;
}

async function responsesPlain() {
  const r = await ask('Hello there');
  assert.equal(r.output_text, 'You said: Hello there');
  assert.equal(r.status, 'completed');
  assert.equal(r.usage.input_tokens, 6);
  assert.match(r._request_id, /^req_/);
}

async function responsesStreaming() {
  const whole = await ask(SENTENCE);
  const stream = client.responses.stream({ model, input: SENTENCE });
  const pieces = [];
  stream.on('response.output_text.delta', (e) => pieces.push(e.delta));
  const final = await stream.finalResponse();
  assert.ok(pieces.length > 2);
  assert.equal(pieces.join(''), whole.output_text);
  assert.deepEqual(output(final), output(whole));
  assert.deepEqual(final.usage, whole.usage);
}

async function responsesToolsRoundTrip() {
  const first = await ask(CALL, { tools });
  const call = first.output.at(-1);
  assert.equal(call.arguments, ARGUMENTS);
  const streamed = await client.responses.stream({ model, input: CALL, tools }).finalResponse();
  assert.deepEqual(output(streamed), output(first));
  const talk = [user(CALL), ...first.output];
  const second = await ask([...talk, { type: 'function_call_output', call_id: call.call_id, output: 'first line' }], { tools });
  assert.match(second.output_text, /first line/);
  assert.match((await raises(OpenAI.BadRequestError, () => ask(talk, { tools }))).message, new RegExp(call.call_id));
}

async function responsesReasoning() {
  const more = { reasoning: { effort: 'low', summary: 'auto' } };
  const whole = await ask('Think first', more);
  assert.deepEqual(whole.output.map((i) => i.type), ['reasoning', 'message']);
  const streamed = await client.responses.stream({ model, input: 'Think first', ...more }).finalResponse();
  assert.deepEqual(output(streamed), output(whole));
}

async function cacheOverTwoCalls() {
  const instructions = `Session ${randomUUID()}. ` + 'A rule that always holds, whatever else may happen. '.repeat(300);
  const first = (await ask('Hello', { instructions })).usage;
  const second = (await ask('Hello', { instructions })).usage;
  assert.equal(first.input_tokens_details.cached_tokens, 0);
  const cached = second.input_tokens_details.cached_tokens;
  assert.ok(cached % 128 === 0 && cached > second.input_tokens - 128, `${cached} of ${second.input_tokens}`);
}

async function compactEndpoint() {
  const talk = [user('The port is 8443. Remember it.'), { role: 'assistant', content: 'I will.' }, user('And the host is db-7.')];
  const compacted = await client.responses.compact({ model, input: talk });
  assert.equal(compacted.object, 'response.compaction');
  assert.deepEqual(compacted.output.map((i) => i.type), ['message', 'message', 'compaction']);
  const reply = await ask([...compacted.output, user('Which port?')]);
  assert.equal(reply.output_text, 'You said: Which port?');
}

async function compactionAtTheThreshold() {
  const input = [user('The parser reads one line after the other. '.repeat(200)), user('Go on')];
  const more = { context_management: [{ type: 'compaction', compact_threshold: 1_000 }] };
  const whole = await ask(input, more);
  assert.deepEqual(whole.output.map((i) => i.type), ['compaction', 'message']);
  const events = await all(await ask(input, { ...more, stream: true }));
  assert.equal(events.at(-1).type, 'response.completed');
  assert.deepEqual(output(events.at(-1).response), output(whole));
}

async function chatPlainAndStreaming() {
  const whole = await chat(SENTENCE);
  assert.equal(whole.choices[0].message.content, `You said: ${SENTENCE}`);
  const stream = client.chat.completions.stream({ model, messages: [user(SENTENCE)], stream_options: { include_usage: true } });
  const pieces = [];
  stream.on('content', (t) => pieces.push(t));
  const final = await stream.finalChatCompletion();
  assert.ok(pieces.length > 2);
  assert.equal(final.choices[0].message.content, whole.choices[0].message.content);
  assert.deepEqual(await stream.totalUsage().then((u) => u.prompt_tokens), whole.usage.prompt_tokens);
  const chunks = await all(await chat(SENTENCE, { stream: true, stream_options: { include_usage: true } }));
  assert.deepEqual(chunks.at(-1).usage, whole.usage);
}

async function chatToolsRoundTrip() {
  const first = await chat(CALL, { tools: chatTools });
  assert.equal(first.choices[0].finish_reason, 'tool_calls');
  const message = first.choices[0].message;
  assert.equal(message.tool_calls[0].function.arguments, ARGUMENTS);
  const streamed = await client.chat.completions.stream({ model, messages: [user(CALL)], tools: chatTools }).finalChatCompletion();
  assert.equal(streamed.choices[0].message.tool_calls[0].function.arguments, ARGUMENTS);
  const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'first line' };
  const second = await client.chat.completions.create({ model, tools: chatTools, messages: [user(CALL), message, result] });
  assert.match(second.choices[0].message.content, /first line/);
}

async function overflow() {
  for (const call of [ask, chat]) {
    const error = await raises(OpenAI.BadRequestError, () => call('word '.repeat(1_000_000)));
    assert.equal(error.code, 'context_length_exceeded');
  }
}

async function errors() {
  assert.equal((await raises(OpenAI.NotFoundError, () => ask('x', { model: 'gpt-none' }))).code, 'model_not_found');
  await raises(OpenAI.InternalServerError, () => chat('x', {}, fault('500')));
  await raises(OpenAI.APIConnectionTimeoutError, () => ask('x', {}, { ...fault('slow=3000'), timeout: 300 }));
  assert.ok((await client.models.list()).data.some((m) => m.id === model));
}

async function retriedByTheSdk() {
  const error = await raises(OpenAI.RateLimitError, () => ask('x', {}, fault('429;retry-after=7')));
  assert.equal(error.headers.get('retry-after'), '7');
  const once = fault(`429;retry-after=1;times=1;id=${randomUUID()}`);
  assert.equal((await ask('Again', {}, { ...once, maxRetries: 2 })).output_text, 'You said: Again');
}

async function cutStream() {
  for (const call of [ask, chat]) {
    const stream = await call('Hello there, this is cut', { stream: true }, fault('cut=2'));
    await assert.rejects(() => all(stream));
  }
}

await run([
  responsesPlain, responsesStreaming, responsesToolsRoundTrip, responsesReasoning, cacheOverTwoCalls, compactEndpoint,
  compactionAtTheThreshold, chatPlainAndStreaming, chatToolsRoundTrip, overflow, errors, retriedByTheSdk, cutStream,
]);
