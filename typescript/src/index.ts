/** Strategies for ctxbench in TypeScript or JavaScript. See README.md, and docs/exec.md. */
export * from './protocol.js';
export { keep, strategy } from './strategy.js';
export type { Answer, Ask, Asked, Context, Keep, Options, Session, Strategy } from './strategy.js';
export { run, type Streams } from './run.js';
export { RpcError } from './wire.js';
