// A tiny runner: checks are functions, each prints its name when it holds.
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';

export { assert };
export const [base, folder] = process.argv.slice(2);

/** A package of the folder in which the SDKs are installed. */
export const load = createRequire(`${folder}/package.json`);

export async function run(checks) {
  let failed = 0;
  for (const check of checks) {
    try {
      await check();
      console.log(`ok ${check.name}`);
    } catch (e) {
      failed += 1;
      console.log(`FAILED ${check.name}\n${e.stack ?? e}`);
    }
  }
  console.log(`${checks.length - failed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

/** The exception of exactly that class which a call raises. */
export async function raises(kind, call) {
  let value;
  try {
    value = await call();
  } catch (e) {
    assert.equal(e.constructor.name, kind.name, e.stack);
    return e;
  }
  assert.fail(`nothing raised, expected ${kind.name}: ${JSON.stringify(value)}`);
}

export const fault = (words) => ({ headers: { 'x-ctxbench-fault': words } });

export async function all(stream) {
  const seen = [];
  for await (const item of stream) seen.push(item);
  return seen;
}
