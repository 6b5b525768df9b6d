/** What the code of the deployment declares, what of it is in effect, and what operators have changed. */

import { findCron } from '../../across/crons';
import { applyDeclared, digestOf, textOf } from '../../across/deployment';
import { VERSION } from '../../config';
import { declaration } from '../../declaration';
import { inParallel } from '../../durable/parallel';
import { optional, readBoolean, readList, readName } from '../../job/envelope/fields';
import { invalidRequest, unwrap } from '../../job/errors';
import type { LimitOverride } from '../../job/limits/policy';
import { formatInstant } from '../../job/time';
import type { StoredDeclaration } from '../../rpc/deployment';
import { MAX_QUEUES_AT_ONCE } from '../../rpc/directory';
import { directoryObject, queueObject } from '../../rpc/stubs';
import { type AppContext, json } from '../context';
import { renderQueueConfig } from '../queues/config';
import { pendingQueues } from '../queues/pending';
import { renderOverride, shownKey } from '../rate-limits/routes';
import { readOptionalBody } from '../request/body';
import { get, post, type Route } from '../route';

/** Routes below `/ojs/v1/admin`. */
export const adminDeploymentRoutes: readonly Route[] = [
  get('/deployment', show, { asItIs: true }),
  post('/deployment/apply', apply, { audit: 'deployment.apply' }),
];

async function show(c: AppContext): Promise<Response> {
  return json(c, await describe(c, await directoryObject(c.env).declaration()));
}

/** Puts into effect what is declared. `reset_crons` names schedules that are put back as they are declared. */
async function apply(c: AppContext): Promise<Response> {
  const body = (await readOptionalBody(c)) ?? {};
  const { crons } = declaration();
  const all = body.reset_crons === true && optional(body, 'reset_crons', readBoolean);
  const names = all ? Object.keys(crons) : (optional(body, 'reset_crons', readList(1000, readName(255))) ?? []);
  const unknown = names.find((name) => !Object.hasOwn(crons, name));
  if (unknown !== undefined) throw invalidRequest('reset_crons', `The code declares no schedule ${unknown}.`);
  const { declaration: stored, untold } = await applyDeclared(c.env, declaration(), Date.now(), new Set(names));
  return json(c, { ...(await describe(c, stored)), ...pendingQueues(untold) });
}

async function describe(c: AppContext, stored: StoredDeclaration | null): Promise<Record<string, unknown>> {
  const declared = declaration();
  const digest = await digestOf(declared);
  const nothing =
    stored === null && Object.keys({ ...declared.queues, ...declared.limits, ...declared.crons }).length === 0;
  const overrides = await directoryObject(c.env).limitOverrides();
  const limits = Object.entries(declared.limits).map(([key, limit]) =>
    shownLimit(shownKey(c, key), limit, overrides[key]),
  );
  const [queues, crons] = await Promise.all([
    inParallel(Object.keys(declared.queues).slice(0, MAX_QUEUES_AT_ONCE), (name) => shownQueue(c, name)),
    inParallel(Object.keys(declared.crons), (name) => shownCron(c, name, stored)),
  ]);
  return {
    version: VERSION,
    digest,
    in_effect: nothing || stored?.digest === digest,
    applied_at: stored ? formatInstant(stored.applied_at) : null,
    handlers: declared.handlers ? [...declared.handlers.types] : [],
    queues,
    queues_total: Object.keys(declared.queues).length,
    limits,
    crons,
  };
}

/** `changed`: settings that an operator made, which go before those of the code. */
async function shownQueue(c: AppContext, name: string): Promise<Record<string, unknown>> {
  const { own, declared = {} } = unwrap(await queueObject(c.env, name).settings());
  const [operator, code] = [renderQueueConfig(own), renderQueueConfig(declared)];
  return { name, declared: code, operator, changed: Object.keys(operator).filter((setting) => setting in code) };
}

function shownLimit(key: string, declared: LimitOverride, override: LimitOverride | undefined) {
  return { key, declared: renderOverride(declared), ...(override && { override: renderOverride(override) }) };
}

/** `state`: as declared, `changed` or `deleted` by an operator, or `pending` until it is put into effect. */
async function shownCron(c: AppContext, name: string, stored: StoredDeclaration | null) {
  const before = stored && Object.hasOwn(stored.crons, name) ? stored.crons[name] : undefined;
  if (before === undefined) return { name, state: 'pending' };
  const existing = (await findCron(c.env, name))?.definition;
  if (!existing) return { name, state: 'deleted' };
  return { name, state: before === textOf(existing) ? 'declared' : 'changed', enabled: existing.enabled };
}
