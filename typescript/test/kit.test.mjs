import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { keep, strategy } from '../dist/index.js';
import { Harness, USAGE, calls, initialize, result, says, start, user } from './harness.mjs';

const three = [user('one'), says('two'), user('three')];

test('initialize names the strategy and the moments it has methods for', async () => {
  class Mine {
    version = '2';
    dialect = 'anthropic';
    context() {}
    turnEnd() {}
    idle() {}
  }
  const harness = await start(new Mine());
  assert.deepEqual(harness.started, {
    name: 'Mine', version: '2', dialect: 'anthropic', moments: ['turn_end', 'idle'],
  });
  const short = await start(strategy(function mine() {}, { moments: ['manual'] }));
  assert.deepEqual(short.started, {
    name: 'mine', version: '0', dialect: 'openai-chat', moments: ['manual'],
  });
});

test('the same list, nothing, or an equal list is unchanged', async () => {
  for (const f of [(m) => m, () => {}, (m) => m.map((one) => one), async (m) => [...m]]) {
    const harness = await start(strategy(f));
    assert.deepEqual(await harness.context(three), { unchanged: true });
    assert.deepEqual(await harness.context([says('four')]), { unchanged: true });
  }
});

test('messages are named by id, altered ones and new text carry theirs', async () => {
  const harness = await start(strategy((messages) => [
    { role: 'user', content: 'summary' },
    { ...messages[1], content: 'short' },
    { ...messages[2] },
  ]));
  assert.deepEqual(await harness.context(three), {
    keep: [
      { message: { role: 'user', content: 'summary' } },
      { id: 'm2', message: { role: 'assistant', content: 'short' } },
      'm3',
    ],
    scope: 'state',
  });
});

test('new text has its id in the next call, and the list goes on from there', async () => {
  const seen = [];
  const harness = await start(strategy((messages) => {
    seen.push(messages.map((message) => [message.id, message.content]));
    return messages.length > 2 ? [user('summary'), messages.at(-1)] : messages;
  }));
  await harness.context(three);
  const second = await harness.context([says('four')], { new_ids: ['n1'] });
  assert.deepEqual(second.keep, [{ message: user('summary') }, 'm4']);
  await harness.context([], { new_ids: ['n2'] });
  assert.deepEqual(seen, [
    [['m1', 'one'], ['m2', 'two'], ['m3', 'three']],
    [['n1', 'summary'], ['m3', 'three'], ['m4', 'four']],
    [['n2', 'summary'], ['m4', 'four']],
  ]);
});

test('an altered message stays altered in the state', async () => {
  const harness = await start(strategy((messages) =>
    messages.map((one) => (one.content === 'two' ? { ...one, content: '2' } : one))));
  assert.deepEqual((await harness.context(three)).keep[1], {
    id: 'm2', message: { role: 'assistant', content: '2' },
  });
  assert.deepEqual(await harness.context([]), { unchanged: true });
});

test('with scope request the state stays as it was', async () => {
  const seen = [];
  const harness = await start(strategy((messages) => {
    seen.push(messages.length);
    return [...messages.slice(-1), user('remember')];
  }, { scope: 'request' }));
  const first = await harness.context(three);
  assert.deepEqual(first, { keep: ['m3', { message: user('remember') }], scope: 'request' });
  await harness.context([], { new_ids: ['n1'] });
  assert.deepEqual(seen, [3, 3]);
});

test('keep says what stands beside the list, also beside an unchanged one', async () => {
  const trigger = { check: 'limit', believed: 90, limit: 80 };
  const breakpoints = [{ id: 'system' }, { id: 'm3', ttl: '1h' }];
  const compaction = { kind: 'drop', mechanism: 'window', ids: ['m1'] };
  const params = { max_tokens: 1000 };
  let answer = (m) => keep(m.slice(1), { compaction, trigger, breakpoints, params });
  const harness = await start(strategy((m) => answer(m)));
  assert.deepEqual(await harness.context(three), {
    keep: ['m2', 'm3'], scope: 'state', compaction, trigger, breakpoints, params,
  });
  answer = (m) => keep(m, { scope: 'request', trigger, compaction });
  assert.deepEqual(await harness.context(), { unchanged: true, trigger });
});

