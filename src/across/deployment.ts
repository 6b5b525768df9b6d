/**
 * Applies what a deployment's code declares: settings and limits to all queues, schedules to their jobs' queues.
 * Repeating it costs one read.
 *
 * Operators' changes are kept: settings and limits as a layer above; a schedule that differs from what was applied,
 * or is gone, counts as changed. Whether one is enabled is always the operator's decision.
 */
import type { Env } from '../config';
import type { Declared } from '../declaration';
import { hexOf } from '../job/bytes';
import { type CronDefinition, parseCron } from '../job/cron/definition';
import { ApiError, invalidConfiguration } from '../job/errors';
import { own } from '../job/own';
import type { StoredDeclaration } from '../rpc/deployment';
import { directoryObject } from '../rpc/stubs';
import { deleteCron, findCron, ifThere, saveCron } from './crons';
import { applyObservers, type ObserversAgain, withVariables } from './declared-observers';

/** The group of schedules that the code declares. */
export const DECLARED_GROUP = 'deployment';

/** What happens to a declared schedule. */
export type CronChange = 'save' | 'keep';

/**
 * What happens to a declared schedule. @param before as last applied; undefined: first time @param existing as it is
 * now
 * @param declared as it is declared now
 */
export function cronChange(
  before: string | null | undefined,
  existing: CronDefinition | undefined,
  declared: CronDefinition,
): CronChange {
  if (typeof before === 'string') return existing !== undefined && before === textOf(existing) ? 'save' : 'keep';
  const isFree = existing === undefined || textOf({ ...existing, group: DECLARED_GROUP }) === textOf(declared);
  return isFree ? 'save' : 'keep';
}

/** In the form for comparison: without what an operator may change at any time. */
export function textOf({ enabled: _, ...definition }: CronDefinition): string {
  return JSON.stringify(Object.entries(definition).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A digest of what is declared (SHA-256), including the values of variables. */
export async function digestOf(declared: Declared, env: Env): Promise<string> {
  const { queues, limits, crons, alerts } = declared;
  const webhooks = declared.webhooks && withVariables(declared.webhooks, env);
  const bytes = new TextEncoder().encode(JSON.stringify({ queues, limits, crons, webhooks, alerts }));
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return hexOf(hash.subarray(0, 8));
}

export interface Applied {
  declaration: StoredDeclaration | null;
  untold: number;
}

/**
 * Applies it, unless that is done. @param again schedules to reset @param observers webhooks and alert rules to reset
 * @throws {ApiError} 500 `invalid_configuration` naming the schedule that is wrong; nothing was changed then
 */
export async function applyDeclared(
  env: Env,
  declared: Declared,
  now: number,
  again: ReadonlySet<string> = new Set(),
  observers: ObserversAgain = { webhooks: new Set(), alerts: new Set() },
): Promise<Applied> {
  const digest = await digestOf(declared, env);
  const directory = directoryObject(env);
  const before = await directory.declaration();
  const isAsked = again.size + observers.webhooks.size + observers.alerts.size > 0;
  if (before?.digest === digest && !before.problems && !isAsked) return { declaration: before, untold: 0 };
  if (!before && declaresNothing(declared)) return { declaration: null, untold: 0 };
  const definitions = await definitionsOf(declared, now);
  const { queues, limits } = declared;
  const known = before?.crons ?? {};
  const next = { queues: { ...queues }, limits, applied_at: now };
  // The queues receive their settings before a schedule brings them work. Until all is done no digest matches, not even
  // that of the code before, which may be deployed again. So what is cut off is repeated.
  const untold = await directory.declare({ ...before, ...next, digest: '', crons: known });
  const crons: StoredDeclaration['crons'] = {};
  for (const definition of definitions) {
    crons[definition.name] = await putCron(env, definition, own(known, definition.name), again.has(definition.name));
  }
  for (const name of Object.keys(known)) {
    if (!Object.hasOwn(declared.crons, name)) await withdrawCron(env, name, known[name]);
  }
  const put = await applyObservers(env, declared, before, observers);
  for (const problem of put.problems ?? [])
    console.error(`tocsin: what the code declares is not in effect: ${problem}`);
  const declaration = { ...next, digest, crons, ...put };
  await directory.declare(declaration);
  return { declaration, untold };
}

/** Does the code declare nothing that could be applied? */
export function declaresNothing({ queues, limits, crons, webhooks, alerts }: Declared): boolean {
  return [queues, limits, crons, webhooks, alerts].every((kind) => Object.keys(kind ?? {}).length === 0);
}

/** @returns as it was applied, now or before; null: there was another one of that name */
async function putCron(
  env: Env,
  declared: CronDefinition,
  before: string | null | undefined,
  isWanted: boolean,
): Promise<string | null> {
  const view = await findCron(env, declared.name);
  const existing = view?.definition;
  if (!isWanted && cronChange(before, existing, declared) === 'keep') return before ?? null;
  await saveCron(env, { ...declared, enabled: existing?.enabled ?? declared.enabled }, view);
  return textOf(declared);
}

async function withdrawCron(env: Env, name: string, before: string | null | undefined): Promise<void> {
  const existing = (await findCron(env, name))?.definition;
  if (existing && before === textOf(existing)) await ifThere(deleteCron(env, name));
}

async function definitionsOf({ crons }: Declared, now: number): Promise<CronDefinition[]> {
  const definitions: CronDefinition[] = [];
  for (const [name, input] of Object.entries(crons)) {
    try {
      definitions.push(await parseCron({ ...input, name }, { now, group: DECLARED_GROUP }));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw invalidConfiguration(`crons.${name}: ${error.data.message}`, { option: `crons.${name}` });
    }
  }
  return definitions;
}
