/** Applies the code's declarations once per isolate: before its first request, or alongside its first other event. */
import { applyDeclared } from '../across/deployment';
import { checkPlace } from '../across/place';
import type { Env } from '../config';
import { declaration } from '../declaration';
import { Backoff, isWithin } from '../durable/backoff';
import { ApiError } from '../job/errors';

const backoff = new Backoff(Date.now);
let wrong: ApiError | undefined;
let isApplied = false;

/**
 * Waits until the declarations are in effect; after a passing failure, requests are served and it is tried again.
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

/** A check beside an event that has not ended after this, ms, was cut off with its event. */
const CUT_OFF_AFTER_MS = 30_000;
let asked: number | undefined;

/** Applies it alongside another event, which neither waits nor fails: one read per isolate if nothing changed. */
export function applyBeside(env: Env, ctx: Pick<ExecutionContext, 'waitUntil'>): void {
  const now = Date.now();
  if (isApplied || wrong || backoff.isResting) return;
  if (asked !== undefined && isWithin(asked, CUT_OFF_AFTER_MS, now)) return;
  asked = now;
  ctx.waitUntil(
    applied(env)
      .catch((error: unknown) => console.error('tocsin: what the code declares cannot be put into effect:', error))
      .finally(() => {
        asked = undefined;
      }),
  );
}

/** What is stored was emptied: the next request puts into effect again what the code declares. */
export function forgetApplied(): void {
  isApplied = false;
}

/** For tests: applies the declarations without webhooks and alert rules. @throws {ApiError} `invalid_configuration` */
export async function applyQuietly(env: Env): Promise<void> {
  await applyDeclared(env, { ...declaration(), webhooks: {}, alerts: {} }, Date.now());
  isApplied = true;
}

async function apply(env: Env): Promise<void> {
  try {
    await checkPlace(env);
    await applyDeclared(env, declaration(), Date.now());
    isApplied = true;
  } catch (error) {
    if (!(error instanceof ApiError) || error.data.code !== 'invalid_configuration') throw error;
    wrong = error;
  }
}
