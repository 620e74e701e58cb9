/** JSON-RPC 2.0, one message per line, in both directions. */
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

type Line = {
  jsonrpc: '2.0';
  id?: number | string | null;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
};

/** An error object, as it came or as it is to be sent. */
export class RpcError extends Error {
  constructor(readonly code: number, message: string, readonly data?: any) {
    super(message);
    this.name = 'RpcError';
  }
}

type Waiting = { resolve: (result: any) => void; reject: (error: Error) => void };

export class Wire {
  private waiting = new Map<number, Waiting>();
  private last: Promise<unknown> = Promise.resolve();
  private next = 0;

  constructor(private output: Writable) {}

  /** Asks ctxbench. Calls made at once are sent one after the other, as the protocol wants. */
  call(method: string, params: object): Promise<any> {
    const turn = this.last.then(() => new Promise((resolve, reject) => {
      const id = ++this.next;
      this.waiting.set(id, { resolve, reject });
      this.send({ jsonrpc: '2.0', id, method, params });
    }));
    this.last = turn.catch(() => {});
    return turn;
  }

  notify(method: string, params: object): void {
    this.send({ jsonrpc: '2.0', method, params });
  }

  /** Answers every call of `input` with what `handle` returns, until `input` or `handle` ends. */
  async serve(input: Readable, handle: (method: string, params: any) => unknown): Promise<void> {
    for await (const text of createInterface({ input })) {
      if (!text.trim()) continue;
      const line = this.parse(text);
      if (!line) continue;
      if (line.method === undefined) {
        this.settle(line);
        continue;
      }
      const answered = this.answer(line, handle);
      if (line.method === 'shutdown') return void (await answered);
    }
  }

  private async answer(line: Line, handle: (method: string, params: any) => unknown) {
    const { id = null, method = '' } = line;
    try {
      const result = (await handle(method, line.params ?? {})) ?? {};
      await this.send({ jsonrpc: '2.0', id, result });
    } catch (thrown) {
      await this.send({ jsonrpc: '2.0', id, error: asError(thrown) });
    }
  }

  private settle(line: Line): void {
    const waiting = this.waiting.get(line.id as number);
    if (!waiting) return;
    this.waiting.delete(line.id as number);
    if (line.error) {
      waiting.reject(new RpcError(line.error.code, line.error.message, line.error.data));
    } else {
      waiting.resolve(line.result);
    }
  }

  private parse(text: string): Line | undefined {
    try {
      return JSON.parse(text);
    } catch (thrown) {
      const message = `not a line of JSON: ${(thrown as Error).message}`;
      void this.send({ jsonrpc: '2.0', id: null, error: { code: -32700, message } });
      return undefined;
    }
  }

  private send(line: Line): Promise<void> {
    return new Promise((done) => this.output.write(encode(line) + '\n', () => done()));
  }
}

/**
 * Half of an emoji, as `text.slice(0, n)` may leave it, is valid in a JavaScript string and not in
 * UTF-8: it becomes U+FFFD. `JSON.stringify` writes such halves, and nothing else, as `\udxxx`.
 */
export function encode(value: unknown): string {
  const text = JSON.stringify(value);
  if (!text.includes('\\ud')) return text;
  return text.replace(/\\(?:u(d[89a-f]..)|.)/g, (all, half) => (half ? '\\ufffd' : all));
}

/** An exception of the strategy: its words, and the first place in code of the user's, if any. */
function asError(thrown: unknown): { code: number; message: string; data?: unknown } {
  if (thrown instanceof RpcError && thrown.code !== -32000) {
    return { code: thrown.code, message: thrown.message };
  }
  if (!(thrown instanceof Error)) return { code: -32603, message: String(thrown) };
  console.error(thrown.stack);
  const kit = new URL('.', import.meta.url).href;
  const stack = (thrown.stack ?? '').split('\n');
  const places = stack.filter((line) => /^\s+at .*:\d+:\d+\)?$/.test(line));
  const place =
    places.find((line) => !/node:|node_modules/.test(line) && !line.includes(kit)) ?? places[0];
  const at = place ? ` (${place.trim()})` : '';
  return { code: -32603, message: `${thrown.name}: ${thrown.message}${at}` };
}
