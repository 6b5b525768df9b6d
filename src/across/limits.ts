/** The keys that limit jobs, over all queues: within each, or over all by their desk. Overrides hold in all. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { defined } from '../job/envelope/fields';
import { unwrap } from '../job/errors';
import type { LimitOverride } from '../job/limits/policy';
import { MINUTE_MS } from '../metrics/series';
import type { AllowanceView } from '../rpc/allowances';
import type { RateLimitView } from '../rpc/limits';
import { deskObject, directoryObject, queueObject } from '../rpc/stubs';
import { knownIfFew, queuesOf } from './queues';

export interface LimitKey {
  key: string;
  views: RateLimitView[];
  override?: LimitOverride;
  /** As its desk sees it, if it counts in all queues. */
  allowance?: AllowanceView;
}

/** Every known key, in order, and what is needed to look at some of them. */
export interface LimitKeys {
  keys: string[];
  queues: string[];
  overrides: ReadonlyMap<string, LimitOverride>;
}

/** All keys, or those of some queues. @throws {ApiError} 422 when there are too many queues to ask them all */
export async function listLimitKeys(env: Env, named?: readonly string[]): Promise<LimitKeys> {
  const [queues, overrides] = await Promise.all([queuesOf(env, { queues: named }), overridesByKey(env)]);
  const used = await inParallel(queues, (name) => queueObject(env, name).limitKeys());
  const keys = [...new Set([...used.flat(), ...overrides.keys()])].sort();
  return { keys, queues: queues.filter((_, index) => used[index]?.length), overrides };
}

export async function readLimitKeys(env: Env, { keys, queues, overrides }: LimitKeys): Promise<LimitKey[]> {
  const views = await viewsOf(env, keys, queues);
  const known = await inParallel(keys, (key) => limitKey(env, key, views.get(key) ?? [], overrides.get(key)));
  return known.filter(({ views: own, override }) => own.length > 0 || override !== undefined);
}

async function limitKey(
  env: Env,
  key: string,
  views: RateLimitView[],
  override: LimitOverride | undefined,
): Promise<LimitKey> {
  const isShared = views.some(({ scope }) => scope === 'deployment');
  const allowance = isShared ? ((await deskObject(env, key).allowance()) ?? undefined) : undefined;
  return defined({ key, views, override, allowance });
}

/** One key; undefined when it is not known. @throws {ApiError} 422 when there are too many queues to ask them all */
export async function readLimitKey(env: Env, key: string, named?: readonly string[]): Promise<LimitKey | undefined> {
  const [queues, overrides] = await Promise.all([queuesOf(env, { queues: named }), overridesByKey(env)]);
  return (await readLimitKeys(env, { keys: [key], queues, overrides }))[0];
}

/**
 * Overrides a key's limits. A limit without a period keeps each queue's, else another queue's, else a minute (the
 * unchanged admin UI sends none). @returns the key, and how many queues have not received it yet
 */
export async function overrideLimit(
  env: Env,
  key: string,
  given: LimitOverride,
): Promise<{ shown: LimitKey; untold: number }> {
  const override = await withPeriod(env, key, given);
  const { untold } = unwrap(await directoryObject(env).overrideLimit(key, override));
  return { shown: await limitKey(env, key, await viewsOfKey(env, key), override), untold };
}

export async function removeOverride(env: Env, key: string): Promise<boolean> {
  const { existed } = unwrap(await directoryObject(env).overrideLimit(key, null));
  const views = await viewsOfKey(env, key);
  return existed || views.length > 0;
}

async function withPeriod(env: Env, key: string, override: LimitOverride): Promise<LimitOverride> {
  if (!override.limit || override.period_ms !== undefined) return override;
  const views = await viewsOfKey(env, key);
  const usual = views.find(({ own_period_ms }) => own_period_ms !== undefined)?.own_period_ms;
  return usual === undefined ? { ...override, period_ms: MINUTE_MS } : { ...override, usual_period_ms: usual };
}

const overridesByKey = async (env: Env): Promise<Map<string, LimitOverride>> =>
  new Map(Object.entries(await directoryObject(env).limitOverrides()));

/** The state of a key in all queues; none if there are too many to ask them all. */
const viewsOfKey = async (env: Env, key: string): Promise<RateLimitView[]> =>
  (await viewsOf(env, [key], (await knownIfFew(env)) ?? [])).get(key) ?? [];

async function viewsOf(
  env: Env,
  keys: readonly string[],
  queues: readonly string[],
): Promise<Map<string, RateLimitView[]>> {
  if (keys.length === 0) return new Map();
  const answers = await inParallel(queues, (name) => queueObject(env, name).rateLimits([...keys]));
  return Map.groupBy(answers.flat(), ({ key }) => key);
}
