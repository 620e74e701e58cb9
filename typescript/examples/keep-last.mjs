// Shows what the user said and the last `keep` messages: ctxbench --strategy 'mine=exec:node …'
import { run, strategy } from 'ctxbench';

function keepLast(messages, { settings }) {
  let from = Math.max(0, messages.length - (settings.keep ?? 20));
  // A result may not be parted from its call, which stands before it.
  while (messages[from]?.role === 'tool') from--;
  return messages.filter((message, at) => message.role === 'user' || at >= from);
}

run(strategy(keepLast, { version: '1' }));
