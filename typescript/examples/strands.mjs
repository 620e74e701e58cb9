/**
 * Strands Agents for TypeScript, as installed (`npm install @strands-agents/sdk`):
 *
 *     exec{compressionThreshold=0.7}:node …/strands.mjs summarizing
 *     exec{windowSize=40}:node …/strands.mjs sliding-window
 *
 * What runs is `reduce` after a refused prompt, and with `compressionThreshold` before a request
 * above that share of the window. A sliding window is also applied after a turn, as the agent does.
 */
import {
  ContextWindowOverflowError, Message, SlidingWindowConversationManager,
  SummarizingConversationManager, TextBlock, ToolResultBlock, ToolUseBlock,
} from '@strands-agents/sdk';
import { keep, run } from '../dist/index.js';

const MANAGERS = {
  summarizing: SummarizingConversationManager, 'sliding-window': SlidingWindowConversationManager,
};

class Strands {
  version = '1.16';
  dialect = 'anthropic';
  joinResults = true;
  agent = { messages: [] };
  /** By message of Strands: the id here, and its first content. */
  known = new Map();
  seen = new Set();
  own = new Map();

  constructor(kind) {
    if (!MANAGERS[kind]) throw new Error(`expected one of ${Object.keys(MANAGERS).join(', ')}`);
    [this.kind, this.name] = [kind, `strands-js ${kind}`];
  }

  start(session) {
    const { compressionThreshold, ...options } = session.settings;
    [this.threshold, this.options] = [compressionThreshold, options];
    this.manager = new MANAGERS[this.kind](options);
    const adapter = this;
    this.model = {
      async *streamAggregated(messages, { systemPrompt }) {
        const asked = messages.map((m) => adapter.entry(m));
        const { text } = await session.complete({ messages: asked, system: systemPrompt });
        const content = [new TextBlock(text)];
        return { message: new Message({ role: 'assistant', content }), stopReason: 'endTurn' };
      },
    };
  }

  async context(messages, ctx) {
    this.take(messages);
    const { agent, model } = this;
    if (ctx.reason === 'overflow') {
      const error = new ContextWindowOverflowError('too long');
      if (!await this.manager.reduce({ agent, model, error })) return undefined;
    } else if (this.threshold && await ctx.countTokens() >= this.threshold * ctx.model.window) {
      await this.manager.reduce({ agent, model });
    }
    return keep(agent.messages.map((m) => this.entry(m)));
  }

  async afterTurn(messages) {
    this.take(messages);
    const { agent, model, kind } = this;
    const { windowSize = 40 } = this.options;
    if (kind === 'sliding-window' && agent.messages.length > windowSize) {
      await this.manager.reduce({ agent, model });
    }
    return keep(agent.messages.map((m) => this.entry(m)));
  }

  take(messages) {
    for (const m of messages) {
      if (this.seen.has(m.id)) continue;
      this.seen.add(m.id);
      const own = [...this.own].find(([, one]) => text(one.content) === text(m.content));
      if (own) {
        this.own.set(own[0], m); // It has an id now.
        continue;
      }
      const made = new Message({ role: m.role, content: blocks(m.content) });
      this.known.set(made, { message: m, before: JSON.stringify(made.content) });
      this.agent.messages.push(made);
    }
  }

  entry(m) {
    const { message, before } = this.known.get(m) ?? {};
    if (message && before === JSON.stringify(m.content)) return message;
    if (message) return { ...message, content: parts(m.content) };
    if (!this.own.has(m)) this.own.set(m, { role: m.role, content: parts(m.content) });
    return this.own.get(m);
  }
}

const text = (content) => (typeof content === 'string' ? content : JSON.stringify(content));

function blocks(content) {
  if (typeof content === 'string') return [new TextBlock(content)];
  return content.map((p) => {
    if (p.type === 'tool_use') {
      return new ToolUseBlock({ toolUseId: p.id, name: p.name, input: { ...p.input } });
    }
    if (p.type !== 'tool_result') return new TextBlock(p.text ?? p.thinking ?? `[${p.type}]`);
    const status = p.is_error ? 'error' : 'success';
    return new ToolResultBlock({
      toolUseId: p.tool_use_id, status, content: blocks(p.content ?? ''),
    });
  });
}

function parts(content) {
  return content.map((b) => {
    if (b.type === 'toolUseBlock') {
      return { type: 'tool_use', id: b.toolUseId, name: b.name, input: b.input };
    }
    if (b.type !== 'toolResultBlock') return { type: 'text', text: b.text };
    return { type: 'tool_result', tool_use_id: b.toolUseId, content: parts(b.content) };
  });
}

await run(new Strands(process.argv[2] ?? 'summarizing'));
