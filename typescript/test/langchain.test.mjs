import assert from 'node:assert/strict';
import { test } from 'node:test';
import { USAGE, calls, result, says, start, user } from './harness.mjs';

const langchain = await import('langchain').catch(() => undefined);
const adapter = langchain && await import('../dist/adapters/langchain.js');
const options = { skip: langchain ? false : 'LangChain is not installed (npm install langchain)' };
if (options.skip) console.log(`skipped: ${options.skip}`);

const long = 'x'.repeat(600); // 150 tokens, as the library counts
const answer = (text) => () => ({
  content: [{ type: 'text', text }], usage: USAGE, stop_reason: 'end_turn',
});
const begin = (kind, settings, more) => start(new adapter.LangChain(kind), { settings, ...more });

test('a summary takes the place of what is older, from now on', options, async () => {
  const settings = { 'trigger.tokens': 150, 'keep.messages': 2, model: 'summary' };
  const harness = await begin('summarization', { ...settings, summaryPrefix: 'So far:' });
  assert.equal(harness.started.name, 'langchain-js summarization');
  assert.match(harness.started.version, /^1\.\d+\.\d+/);
  harness.answers.complete = answer('they read a');
  assert.deepEqual(await harness.context([user('go')]), { unchanged: true });
  const list = [calls('a'), result('a', long), says('ok'), user('next')];
  assert.deepEqual(await harness.context(list), {
    keep: [{ message: user('So far:\n\nthey read a') }, 'm4', 'm5'], scope: 'state',
  });
  const [{ params }] = harness.asked;
  assert.equal(params.model, 'summary');
  assert.equal(params.messages.length, 1);
  assert.match(params.messages[0].message.content, /x{600}/);
  assert.deepEqual(await harness.context([says('fine')], { new_ids: ['n1'] }), { unchanged: true });
});

test('fractions are of the window of the run', options, async () => {
  const model = { id: 'm', provider: 'p', window: 1000, max_output: 100 };
  const settings = { 'trigger.fraction': 0.2, 'keep.messages': 1 };
  const harness = await begin('summarization', settings, { model });
  harness.answers.complete = answer('s');
  assert.deepEqual(await harness.context([user(long)]), { unchanged: true });
  assert.equal((await harness.context([says(long)])).keep.at(-1), 'm2');
});

test('the 4000 tokens that a summary may read are multiplied by the scale', options, async () => {
  const settings = { 'trigger.tokens': 200, 'keep.messages': 1 };
  const harness = await begin('summarization', settings, { scale: 0.05 });
  harness.answers.complete = answer('s');
  await harness.context([user('first'), says(long), user(long), says('last')]);
  const [{ params }] = harness.asked;
  const asked = params.messages[0].message.content;
  assert.ok(asked.includes(long) && !asked.includes('first'));
});

test('without a trigger the adapter says so instead of doing nothing', options, async () => {
  await assert.rejects(begin('summarization', {}), { code: -32603, message: /trigger\.tokens/ });
  assert.throws(() => new adapter.LangChain('magic'), /summarization, context-editing/);
});

test('old results are cleared, and the default trigger is multiplied by the scale', options,
  async () => {
    const settings = { 'keep.messages': 1, clearToolInputs: true };
    const harness = await begin('context-editing', settings, { scale: 0.001 });
    const list = [user('go'), calls('a', 'read', { p: 1 }), result('a', 'x'.repeat(300)),
      calls('b', 'read', { p: 2 })];
    assert.deepEqual(await harness.context(list), { unchanged: true });
    const { keep } = await harness.context([result('b', 'y')]);
    assert.deepEqual(keep, [
      'm1',
      { id: 'm2', message: calls('a', 'read', {}) },
      { id: 'm3', message: result('a', '[cleared]') },
      'm4', 'm5',
    ]);
  });

test('excluded tools are left alone', options, async () => {
  const settings = { 'trigger.tokens': 10, 'keep.messages': 0, excludeTools: 'grep read' };
  const harness = await begin('context-editing', settings);
  const list = [user('go'), calls('a', 'read'), result('a', long), calls('b', 'ls'),
    result('b', 'y')];
  assert.deepEqual((await harness.context(list)).keep.at(-1), {
    id: 'm5', message: result('b', '[cleared]'),
  });
});

test('the text of a free-form call is its input', options, async () => {
  const patch = calls('a', 'apply_patch');
  patch.tool_calls[0].function.arguments = '*** Begin Patch';
  const harness = await begin('context-editing', { 'keep.messages': 0 }, { scale: 0.001 });
  const list = [user('go'), patch, result('a', 'x'.repeat(500)), says('done')];
  const { keep } = await harness.context(list);
  assert.deepEqual(keep, ['m1', 'm2', { id: 'm3', message: result('a', '[cleared]') }, 'm4']);
});

