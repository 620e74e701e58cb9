/**
 * What stands on the lines between ctxbench and a strategy (docs/exec.md), as types. Names are
 * those of the protocol page.
 */

export type Dialect = 'openai-chat' | 'openai-responses' | 'anthropic';

/** The ctxbench id of a message; absent in new text of yours. */
export type Identified = { readonly id?: string };

/** One message of the Chat Completions API. */
export type ChatMessage = Identified & {
  readonly role: 'user' | 'assistant' | 'tool' | 'system' | 'developer';
  readonly content?: string | null | readonly ChatPart[];
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: 'function';
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
  readonly name?: string;
};
export type ChatPart = {
  readonly type: string;
  readonly text?: string;
  readonly [key: string]: unknown;
};

/** One message of Anthropic's Messages API. */
export type AnthropicMessage = Identified & {
  readonly role: 'user' | 'assistant';
  readonly content: string | readonly AnthropicBlock[];
};
export type AnthropicBlock = { readonly type: string; readonly [key: string]: unknown };

/** One item of the Responses API. Its `id` is that of ctxbench, not the provider's. */
export type ResponsesItem = Identified & { readonly [key: string]: unknown };

export type MessageOf<D extends Dialect> = {
  'openai-chat': ChatMessage;
  'openai-responses': ResponsesItem;
  anthropic: AnthropicMessage;
}[D];
export type Message = ChatMessage | AnthropicMessage | ResponsesItem;

/** A tool call, which a result answers. */
export type Call = { name: string; arguments: Record<string, unknown> };

export type Usage = {
  input_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
};

export type StopReason =
  | 'end_turn' | 'tool_use' | 'max_tokens' | 'stop_sequence'
  | 'refusal' | 'compaction' | 'pause_turn' | 'window_exceeded';

export type Reason = 'turn' | 'step' | 'overflow' | 'manual' | 'idle' | 'after_turn' | 'resume';

export type Prices = {
  input: number;
  cache_read: number;
  cache_write_5m: number;
  cache_write_1h: number;
  output: number;
};

export type Initialize = {
  protocol: number;
  model: {
    id: string;
    provider: string;
    window: number;
    max_output: number;
    /** USD per million tokens; null if they are unknown. */
    prices: Prices | null;
    /** Lifetime of entries after their last use, and the smallest prompt that is cached. */
    cache: { lifetime_5m_ms: number; lifetime_1h_ms: number; min_tokens: number };
  };
  scale: number;
  settings: Record<string, number | boolean | string>;
  session: {
    id: string;
    agent: string | null;
    tools: { name: string; description: string; input_schema: unknown }[];
    system: string;
  };
  dialects: Dialect[];
};

/** A reply came, or a turn ended. */
export type Reply = { usage: Usage; stop_reason: StopReason };

/** A request failed. */
export type Failure = {
  class: 'overflow' | 'rate_limited' | 'invalid' | 'server' | 'stream';
  status: number | null;
  message: string;
  attempt: number;
};

/** What may stand beside the list of messages in an answer. */
export type Details = {
  /** From now on (`state`, the default) or for this request only. */
  scope?: 'state' | 'request';
  compaction?: {
    kind?: 'clear' | 'truncate' | 'drop' | 'summarise';
    mechanism?: string;
    ids?: string[];
  };
  /** A limit in tokens was reached, as you believe. */
  trigger?: { check: string; believed: number; limit: number };
  breakpoints?: { id: string; ttl?: '5m' | '1h' }[];
  params?: { max_tokens?: number; effort?: string };
};

export type Completion = {
  content: { type: string; text?: string; name?: string; input?: Record<string, unknown> }[];
  usage: Usage;
  stop_reason: StopReason;
};