test('a list or a message changed in place is an error, not silently nothing', async () => {
  const grown = await start(strategy((messages) => (messages.push(user('x')), messages)));
  await assert.rejects(grown.context(three), { code: -32603, message: /changed in place/ });
  const altered = await start(strategy((messages) => {
    messages[0].content = 'x';
    return messages;
  }));
  await assert.rejects(altered.context(three), { code: -32603, message: /read only property/ });
});

test('the program asks while it answers, one call at a time', async () => {
  const harness = await start(strategy(async (messages, ctx) => {
    const [summary, tokens] = await Promise.all([
      ctx.complete({ messages: [...messages, user('Sum up.')], system: true, max_tokens: 50 }),
      ctx.countTokens(messages.slice(1)),
      ctx.log('hello'),
    ]);
    assert.equal(await ctx.countTokens(), 7);
    const short = await ctx.complete({ messages: 'Well?', model: 'summary' });
    return [user(`${summary.text} ${tokens} ${short.stop_reason}`)];
  }));
  const content = [{ type: 'text', text: 'all ' }, { type: 'text', text: 'good' }];
  harness.answers.complete = () => ({ content, usage: USAGE, stop_reason: 'end_turn' });
  harness.answers.count_tokens = () => ({ tokens: 7 });
  const { keep: list } = await harness.context(three);
  assert.deepEqual(list, [{ message: user('all good 7 end_turn') }]);
  const asked = harness.asked.filter(({ method }) => method !== 'log');
  assert.deepEqual(asked, [
    {
      method: 'complete',
      params: {
        messages: ['m1', 'm2', 'm3', { message: user('Sum up.') }], system: true, max_tokens: 50,
      },
    },
    { method: 'count_tokens', params: { messages: ['m2', 'm3'] } },
    { method: 'count_tokens', params: {} },
    { method: 'complete', params: { messages: [{ message: user('Well?') }], model: 'summary' } },
  ]);
  assert.deepEqual(harness.asked.filter(({ method }) => method === 'log'), [
    { method: 'log', params: { message: 'hello' } },
  ]);
});

test('a task in the background is collected later', async () => {
  let task;
  const harness = await start(strategy(async (messages, ctx) => {
    task ??= (await ctx.completeLater({ messages: 'Sum up.' })).task;
    const done = await ctx.collect(task, ctx.reason === 'overflow');
    return done ? [user(done.text)] : undefined;
  }));
  harness.answers.complete = ({ background }) => (assert.equal(background, true), { task: 1 });
  harness.answers.collect = ({ wait }) => wait
    ? { content: [{ type: 'text', text: 'done' }], usage: USAGE, stop_reason: 'end_turn' }
    : { pending: true };
  assert.deepEqual(await harness.context(three), { unchanged: true });
  const last = await harness.context([], { reason: 'overflow', attempt: 1 });
  assert.deepEqual(last.keep, [{ message: user('done') }]);
});

test('a model that fails is an RpcError with class and status', async () => {
  let caught;
  const harness = await start(strategy(async (messages, ctx) => {
    await ctx.complete({ messages: 'x' }).catch((error) => (caught = error));
  }));
  const data = { class: 'overflow', status: 400 };
  harness.answers.complete = () => ({ error: { code: -32000, message: 'too long', data } });
  assert.deepEqual(await harness.context(three), { unchanged: true });
  assert.deepEqual([caught.name, caught.code, caught.message, caught.data],
    ['RpcError', -32000, 'too long', data]);
});

