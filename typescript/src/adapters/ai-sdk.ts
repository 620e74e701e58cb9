/**
 * The AI SDK (`ai`), as installed: its `pruneMessages`, or a `prepareStep` of your own, before each
 * request.
 *
 *     exec{toolCalls=before-last-10-messages,reasoning=all}:node …/adapters/ai-sdk.js prune
 *     exec{limit=60%}:node …/adapters/ai-sdk.js prepare-step ./mine.mjs
 *
 * Settings of `prune` are the parameters of `pruneMessages`; with `tools`, a list by spaces,
 * `toolCalls` is of these tools only. The file exports a `prepareStep` by default; it finds the
 * settings in `runtimeContext`. As in `generateText`, messages that it returns are the base of
 * later steps of the turn, and the next turn begins with the whole conversation again.
 */
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { pruneMessages, type ModelMessage } from 'ai';
import {
  keep, run, type AnthropicBlock, type AnthropicMessage, type Context, type Reply, type Session,
  type Strategy,
} from '../index.js';

type Part = { type: string; providerOptions?: any; [key: string]: any };
type Pieces = { blocks: readonly AnthropicBlock[]; parts: Part[] };
type Step = (options: any) => { messages?: ModelMessage[] } | undefined | Promise<any>;

const prune = ({ tools, toolCalls, ...rest }: Session['settings']): Step => ({ messages }) => ({
  messages: pruneMessages({
    messages,
    toolCalls: tools ? [{ type: toolCalls, tools: String(tools).split(' ') }] : toolCalls,
    ...rest,
  } as Parameters<typeof pruneMessages>[0]),
});

export class AiSdk implements Strategy<AnthropicMessage> {
  name: string;
  version = createRequire(import.meta.url)('ai/package.json').version as string;
  dialect = 'anthropic' as const;
  private prepareStep!: Step;
  private settings: Session['settings'] = {};
  private theirs = new WeakMap<AnthropicMessage, Pieces>();
  private tools = new Map<string, string>();
  private seen = 0;
  private base: ModelMessage[] = [];
  private initial: ModelMessage[] = [];
  private responses: ModelMessage[] = [];
  private steps: object[] = [];

  /** `file`: a module whose default export is a `prepareStep`. */
  constructor(kind: string, private file?: string) {
    if (kind !== (file ? 'prepare-step' : 'prune')) {
      throw new Error('usage: ai-sdk.js prune, or ai-sdk.js prepare-step FILE');
    }
    this.name = `ai-sdk ${kind}`;
  }

  async start({ settings }: Session<AnthropicMessage>) {
    this.settings = settings;
    this.prepareStep = this.file
      ? (await import(pathToFileURL(resolve(this.file)).href)).default
      : prune(settings);
  }

  reply({ usage: { input_tokens: inputTokens, output_tokens: outputTokens } }: Reply) {
    const totalTokens = inputTokens + outputTokens;
    this.steps.push({ usage: { inputTokens, outputTokens, totalTokens } });
  }

  async context(messages: readonly AnthropicMessage[], ctx: Context<AnthropicMessage>) {
    // A refused prompt is an error of `generateText`: nothing is tried again.
    if (ctx.reason === 'overflow') return undefined;
    if (ctx.reason === 'turn' || ctx.reason === 'resume') {
      this.base = this.initial = this.toTheirs(messages);
      this.responses = [];
      this.steps = [];
    } else {
      const added = this.toTheirs(messages.slice(this.seen));
      this.responses = [...this.responses, ...added];
      this.base = [...this.base, ...added];
    }
    this.seen = messages.length;
    const prepared = await this.prepareStep({
      messages: this.base,
      initialMessages: this.initial,
      responseMessages: this.responses,
      steps: this.steps,
      stepNumber: this.steps.length,
      model: ctx.model.id,
      instructions: ctx.session.system,
      initialInstructions: ctx.session.system,
      runtimeContext: { ...this.settings, window: ctx.model.window, scale: ctx.scale },
      toolsContext: {},
    });
    this.base = prepared?.messages ?? this.base;
    return keep(this.toOurs(this.base, messages), { scope: 'request' });
  }

