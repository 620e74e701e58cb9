// A `prepareStep` as one would pass it to `generateText`, with a limit from the settings:
//     exec{limit=60%}:node typescript/dist/adapters/ai-sdk.js prepare-step prepare-step.mjs
import { pruneMessages } from 'ai';

export default function prepareStep({ messages, steps, runtimeContext }) {
  const { scale, limit = 100_000 * scale } = runtimeContext;
  const tokens = steps.at(-1)?.usage.inputTokens ?? JSON.stringify(messages).length / 4;
  if (tokens < limit) return undefined;
  return { messages: pruneMessages({ messages, toolCalls: 'before-last-6-messages' }) };
}
