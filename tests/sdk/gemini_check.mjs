// Google's official SDK for TypeScript and JavaScript, unmodified, against `ctxbench serve`.
// Usage: gemini_check.mjs http://127.0.0.1:PORT FOLDER_WITH_NODE_MODULES
import { randomUUID } from 'node:crypto';
import { all, assert, base, fault, load, raises, run } from './check.mjs';

const { ApiError, GoogleGenAI } = load('@google/genai');
const client = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: base } });
const model = 'gemini-3.5-flash';
const parametersJsonSchema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const tools = [{ functionDeclarations: [{ name: 'read_file', description: 'Reads a file', parametersJsonSchema }] }];
const ARGUMENTS = { path: 'a b.txt', lines: [1, 2.5] };
const CALL = `Please do this:\ncall read_file ${JSON.stringify(ARGUMENTS)}`;
const SENTENCE = 'Count the words of this rather long sentence, piece by piece, as they come in.';

const user = (...parts) => ({ role: 'user', parts });
const ask = (contents, config = {}, more = {}) => client.models.generateContent({ model, contents, config, ...more });
const stream = (contents, config = {}) => client.models.generateContentStream({ model, contents, config });

async function plain() {
  const r = await ask('Hello there');
  assert.equal(r.text, 'You said: Hello there');
  assert.equal(r.candidates[0].finishReason, 'STOP');
  assert.equal(r.modelVersion, model);
  assert.equal(r.usageMetadata.promptTokenCount, 6);
}

async function streaming() {
  const chunks = await all(await stream(SENTENCE));
  assert.ok(chunks.length > 2);
  assert.equal(chunks.map((c) => c.text).join(''), `You said: ${SENTENCE}`);
  assert.equal(chunks.at(-1).candidates[0].finishReason, 'STOP');
  assert.deepEqual({ ...chunks.at(-1).usageMetadata }, { ...(await ask(SENTENCE)).usageMetadata });
}

async function toolsRoundTrip() {
  const first = await ask(CALL, { tools });
  const [call] = first.functionCalls;
  assert.deepEqual([call.name, call.args], ['read_file', ARGUMENTS]);
  const streamed = (await all(await stream(CALL, { tools }))).flatMap((c) => c.functionCalls ?? []);
  assert.deepEqual(streamed.map((c) => c.args), [ARGUMENTS]);
  const talk = [user({ text: CALL }), first.candidates[0].content];
  for (const id of [call.id, undefined]) {
    const result = user({ functionResponse: { id, name: call.name, response: { output: 'first line' } } });
    assert.match((await ask([...talk, result], { tools })).text, new RegExp(`${call.id} returned: first line`));
  }
  const error = await raises(ApiError, () => ask(talk, { tools }));
  assert.equal(error.status, 400);
  assert.match(error.message, /INVALID_ARGUMENT/);
}

async function chat() {
  const talk = client.chats.create({ model });
  assert.equal((await talk.sendMessage({ message: 'One' })).text, 'You said: One');
  const chunks = await all(await talk.sendMessageStream({ message: 'Two' }));
  assert.equal(chunks.map((c) => c.text).join(''), 'You said: Two');
  assert.equal(talk.getHistory()[0].parts[0].text, 'One');
}

async function thoughts() {
  const config = { thinkingConfig: { includeThoughts: true } };
  const r = await ask('Think first', config);
  const [thought, said] = r.candidates[0].content.parts;
  assert.ok(thought.thought && thought.text && said.thoughtSignature);
  assert.ok(r.usageMetadata.thoughtsTokenCount > 0);
  assert.equal((await ask([user({ text: 'Think first' }), r.candidates[0].content, user({ text: 'On' })])).text, 'You said: On');
}

async function count() {
  assert.equal((await client.models.countTokens({ model, contents: 'Hello there' })).totalTokens, 6);
}

async function implicitCache() {
  const systemInstruction = `Session ${randomUUID()}. ` + 'A rule that always holds, whatever else may happen. '.repeat(500);
  const first = (await ask('Hello', { systemInstruction })).usageMetadata;
  const second = (await ask('Hello again', { systemInstruction })).usageMetadata;
  assert.equal(first.cachedContentTokenCount, undefined);
  assert.ok(second.cachedContentTokenCount > 4096, `${second.cachedContentTokenCount}`);
}

async function models() {
  const names = (await all(await client.models.list())).map((m) => m.name);
  assert.ok(names.includes(`models/${model}`), names.join());
  assert.equal((await client.models.get({ model })).inputTokenLimit, 1_048_576);
}

async function overflow() {
  const error = await raises(ApiError, () => ask('word '.repeat(1_100_000)));
  assert.equal(error.status, 400);
  assert.match(error.message, /exceeds the maximum number of tokens allowed/);
}

async function errors() {
  const missing = await raises(ApiError, () => ask('x', {}, { model: 'gemini-none' }));
  assert.equal(missing.status, 404);
  for (const [words, status, word] of [['429;retry-after=7', 429, /RetryInfo.*7s/], ['500', 500, /INTERNAL/], ['503', 503, /UNAVAILABLE/]]) {
    const error = await raises(ApiError, () => ask('x', { httpOptions: fault(words) }));
    assert.equal(error.status, status);
    assert.match(error.message, word);
  }
}

async function cutStream() {
  const cut = await stream(SENTENCE, { httpOptions: fault('cut=2') });
  await assert.rejects(() => all(cut));
}

await run([plain, streaming, toolsRoundTrip, chat, thoughts, count, implicitCache, models, overflow, errors, cutStream]);
