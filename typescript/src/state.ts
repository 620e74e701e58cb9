/**
 * The messages as ctxbench holds them, and the difference between them and an answer.
 *
 * Messages are frozen, so that "the same object" means "unchanged": a call that changes nothing
 * costs what was added, however long the context is.
 */
import { RpcError } from './wire.js';
import { Keep, type Answer } from './strategy.js';
import type { Details, Identified } from './protocol.js';

type Entry = string | { id?: string; message: object };

export class State<M extends Identified> {
  messages: M[] = [];
  private byId = new Map<string, M>();
  private unnamed: M[] = [];

  /** Takes in what a `context` call says; new texts of the last answer learn their ids first. */
  take(added: { id: string; message: object }[] = [], newIds: string[] = []): void {
    if (newIds.length && this.unnamed.length) this.name(newIds);
    this.unnamed = [];
    for (const { id, message } of added) {
      const one = freeze({ ...message, id } as unknown as M);
      this.messages.push(one);
      this.byId.set(id, one);
    }
  }

  /** The result of a `context` call. */
  answer(answer: Answer<M>, scope: 'state' | 'request' = 'state', length: number): object {
    const { messages, details }: { messages: readonly M[]; details: Details } =
      answer instanceof Keep ? answer : { messages: answer ?? this.messages, details: {} };
    if (!Array.isArray(messages)) {
      throw new TypeError(`a list of messages was expected, not ${typeof messages}`);
    }
    if (this.messages.length !== length) {
      throw new TypeError('the list of messages was changed in place; return a new list instead');
    }
    if (this.same(messages)) {
      const { trigger, breakpoints, params } = details;
      return { unchanged: true, trigger, breakpoints, params };
    }
    const result = { keep: this.entries(messages), scope, ...details };
    if (result.scope === 'state') this.replace(messages);
    return result;
  }

  entries(messages: readonly (M | string)[]): Entry[] {
    return messages.map((message) => (typeof message === 'string' ? message : this.entry(message)));
  }

  /** Nothing after `to` stays. */
  rewind(to: string | null): void {
    const end = this.messages.findIndex((message) => message.id === to) + 1;
    if (to !== null && end === 0) {
      const otherwise = 'without a method `rewind` the program is started anew with what is left';
      throw new RpcError(-32602, `rewind to ${to}, which is no longer in the state; ${otherwise}`);
    }
    for (const message of this.messages.splice(end)) this.byId.delete(message.id!);
  }

  private entry(message: M): Entry {
    const { id, ...body } = message;
    if (id === undefined) return { message: body };
    const known = this.byId.get(id);
    return known && (known === message || alike(known, message)) ? id : { id, message: body };
  }

  private same(messages: readonly M[]): boolean {
    if (messages === this.messages) return true;
    return (
      messages.length === this.messages.length &&
      messages.every((message, at) => message === this.messages[at])
    );
  }

  private replace(messages: readonly M[]): void {
    this.messages = messages.map((message) => freeze(message));
    this.byId = new Map();
    for (const message of this.messages) {
      if (message.id !== undefined) this.byId.set(message.id, message);
      else this.unnamed.push(message);
    }
  }

  private name(ids: string[]): void {
    const named = new Map(this.unnamed.map((message, at) => [message, ids[at]]));
    this.messages = this.messages.map((message) => {
      const id = named.get(message);
      if (id === undefined) return message;
      const one = Object.freeze({ ...message, id });
      this.byId.set(id, one);
      return one;
    });
  }
}

/** A copy in which nothing was altered is the message itself. */
function alike(one: object, other: object): boolean {
  const keys = Object.keys(other) as never[];
  return keys.length === Object.keys(one).length && keys.every((key) => one[key] === other[key]);
}

export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