test('an exception is -32603 with its words and its place', async () => {
  const harness = await start(strategy(() => {
    throw new RangeError('no room');
  }));
  await assert.rejects(harness.context(three), {
    code: -32603, message: /^RangeError: no room \(at .*kit\.test\.mjs:\d+:\d+\)?\)$/,
  });
  assert.deepEqual(await harness.call('shutdown'), {}, 'the next call is answered again');
});

test('moments reach their methods, and answer as the protocol says', async () => {
  const told = [];
  const harness = await start({
    context: () => {},
    manual: (messages, ctx) => [user(ctx.instructions)],
    admit(message, _, call) {
      told.push(['admit', call]);
      return message.content.length > 3 ? { ...message, content: 'long' } : message;
    },
    reply: (reply) => void told.push(['reply', reply.stop_reason]),
    turnEnd: (reply) => void told.push(['turnEnd', reply.usage.input_tokens]),
    error: ({ attempt }) => (attempt < 3 ? { again: true } : undefined),
    rewind: (to) => void told.push(['rewind', to]),
  });
  assert.deepEqual(harness.started.moments,
    ['admit', 'reply', 'turn_end', 'error', 'rewind', 'manual']);
  const called = { name: 'Bash', arguments: { command: 'git status' } };
  const short = { id: 'm9', message: result('c', 'ok'), call: called };
  assert.deepEqual(await harness.call('admit', short), {});
  assert.deepEqual(await harness.call('admit', { id: 'm9', message: result('c', 'x'.repeat(9)) }), {
    message: result('c', 'long'),
  });
  const reply = { usage: USAGE, stop_reason: 'tool_use' };
  assert.deepEqual(await harness.call('reply', reply), {});
  assert.deepEqual(await harness.call('turn_end', reply), {});
  const failure = { class: 'server', status: 500, message: 'oops' };
  assert.deepEqual(await harness.call('error', { ...failure, attempt: 1 }), { again: true });
  assert.deepEqual(await harness.call('error', { ...failure, attempt: 3 }), {});
  await harness.context(three);
  assert.deepEqual(await harness.call('rewind', { to: 'm2' }), {});
  const asked = { reason: 'manual', instructions: 'the tests' };
  assert.deepEqual((await harness.context([], asked)).keep, [{ message: user('the tests') }]);
  assert.deepEqual(told, [
    ['admit', called], ['admit', undefined], ['reply', 'tool_use'], ['turnEnd', 100],
    ['rewind', 'm2'],
  ]);
});

test('after a rewind the state ends where it was told to', async () => {
  const seen = [];
  const harness = await start({
    rewind() {},
    context: (messages) => void seen.push(messages.map(({ id }) => id)),
  });
  await harness.context(three);
  await harness.call('rewind', { to: 'm1' });
  await harness.context([says('four')]);
  await harness.call('rewind', { to: null });
  await harness.context([user('five')]);
  assert.deepEqual(seen, [['m1', 'm2', 'm3'], ['m1', 'm4'], ['m5']]);
  await assert.rejects(harness.call('rewind', { to: 'm2' }), { code: -32602 });
});

test('what is not spoken is refused with the code of the protocol', async () => {
  const harness = new Harness(strategy(() => {}));
  await assert.rejects(harness.call('initialize', initialize({ protocol: 2 })), { code: -32602 });
  const only = initialize({ dialects: ['anthropic'] });
  await assert.rejects(harness.call('initialize', only), { code: -32602, message: /openai-chat/ });
  await assert.rejects(harness.call('nonsense'), { code: -32601 });
});

test('text that JSON and UTF-8 see differently arrives whole', async () => {
  // U+2028 is a line break for some readers and not for JSON; half an emoji is no UTF-8.
  const odd = 'a\u2028b \\ud83d "🎈';
  const harness = await start(strategy((messages) => [
    { ...messages[0], content: messages[0].content + '!' },
    user('🎈'.slice(0, 1)),
  ]));
  const { keep: list } = await harness.context([user(odd)]);
  assert.equal(list[0].message.content, odd + '!');
  assert.equal(list[1].message.content, '\ufffd');
});

