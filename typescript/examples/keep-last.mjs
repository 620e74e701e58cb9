// Shows the first message and the last `keep` ones: ctxbench --strategy 'mine=exec{keep=8}:node …'
import { run, strategy } from 'ctxbench';

function keepLast(messages, { settings }) {
  let from = messages.length - (settings.keep ?? 20);
  // A result may not be parted from its call, which stands before it.
  while (from > 1 && messages[from].role === 'tool') from--;
  return from > 1 ? [messages[0], ...messages.slice(from)] : messages;
}

run(strategy(keepLast, { version: '1' }));
