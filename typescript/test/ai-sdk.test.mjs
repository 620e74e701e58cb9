import assert from 'node:assert/strict';
import { test } from 'node:test';
import { USAGE, start } from './harness.mjs';

const ai = await import('ai').catch(() => undefined);
const adapter = ai && await import('../dist/adapters/ai-sdk.js');
const options = { skip: ai ? false : 'the AI SDK is not installed (npm install ai)' };
if (options.skip) console.log(`skipped: ${options.skip}`);

const user = (content) => ({ role: 'user', content });
const calls = (...ids) => ({
  role: 'assistant',
  content: ids.map((id) => ({ type: 'tool_use', id, name: `tool-${id}`, input: { p: id } })),
});
const says = (text, ...rest) => ({ role: 'assistant', content: [{ type: 'text', text }, ...rest] });
const thinks = (thinking, ...rest) => ({
  role: 'assistant', content: [{ type: 'thinking', thinking, signature: 's' }, ...rest],
});
const results = (...ids) => ({
  role: 'user',
  content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: `result ${id}` })),
});
const prune = (settings) => start(new adapter.AiSdk('prune'), { settings });

test('pruneMessages with its own parameters', options, async () => {
  const harness = await prune({ toolCalls: 'before-last-2-messages' });
  assert.equal(harness.started.name, 'ai-sdk prune');
  assert.match(harness.started.version, /^\d+\.\d+\.\d+/);
  assert.deepEqual(harness.started.moments, ['reply']);
  const [call] = calls('a').content;
  const list = [user('go'), says('look', call), results('a'), calls('b'), results('b')];
  assert.deepEqual(await harness.context(list, { reason: 'turn' }), {
    keep: ['m1', { id: 'm2', message: says('look') }, 'm4', 'm5'],
    scope: 'request',
  });
});

test('results of one batch are one message to the library, and stay messages of ours', options,
  async () => {
    const harness = await prune({ toolCalls: 'before-last-message' });
    const list = [user('go'), calls('a', 'b'), results('a'), results('b')];
    assert.deepEqual(await harness.context(list, { reason: 'turn' }), { unchanged: true });
    const shown = await harness.context([calls('c'), results('c')]);
    assert.deepEqual(shown.keep, ['m1', 'm5', 'm6']);
  });

test('tools are pruned by name', options, async () => {
  const harness = await prune({ toolCalls: 'all', tools: 'tool-a tool-c' });
  const list = [user('go'), calls('a'), results('a'), calls('b'), results('b')];
  assert.deepEqual((await harness.context(list, { reason: 'turn' })).keep, ['m1', 'm4', 'm5']);
});

test('without parameters nothing is pruned', options, async () => {
  const harness = await prune({});
  const list = [user('go'), thinks('hm', ...calls('a').content), results('a'), says('done')];
  assert.deepEqual(await harness.context(list, { reason: 'turn' }), { unchanged: true });
});

test('what prepareStep returns is the base of later steps of the turn', options, async () => {
  const file = new URL('../examples/prepare-step.mjs', import.meta.url).pathname;
  const strategy = new adapter.AiSdk('prepare-step', file);
  const harness = await start(strategy, { settings: { limit: 100 } });
  const usage = (input_tokens) => ({ usage: { ...USAGE, input_tokens }, stop_reason: 'tool_use' });
  const list = ['a', 'b', 'c', 'd'].flatMap((id) => [calls(id), results(id)]);
  assert.deepEqual(await harness.context([user('go')], { reason: 'turn' }), { unchanged: true });
  await harness.call('reply', usage(100));
  const pruned = ['m1', 'm4', 'm5', 'm6', 'm7', 'm8', 'm9'];
  assert.deepEqual((await harness.context(list)).keep, pruned);
  await harness.call('reply', usage(99));
  assert.deepEqual((await harness.context([says('so')])).keep, [...pruned, 'm10']);
  const next = await harness.context([user('next')], { reason: 'turn' });
  assert.equal(next.keep?.[1], 'm6', 'the new turn sees all again, 400 characters and more');
});