// What the documentation says otherwise than the library does.

test('context editing changes the state, not only what the model sees', options, async () => {
  // https://docs.langchain.com/oss/javascript/langchain/context-engineering: what goes into a model
  // call is transient, "without changing what's saved in state".
  const { FakeListChatModel } = await import('@langchain/core/utils/testing');
  const edit = new langchain.ClearToolUsesEdit({ trigger: { tokens: 150 }, keep: { messages: 0 } });
  const model = new FakeListChatModel({ responses: ['done'] });
  model.bindTools = () => model;
  const middleware = [langchain.contextEditingMiddleware({ edits: [edit] })];
  const agent = langchain.createAgent({ model, tools: [], middleware });
  const call = { id: 'a', name: 'read', args: {} };
  const { messages } = await agent.invoke({
    messages: [
      new langchain.HumanMessage('go'),
      new langchain.AIMessage({ content: '', tool_calls: [call] }),
      new langchain.ToolMessage({ tool_call_id: 'a', content: long }),
    ],
  });
  assert.equal(messages[2].content, '[cleared]');
});

// https://docs.langchain.com/oss/javascript/langchain/middleware/built-in#context-editing
test('the documented way to configure ClearToolUsesEdit throws', options, () => {
  assert.throws(() => new langchain.ClearToolUsesEdit({ triggerTokens: 100_000, keep: 3 }), /object/);
});

test('results that "will never be cleared" are cleared, the newest first', options, async () => {
  const settings = { 'trigger.tokens': 150, 'keep.messages': 2, clearAtLeast: 100 };
  const harness = await begin('context-editing', settings);
  const list = [user('go'), calls('a'), result('a', 'old'), calls('b'), result('b', long)];
  assert.deepEqual(await harness.context(list), { unchanged: true });
  const { keep } = await harness.context([calls('c'), result('c', long)]);
  assert.deepEqual(keep.slice(-1), [{ id: 'm7', message: result('c', '[cleared]') }]);
  assert.deepEqual(keep[4], 'm5');
});

test('the summary of a failed call is its error, and what it covers is gone', options, async () => {
  // https://docs.langchain.com/oss/javascript/langchain/middleware/built-in#summarization:
  // "preserving recent messages while compressing older context".
  const harness = await begin('summarization', { 'trigger.tokens': 150, 'keep.messages': 1 });
  const data = { class: 'rate_limited', status: 429 };
  harness.answers.complete = () => ({ error: { code: -32000, message: 'slow down', data } });
  const { keep } = await harness.context([user('the task'), says(long), user('next')]);
  assert.equal(keep.length, 2);
  assert.match(keep[0].message.content, /Error generating summary: .*slow down/);
});

test('shell text in the conversation rewrites the prompt of the summary', options, async () => {
  // The same page, summaryPrompt: `{messages}` is "where conversation history will be inserted". It
  // is inserted by String.replace, for which $' and $& in the history have a meaning of their own.
  const summaryPrompt = 'BEFORE {messages} AFTER';
  const settings = { 'trigger.tokens': 150, 'keep.messages': 1, summaryPrompt };
  const harness = await begin('summarization', settings);
  harness.answers.complete = answer('s');
  await harness.context([user("IFS=$'\\n'"), says(`cost: $& ${long}`), user('next')]);
  const asked = harness.asked[0].params.messages[0].message.content;
  assert.match(asked, /IFS= AFTER\\n'/);
  assert.match(asked, /cost: \{messages\}/);
});

test('a fraction of a window that is not known is a fraction of 4097 tokens', options, async () => {
  // The same page, tip on fraction: it relies on profile data; "if data are not available, use
  // another condition". The library does not refuse, if the model has a name.
  const { FakeListChatModel } = await import('@langchain/core/utils/testing');
  const fake = new FakeListChatModel({ responses: ['s'] });
  const model = Object.assign(fake, { model: 'brand-new-1' });
  const { beforeModel } = langchain.summarizationMiddleware({
    model, trigger: { fraction: 0.5 }, keep: { messages: 1 },
  });
  const of = async (tokens) => {
    const human = new langchain.HumanMessage('x'.repeat(tokens * 4));
    return beforeModel({ messages: [human, new langchain.AIMessage('')] }, { context: {} });
  };
  assert.equal(await of(2047), undefined);
  assert.equal((await of(2048)).messages.length, 3);
});
