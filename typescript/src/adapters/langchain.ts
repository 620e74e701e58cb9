/**
 * LangChain.js, as installed: an agent of one step runs its middleware, with ctxbench as its model.
 *
 *     exec{trigger.tokens=60%,keep.messages=20}:node …/adapters/langchain.js summarization
 *     exec{trigger.tokens=40%}:node …/adapters/langchain.js context-editing
 *
 * Settings are the options of `summarizationMiddleware` and `ClearToolUsesEdit`, nested by dots;
 * `model=summary` summarises with the provider's small model, `excludeTools` is a list by spaces.
 */
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import {
  AIMessage, type BaseMessage, ToolMessage, coerceMessageLikeToMessage,
} from '@langchain/core/messages';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import {
  ClearToolUsesEdit, contextEditingMiddleware, createAgent, summarizationMiddleware,
} from 'langchain';
import {
  keep, run, type ChatMessage, type Context, type Session, type Strategy,
} from '../index.js';

type Call = NonNullable<ChatMessage['tool_calls']>[number];
type Built = (options: any, scale: number, model: BaseChatModel) => any;

const MIDDLEWARE: Record<string, Built> = {
  summarization: (options, scale, model) => {
    if (!options.trigger) {
      throw new Error('summarizationMiddleware has no trigger of its own and would never summarise'
        + ': give it one, such as trigger.tokens=60%, trigger.fraction=0.8 or trigger.messages=50');
    }
    const trimTokensToSummarize = Math.round(4000 * scale); // 4000: the default of the library
    return summarizationMiddleware({ trimTokensToSummarize, ...options, model });
  },
  'context-editing': ({ excludeTools, ...options }, scale) => contextEditingMiddleware({
    edits: [new ClearToolUsesEdit({
      trigger: { tokens: Math.round(100_000 * scale) }, // the default of the library
      excludeTools: excludeTools?.split(' '),
      ...options,
    })],
  }),
};

/** A chat model that answers with what `ask` returns. */
class Model extends BaseChatModel {
  constructor(private ask: (messages: BaseMessage[]) => Promise<string>, private window: number) {
    super({});
  }
  override get profile() {
    return { maxInputTokens: this.window };
  }
  override _llmType() {
    return 'ctxbench';
  }
  override bindTools(): any {
    return this;
  }
  override async _generate(messages: BaseMessage[]) {
    const text = await this.ask(messages);
    return { generations: [{ text, message: new AIMessage(text) }] };
  }
}

export class LangChain implements Strategy<ChatMessage> {
  name: string;
  version = createRequire(import.meta.url)('langchain/package.json').version as string;
  dialect = 'openai-chat' as const;
  private agent!: ReturnType<typeof createAgent>;
  private shown: BaseMessage[] = [];
  /** LangChain's objects, each made once. */
  private theirs = new WeakMap<ChatMessage, BaseMessage>();

  constructor(private kind: string) {
    if (!MIDDLEWARE[kind]) {
      throw new Error(`no middleware ${kind}; there are ${Object.keys(MIDDLEWARE).join(', ')}`);
    }
    this.name = `langchain-js ${kind}`;
  }

  start(session: Session<ChatMessage>) {
    const { model, ...options } = nest(session.settings);
    const { window } = session.model;
    const summarise = async (messages: BaseMessage[]) => (await session.complete({
      messages: messages.map((message) => ({ role: 'user', content: message.text })),
      model,
    })).text;
    const see = async (messages: BaseMessage[]) => ((this.shown = messages), '');
    const build = MIDDLEWARE[this.kind]!;
    this.agent = createAgent({
      model: new Model(see, window),
      tools: [],
      middleware: [build(options, session.scale, new Model(summarise, window))],
    });
  }

  async context(messages: readonly ChatMessage[], { reason }: Context<ChatMessage>) {
    // A refused prompt is an error for the agent: nothing of LangChain's is tried again.
    if (reason === 'overflow') return undefined;
    const ours = new Map(messages.map((message) => [this.toTheirs(message), message]));
    const { messages: state } = await this.agent.invoke({ messages: [...ours.keys()] });
    // What a middleware leaves in the agent's state stays; other changes are of this request. The
    // last message of the state is the model's reply.
    const stays = state.length === this.shown.length + 1
      && this.shown.every((one, at) => one === state[at]);
    const shown = this.shown.map((one) => {
      const message = toOurs(one, ours);
      // The library marks what it has cleared, so that it does not clear it again.
      this.theirs.set(message, one);
      return message;
    });
    return keep(shown, { scope: stays ? 'state' : 'request' });
  }

  private toTheirs(message: ChatMessage): BaseMessage {
    const known = this.theirs.get(message);
    if (known) return known;
    const tool_calls = message.tool_calls?.map((call) => (
      { ...call, function: { ...call.function, arguments: argumentsOf(call) } }));
    const content = message.content ?? '';
    const one = coerceMessageLikeToMessage({ ...message, content, tool_calls } as any);
    this.theirs.set(message, one);
    return one;
  }
}

/** A summary has the id of the first message it stands for, and is told by its `lc_source`. */
function toOurs(one: BaseMessage, ours: Map<BaseMessage, ChatMessage>): ChatMessage {
  const same = ours.get(one);
  if (same) return same;
  const content = one.content as ChatMessage['content'];
  if (one.additional_kwargs.lc_source) return { role: 'user', content };
  for (const before of ours.values()) {
    if (ToolMessage.isInstance(one) && before.tool_call_id === one.tool_call_id) {
      return { ...before, content };
    }
    if (AIMessage.isInstance(one) && before.id === one.id) {
      // Middleware may clear the arguments of a call; the text of the others stays as it is.
      const tool_calls = before.tool_calls?.map((call, at) => {
        const args = JSON.stringify(one.tool_calls?.[at]?.args);
        return args === argumentsOf(call)
          ? call
          : { ...call, function: { ...call.function, arguments: args } };
      });
      return { ...before, tool_calls };
    }
  }
  return { role: one.type === 'ai' ? 'assistant' : 'user', content };
}

/** Arguments of a call as short JSON; a text that is none, as of a free-form tool, is `input`. */
function argumentsOf({ function: { arguments: text } }: Call): string {
  try {
    return JSON.stringify(JSON.parse(text || '{}'));
  } catch {
    return JSON.stringify({ input: text });
  }
}

/** `{'trigger.tokens': 9}` is `{trigger: {tokens: 9}}`. */
function nest(settings: Session['settings']): any {
  const nested: any = {};
  for (const [key, value] of Object.entries(settings)) {
    const path = key.split('.');
    const last = path.pop()!;
    path.reduce((object, part) => (object[part] ??= {}), nested)[last] = value;
  }
  return nested;
}

if (realpathSync(process.argv[1]!) === fileURLToPath(import.meta.url)) {
  await run(new LangChain(process.argv[2] ?? 'summarization'));
}
