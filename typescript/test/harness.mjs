/** Plays ctxbench towards a strategy, in this process or another. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { run } from '../dist/index.js';

export const USAGE = {
  input_tokens: 100, cache_read_tokens: 0, cache_write_tokens: 0,
  output_tokens: 10, reasoning_tokens: 0,
};

export function initialize(more = {}) {
  return {
    protocol: 1,
    model: { id: 'claude', provider: 'anthropic', window: 200000, max_output: 64000 },
    scale: 1,
    settings: {},
    session: { id: 's', agent: null, tools: [], system: 'You code.' },
    dialects: ['openai-chat', 'openai-responses', 'anthropic'],
    ...more,
  };
}

/** `context` params: `added` are messages of the dialect, given the ids `m1`, `m2`, … in order. */
export class Harness {
  #count = 0;
  #calls = 0;
  #line;
  /** Answers to calls of the program, by method. */
  answers = { log: () => ({}) };
  asked = [];

  constructor(strategy, streams = inProcess(strategy)) {
    this.input = streams.input;
    this.ended = streams.ended;
    this.#line = createInterface({ input: streams.output })[Symbol.asyncIterator]();
  }

  static start(command, args) {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (log += text));
    const ended = new Promise((resolve) => child.on('close', (code) => resolve({ code, log })));
    return new Harness(null, { input: child.stdin, output: child.stdout, ended });
  }

  async call(method, params = {}) {
    const id = ++this.#calls;
    this.send({ jsonrpc: '2.0', id, method, params });
    for (;;) {
      const { value, done } = await this.#line.next();
      if (done) throw new Error(`the program ended instead of answering ${method}`);
      const line = JSON.parse(value);
      if (line.method) this.#answer(line);
      else if (line.error) throw Object.assign(new Error(line.error.message), line.error);
      else if (line.id === id) return line.result;
      else throw new Error(`an answer to ${line.id} instead of ${id}`);
    }
  }

  #answer({ id, method, params }) {
    this.asked.push({ method, params });
    if (id === undefined) return;
    const result = this.answers[method]?.(params) ?? { error: { code: -32601, message: method } };
    this.send({ jsonrpc: '2.0', id, ...(result.error ? result : { result }) });
  }

  send(line) {
    this.input.write(JSON.stringify(line) + '\n');
  }

  context(added = [], more = {}) {
    return this.call('context', {
      reason: 'step', now: 0, usage: null, request_tokens: null, new_ids: [],
      added: added.map((message) => ({ id: `m${++this.#count}`, message })),
      ...more,
    });
  }
}

function inProcess(strategy) {
  const input = new PassThrough();
  const output = new PassThrough();
  return { input, output, ended: run(strategy, { input, output }) };
}

/** The strategy, started. */
export async function start(strategy, more) {
  const harness = new Harness(strategy);
  harness.started = await harness.call('initialize', initialize(more));
  return harness;
}

export const user = (content) => ({ role: 'user', content });
export const says = (content) => ({ role: 'assistant', content });
export const calls = (id, name = 'read', args = {}) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(args) } }],
});
export const result = (tool_call_id, content) => ({ role: 'tool', tool_call_id, content });
