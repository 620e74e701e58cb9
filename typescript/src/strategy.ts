/** What a strategy is: a function from messages to messages, or an object with moments. */
import type {
  Call, Completion, Details, Dialect, Failure, Initialize, Message, MessageOf, Reason, Reply, Usage,
} from './protocol.js';

/** Messages of yours or of ctxbench, by themselves or by their ids, or a text to be asked. */
export type Asked<M> = string | readonly (M | string)[];

/** A tool of your own; the first gets the model's text in its first required text or list. */
export type OwnTool = { name: string; description?: string; input_schema: object };

export type Ask<M> = {
  messages: Asked<M>;
  /** A text, or `true` for the session's own; default none. */
  system?: string | true;
  /** `true` for the session's own, or yours, of which the model calls the first; default none. */
  tools?: true | readonly OwnTool[];
  max_tokens?: number;
  model?: 'main' | 'summary';
};

/** What is known in every moment, and what can be asked in it. */
export type Session<M = Message> = Omit<Initialize, 'protocol' | 'dialects'> & {
  /** Asks a model; `text` is all of its text. Rejects with an `RpcError` (`data`: class, status) */
  complete(ask: Ask<M>): Promise<Completion & { text: string }>;
  /** The same in the background: `collect` brings the answer. */
  completeLater(ask: Ask<M>): Promise<{ task: number }>;
  /** The answer to a task; `undefined` if it is still pending (never with `wait`). */
  collect(task: number, wait?: boolean): Promise<(Completion & { text: string }) | undefined>;
  /** Tokens of a request that shows these messages (default: the state), as the provider counts. */
  countTokens(messages?: readonly (M | string)[]): Promise<number>;
  /** Converts a constant of your own, such as 30_000, to the scale of the session. */
  tokens(amount: number): number;
  /** A line in the trace. */
  log(message: string): Promise<void>;
};

/** The moment before a request. */
export type Context<M = Message> = Session<M> & {
  reason: Reason;
  now: number;
  usage: Usage | null;
  request_tokens: number | null;
  instructions?: string | null;
  idle_ms?: number;
  attempt?: number;
};

/** Messages with something beside them; made by `keep`. */
export class Keep<M> {
  constructor(readonly messages: readonly M[], readonly details: Details) {}
}

/** An answer that says more than the list of messages: `keep(messages, {scope: 'request'})`. */
export function keep<M>(messages: readonly M[], details: Details = {}): Keep<M> {
  return new Keep(messages, details);
}

/** `undefined`, or the very list that came in: the state as it is. */
export type Answer<M> = readonly M[] | Keep<M> | undefined | void;
type Async<T> = T | Promise<T>;

/** A moment is subscribed to if its method exists. `manual`, `idle` and `afterTurn` stand in for `context`. */
export interface Strategy<M = any> {
  name?: string;
  version?: string;
  dialect?: Dialect;
  scope?: 'state' | 'request';
  /** With the dialect `anthropic`: the results of one reply are one message. */
  joinResults?: boolean;
  start?(session: Session<M>): Async<void>;
  context(messages: readonly M[], ctx: Context<M>): Async<Answer<M>>;
  manual?(messages: readonly M[], ctx: Context<M>): Async<Answer<M>>;
  idle?(messages: readonly M[], ctx: Context<M>): Async<Answer<M>>;
  afterTurn?(messages: readonly M[], ctx: Context<M>): Async<Answer<M>>;
  /** The result of `call` before it enters: the same or `undefined` lets it in as it is. */
  admit?(message: M, session: Session<M>, call?: Call): Async<M | undefined | void>;
  reply?(reply: Reply, session: Session<M>): Async<void>;
  turnEnd?(reply: Reply, session: Session<M>): Async<void>;
  error?(
    failure: Failure,
    session: Session<M>,
  ): Async<{ again: true } | { fail: string } | undefined | void>;
  /** `to`: id of the last message that stays. Without this method the program is started anew. */
  rewind?(to: string | null, session: Session<M>): Async<void>;
}

export type Options<D extends Dialect> = {
  name?: string;
  version?: string;
  dialect?: D;
  scope?: 'state' | 'request';
  /** The function is also asked when time passes, when the user asks for a compaction, or after a turn. */
  moments?: ('idle' | 'manual' | 'afterTurn')[];
};

/** A strategy that is one function. */
export function strategy<D extends Dialect = 'openai-chat'>(
  context: (
    messages: readonly MessageOf<D>[],
    ctx: Context<MessageOf<D>>,
  ) => Async<Answer<MessageOf<D>>>,
  { moments = [], ...options }: Options<D> = {},
): Strategy<MessageOf<D>> {
  const also = Object.fromEntries(moments.map((moment) => [moment, context]));
  return { name: context.name || 'strategy', ...options, context, ...also };
}