test('the adapter shows what generateText itself sends', options, async () => {
  const { MockLanguageModelV4 } = await import('ai/test');
  const ids = ['a', 'b', 'c', 'd'];
  const usage = { inputTokens: { total: 100 }, outputTokens: { total: 10 } };
  const prepareStep = ({ messages, stepNumber }) => (stepNumber === 2
    ? { messages: ai.pruneMessages({ messages, toolCalls: 'before-last-2-messages' }) }
    : undefined);
  const prompts = [];
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      prompts.push(prompt.flatMap(({ content }) => content.map((part) => part.toolCallId ?? 'go')));
      const id = ids[prompts.length - 1];
      const content = [{ type: 'tool-call', toolCallId: id, toolName: 'tool', input: '{}' }];
      const finishReason = { unified: 'tool-calls', raw: 'tool_use' };
      return { content, finishReason, usage, warnings: [] };
    },
  });
  const tool = { inputSchema: ai.jsonSchema({ type: 'object' }), execute: () => 'done' };
  const stopWhen = ai.isStepCount(ids.length);
  await ai.generateText({ model, tools: { tool }, prompt: 'go', prepareStep, stopWhen });

  const strategy = new adapter.AiSdk('prune');
  const harness = await start(strategy);
  strategy.prepareStep = prepareStep;
  const named = ['go'];
  let all = ['m1'];
  for (const [step, prompt] of prompts.entries()) {
    const id = ids[step - 1];
    const added = step ? [calls(id), results(id)] : [user('go')];
    if (step) named.push(id, id), all.push(`m${2 * step}`, `m${2 * step + 1}`);
    const answer = await harness.context(added, { reason: step ? 'step' : 'turn' });
    const shown = answer.keep ?? all;
    assert.deepEqual(shown.map((entry) => named[Number(entry.slice(1)) - 1]), prompt);
    await harness.call('reply', { usage: USAGE, stop_reason: 'tool_use' });
  }
  assert.deepEqual(prompts.at(-1), ['go', 'b', 'b', 'c', 'c'], 'a was pruned, and stays so');
});

test('text that prepareStep alters keeps its message', options, async () => {
  const strategy = new adapter.AiSdk('prune');
  const harness = await start(strategy);
  strategy.prepareStep = ({ messages }) => ({
    messages: messages.map((message) => ({
      ...message,
      content: message.content.map((part) => part.type === 'tool-result'
        ? { ...part, output: { type: 'text', value: 'short' } } : part),
    })),
  });
  const list = [user('go'), calls('a'), results('a')];
  const { keep } = await harness.context(list, { reason: 'turn' });
  const [block] = results('a').content;
  assert.deepEqual(keep, [
    'm1', 'm2', { id: 'm3', message: { role: 'user', content: [{ ...block, content: 'short' }] } },
  ]);
});

// What the documentation says otherwise than the library does.

test('reasoning "none" does not retain all reasoning', options, () => {
  // https://ai-sdk.dev/docs/reference/ai-sdk-ui/prune-messages: "'none' to retain all reasoning".
  const messages = [
    { role: 'user', content: 'go' },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'because' },
        { type: 'tool-call', toolCallId: 'a', toolName: 'read', input: {} },
      ],
    },
    {
      role: 'tool',
      content: [{
        type: 'tool-result',
        toolCallId: 'a',
        toolName: 'read',
        output: { type: 'text', value: 'x' },
      }],
    },
    { role: 'user', content: 'next' },
  ];
  const pruned = ai.pruneMessages({ messages, reasoning: 'none', toolCalls: 'all' });
  assert.deepEqual(pruned.map(({ role }) => role), ['user', 'user']);
});

test('the length of a tool message is not that of its text', options, async () => {
  // https://ai-sdk.dev/docs/agents/loop-control#message-modification shortens tool messages whose
  // `content.length` is above 1000; this is the number of results, so that none ever is.
  const seen = [];
  const strategy = new adapter.AiSdk('prune');
  const harness = await start(strategy);
  strategy.prepareStep = ({ messages }) => void seen.push(...messages);
  const [block] = results('a').content;
  const long = { role: 'user', content: [{ ...block, content: 'x'.repeat(100_000) }] };
  await harness.context([user('go'), calls('a'), long], { reason: 'turn' });
  assert.equal(ai.modelMessageSchema.safeParse(seen[2]).success, true);
  assert.equal(seen[2].role, 'tool');
  assert.equal(seen[2].content.length, 1);
});