  /** Results that stand one after the other are one message, as `generateText` makes it. */
  private toTheirs(messages: readonly AnthropicMessage[]): ModelMessage[] {
    const list: any[] = [];
    for (const message of messages) {
      const { parts } = this.pieces(message);
      const role = parts.some(({ type }) => type === 'tool-result') ? 'tool' : message.role;
      if (role === 'tool' && list.at(-1)?.role === 'tool') list.at(-1).content.push(...parts);
      else list.push({ role, content: [...parts] });
    }
    return list;
  }

  private pieces(message: AnthropicMessage): Pieces {
    let pieces = this.theirs.get(message);
    if (!pieces) {
      const { id, content } = message;
      const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
      // What a part was is written into it, where copies of it keep it.
      const parts = blocks.map((block, at) => ({
        ...this.part(block),
        providerOptions: { ctxbench: { id, at } },
      }));
      this.theirs.set(message, (pieces = { blocks, parts }));
    }
    return pieces;
  }

  private part(block: any): Part {
    switch (block.type) {
      case 'text': return { type: 'text', text: block.text };
      case 'thinking': return { type: 'reasoning', text: block.thinking };
      case 'redacted_thinking': return { type: 'reasoning', text: '' };
      case 'image': return { type: 'image', image: block.source.data ?? block.source.url };
      case 'tool_use': {
        const { id, name, input } = block;
        this.tools.set(id, name);
        return { type: 'tool-call', toolCallId: id, toolName: name, input };
      }
      case 'tool_result': {
        const toolName = this.tools.get(block.tool_use_id) ?? '';
        const type = block.is_error ? 'error-text' : 'text';
        const output = { type, value: textOf(block.content) };
        return { type: 'tool-result', toolCallId: block.tool_use_id, toolName, output };
      }
      default: throw new Error(`the AI SDK has no part for a block ${block.type}`);
    }
  }

  private toOurs(list: ModelMessage[], known: readonly AnthropicMessage[]): AnthropicMessage[] {
    const byId = new Map(known.map((message) => [message.id, message]));
    return list.flatMap(({ role, content }) => {
      const ours: { before?: AnthropicMessage; now: AnthropicBlock[] }[] = [];
      const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
      for (const part of parts as Part[]) {
        const { id, at } = part.providerOptions?.ctxbench ?? {};
        const before = byId.get(id);
        const was = before && this.pieces(before);
        const block = was?.parts[at] === part ? was!.blocks[at]! : toBlock(part, was?.blocks[at]);
        if (before && ours.at(-1)?.before === before) ours.at(-1)!.now.push(block);
        else ours.push({ before, now: [block] });
      }
      return ours.map(({ before, now }): AnthropicMessage => {
        if (!before) return { role: role === 'assistant' ? role : 'user', content: now };
        const { blocks } = this.pieces(before);
        const same = blocks.length === now.length && blocks.every((block, at) => block === now[at]);
        return same ? before : { ...before, content: now };
      });
    });
  }
}

/** A part that is new or altered. */
function toBlock(part: Part, before: AnthropicBlock | undefined): AnthropicBlock {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if (part.type === 'tool-call' && before) return { ...before, input: part.input };
  if (part.type === 'tool-result' && before) {
    const { type, value } = part.output;
    return { ...before, content: /text$/.test(type) ? value : JSON.stringify(value) };
  }
  throw new Error(`a part ${part.type} of prepareStep is none of the conversation's and no text`);
}

function textOf(content: undefined | string | { text?: string }[]): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ text = '' }) => text).join('\n');
}

if (realpathSync(process.argv[1]!) === fileURLToPath(import.meta.url)) {
  await run(new AiSdk(process.argv[2] ?? 'prune', process.argv[3]));
}
