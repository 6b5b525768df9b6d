/**
 * Applies what a deployment's code declares: settings and limits to all queues, schedules to their jobs' queues.
 * Repeating it costs one read.
 *
 * Operators' changes are kept: settings and limits as a layer above; a schedule that differs from what was applied,
 * or is gone, counts as changed. Whether one is enabled is always the operator's decision.
 */
import type { Env } from '../config';
import type { Declared } from '../declaration';
import { hexOf, sha256Of } from '../job/bytes';
import { ApiError, invalidConfiguration } from '../job/errors';
import type { CronView } from '../rpc/cron';
import type { StoredDeclaration } from '../rpc/deployment';
import { directoryObject } from '../rpc/stubs';
import { type CronDefinition, parseCron } from '../schedules/definition';
import { deleteCron, findCron, ifThere, saveCron } from './crons';
import { applyObservers, type ObserversAgain, withVariables } from './declared-observers';
import { Reconciliation } from './reconcile';

/** The group of schedules that the code declares. */
export const DECLARED_GROUP = 'deployment';

/** In the form for comparison: without what an operator may change at any time. */
export const textOf = ({ enabled: _, ...definition }: CronDefinition): string =>
  JSON.stringify(Object.entries(definition).sort(([a], [b]) => (a < b ? -1 : 1)));

/** A digest of what is declared (SHA-256), including the values of variables. */
export async function digestOf(declared: Declared, env: Env): Promise<string> {
  const { queues, limits, crons, alerts } = declared;
  const webhooks = declared.webhooks && withVariables(declared.webhooks, env);
  const hash = await sha256Of(JSON.stringify({ queues, limits, crons, webhooks, alerts }));
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
  const crons = new Reconciliation<CronDefinition, CronView>({
    ...{ entries: definitions, before: known, again },
    find: (name) => findCron(env, name),
    textOf: ({ definition }) => textOf(definition),
    isForeign: ({ definition }, entry) => textOf({ ...definition, group: DECLARED_GROUP }) !== textOf(entry),
    put: async (_, entry, view) => {
      await saveCron(env, { ...entry, enabled: view?.definition.enabled ?? entry.enabled }, view);
      return textOf(entry);
    },
    remove: ({ definition }) => ifThere(deleteCron(env, definition.name)),
  });
  await crons.put();
  await crons.withdraw();
  const put = await applyObservers(env, declared, before, observers);
  for (const problem of put.problems ?? [])
    console.error(`tocsin: what the code declares is not in effect: ${problem}`);
  const declaration = { ...next, digest, crons: crons.applied, ...put };
  await directory.declare(declaration);
  return { declaration, untold };
}

/** Does the code declare nothing that could be applied? */
export const declaresNothing = ({ queues, limits, crons, webhooks, alerts }: Declared): boolean =>
  [queues, limits, crons, webhooks, alerts].every((kind) => Object.keys(kind ?? {}).length === 0);

async function definitionsOf({ crons }: Declared, now: number): Promise<Record<string, CronDefinition>> {
  const definitions: Record<string, CronDefinition> = {};
  for (const [name, input] of Object.entries(crons)) {
    try {
      definitions[name] = await parseCron({ ...input, name }, { now, group: DECLARED_GROUP });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw invalidConfiguration(`crons.${name}: ${error.data.message}`, { option: `crons.${name}` });
    }
  }
  return definitions;
}