test('a call that changes nothing costs what was added, not what is there', async () => {
  const harness = await start(strategy((messages) => messages));
  const many = Array.from({ length: 20000 }, (_, at) => (at % 2 ? result(`c${at}`, 'x'.repeat(500))
    : calls(`c${at + 1}`)));
  const median = async () => {
    const times = [];
    for (let at = 0; at < 51; at++) {
      const from = performance.now();
      await harness.context();
      times.push(performance.now() - from);
    }
    return times.sort((a, b) => a - b)[25];
  };
  await median();
  const small = await median();
  await harness.context(many);
  const large = await median();
  assert.ok(large < small * 5 + 1, `${small} ms with nothing, ${large} ms with 20,000 messages`);
});

test('a program of a few lines, as a process of its own', async () => {
  const example = new URL('../examples/keep-last.mjs', import.meta.url).pathname;
  const harness = Harness.start(process.execPath, [example]);
  const started = await harness.call('initialize', initialize({ settings: { keep: 2 } }));
  assert.equal(started.name, 'keepLast');
  const list = [user('go'), calls('a'), result('a', 'x'), calls('b'), result('b', 'y')];
  assert.deepEqual((await harness.context(list)).keep, ['m1', 'm4', 'm5']);
  assert.deepEqual(await harness.context(), { unchanged: true });
  await harness.call('shutdown');
  assert.deepEqual(await harness.ended, { code: 0, log: '' });
});

test('what user code prints goes to standard error', async () => {
  const kit = new URL('../dist/index.js', import.meta.url).href;
  const code = `import { run, strategy } from '${kit}';
    run(strategy(() => { console.log('seen'); process.stdout.write('too\\n'); }));
    setInterval(() => {}, 1000);`;
  const harness = Harness.start(process.execPath, ['--input-type=module', '-e', code]);
  await harness.call('initialize', initialize());
  assert.deepEqual(await harness.context(three), { unchanged: true });
  await harness.call('shutdown');
  assert.deepEqual(await harness.ended, { code: 0, log: 'seen\ntoo\n' });
});

test('a constant in tokens is scaled', async () => {
  let seen;
  const model = { ...initialize().model, prices: null };
  const harness = await start(
    strategy((m, ctx) => { seen = [ctx.tokens(30_000), ctx.model.prices]; }),
    { scale: 0.04, model },
  );
  await harness.context(three);
  assert.deepEqual(seen, [1200, null]);
});

const PROGRAM = process.env.CTXBENCH_PROGRAM;

test('generational costs and recalls the same as the built-in one', { skip: !PROGRAM }, () => {
  const path = (name) => new URL(`../../${name}`, import.meta.url).pathname;
  const limits = 'young=2,journal=2000,rent=1';
  const out = mkdtempSync(join(tmpdir(), 'ctxbench-'));
  try {
    execFileSync(PROGRAM, [
      'run', path('tests/data/recordings/pi/pi-mono-large-session.jsonl'),
      '--transport', 'direct', '--config', 'none', '--calibrate', 'off', '--out', out,
      '--strategy', 'reference', '--strategy', `generational:${limits}`,
      '--strategy', `js=exec{${limits}}:node ${path('typescript/examples/generational.mjs')}`,
    ], { stdio: 'pipe' });
    const { runs } = JSON.parse(readFileSync(join(out, 'results.json'), 'utf8'));
    const [ours, theirs] = ['generational', 'js'].map((name) => {
      const { requests, facts, status } = runs.find((r) => r.strategy.name === name);
      return { requests, facts, status };
    });
    assert.equal(ours.status, 'completed');
    assert.deepEqual(theirs, ours);
  } finally {
    rmSync(out, { recursive: true });
  }
});
