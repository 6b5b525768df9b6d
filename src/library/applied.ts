/**
 * What the code declares, put into effect: once in the life of an isolate, before it serves its first request. So it holds for
 * every job that comes after the deploy.
 */
import { applyDeclared } from '../across/deployment';
import type { Env } from '../config';
import { declaration } from '../declaration';
import { Backoff } from '../durable/backoff';
import { ApiError } from '../job/errors';

const backoff = new Backoff(Date.now);
let wrong: ApiError | undefined;
let isApplied = false;

/**
 * Waits until what the code declares is in effect. Where it cannot be put into effect just now, requests are served as before
 * it, and it is tried again.
 * @throws {ApiError} 500 `invalid_configuration`: what is declared is wrong
 */
export async function applied(env: Env): Promise<void> {
  if (isApplied) return;
  if (wrong) throw wrong;
  // Each request waits for its own: one must not wait for what another one has asked for.
  await backoff.ask(
    () => apply(env),
    (error) => {
      console.error('tocsin: what the code declares is not in effect yet:', error);
    },
  );
  if (wrong) throw wrong;
}

/** What is stored was emptied: the next request puts into effect again what the code declares. */
export function forgetApplied(): void {
  isApplied = false;
}

async function apply(env: Env): Promise<void> {
  try {
    await applyDeclared(env, declaration(), Date.now());
    isApplied = true;
  } catch (error) {
    if (!(error instanceof ApiError) || error.data.code !== 'invalid_configuration') throw error;
    wrong = error;
  }
}
