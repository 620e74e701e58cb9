/** Answers ctxbench for a strategy. */
import type { Readable, Writable } from 'node:stream';
import type { Call, Completion, Identified, Initialize } from './protocol.js';
import { State } from './state.js';
import type { Ask, Session, Strategy } from './strategy.js';
import { RpcError, Wire } from './wire.js';

const MOMENTS = {
  admit: 'admit', reply: 'reply', turnEnd: 'turn_end', error: 'error', rewind: 'rewind',
  afterTurn: 'after_turn', idle: 'idle', manual: 'manual',
} as const;

export type Streams = { input?: Readable; output?: Writable };

/**
 * Speaks the protocol for `strategy` until ctxbench is done. Whatever else is written to standard
 * output, by `console.log` or by a library, goes to standard error from here on.
 */
export async function run(strategy: Strategy, streams: Streams = {}): Promise<void> {
  const output = streams.output ?? claimStdout();
  const wire = new Wire(output);
  const server = new Server(strategy, wire);
  const input = streams.input ?? process.stdin;
  await wire.serve(input, (method, params) => server.handle(method, params));
  // Timers and sockets of a library would keep the process alive.
  if (!streams.output) process.exit(0);
}

function claimStdout(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return { write } as unknown as Writable;
}

class Server {
  private state = new State<any>();
  private session!: Session<any>;

  constructor(private strategy: Strategy, private wire: Wire) {}

  handle(method: string, params: any): unknown {
    const { strategy, session } = this;
    switch (method) {
      case 'initialize': return this.initialize(params);
      case 'context': return this.context(params);
      case 'admit': return this.admit(params);
      case 'reply': return strategy.reply?.(params, session);
      case 'turn_end': return strategy.turnEnd?.(params, session);
      case 'error': return strategy.error?.(params, session);
      case 'rewind':
        this.state.rewind(params.to);
        return strategy.rewind?.(params.to, session);
      case 'shutdown': return {};
      default: throw new RpcError(-32601, `no such method: ${method}`);
    }
  }

  private async initialize({ protocol, dialects, ...known }: Initialize) {
    const { strategy } = this;
    if (protocol !== 1) {
      throw new RpcError(-32602, `this package speaks protocol 1, not ${protocol}; update it`);
    }
    const dialect = strategy.dialect ?? 'openai-chat';
    if (!dialects.includes(dialect)) {
      throw new RpcError(-32602, `dialect ${dialect} is not offered, only ${dialects.join(', ')}`);
    }
    this.session = { ...known, ...this.calls() };
    await strategy.start?.(this.session);
    const moments = Object.entries(MOMENTS)
      .filter(([method]) => typeof strategy[method as keyof typeof MOMENTS] === 'function')
      .map(([, moment]) => moment);
    const named = strategy.name ?? strategy.constructor.name;
    return {
      name: named === 'Object' ? 'strategy' : named,
      version: strategy.version ?? '0',
      dialect,
      moments,
      ...(strategy.joinResults && { join_results: true }),
    };
  }

  private async context({ added, new_ids, ...moment }: any) {
    const { strategy, state } = this;
    state.take(added, new_ids);
    const { messages } = state;
    const length = messages.length;
    const ask =
      moment.reason === 'manual' ? strategy.manual ?? strategy.context
      : moment.reason === 'idle' ? strategy.idle ?? strategy.context
      : moment.reason === 'after_turn' ? strategy.afterTurn ?? strategy.context
      : strategy.context;
    const answer = await ask.call(strategy, messages, { ...this.session, ...moment });
    return state.answer(answer, strategy.scope, length);
  }

  private async admit({ id, message, call }: { id: string; message: object; call?: Call }) {
    const before = { ...message, id };
    const answer = await this.strategy.admit?.(before, this.session, call);
    const after = answer as Identified | undefined;
    if (!after || after === before) return {};
    const { id: _, ...body } = after;
    return { message: body };
  }

  private calls() {
    const { wire, state } = this;
    const text = (answer: Completion) => ({
      ...answer,
      text: answer.content.map((block) => block.text ?? '').join(''),
    });
    const asked = ({ messages, ...rest }: Ask<any>) => ({
      messages: state.entries(typeof messages === 'string' ? [this.user(messages)] : messages),
      ...rest,
    });
    return {
      complete: async (ask: Ask<any>) => text(await wire.call('complete', asked(ask))),
      completeLater: (ask: Ask<any>) => wire.call('complete', { ...asked(ask), background: true }),
      collect: async (task: number, wait = false) => {
        const answer = await wire.call('collect', { task, wait });
        return answer.pending ? undefined : text(answer);
      },
      countTokens: async (messages?: readonly any[]) => {
        const params = messages ? { messages: state.entries(messages) } : {};
        return (await wire.call('count_tokens', params)).tokens as number;
      },
      tokens: (amount: number) => Math.round(amount * this.session.scale),
      log: async (message: string) => wire.notify('log', { message }),
    };
  }

  private user(content: string): object {
    const item = this.strategy.dialect === 'openai-responses' ? { type: 'message' } : {};
    return { ...item, role: 'user', content };
  }
}
