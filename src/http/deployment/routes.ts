/** What the code of the deployment declares, which of it is in effect, and what operators have changed. */

import { findCron } from '../../across/crons';
import { textOfAlert, textOfWebhook } from '../../across/declared-observers';
import { applyDeclared, declaresNothing, digestOf, textOf } from '../../across/deployment';
import { locationOf, VERSION } from '../../config';
import {
  type DeclaredCron,
  type DeclaredLimit,
  type DeclaredObserver,
  type DeclaredQueue,
  type Deployment,
  deployments,
} from '../../contract/deployment';
import { type Declared, declaration } from '../../declaration';
import { inParallel } from '../../durable/parallel';
import { optional, readBoolean, readList, readName } from '../../job/envelope/fields';
import { invalidRequest, unwrap } from '../../job/errors';
import type { LimitOverride } from '../../job/limits/policy';
import { own } from '../../job/own';
import { formatInstant } from '../../job/time';
import type { StoredDeclaration } from '../../rpc/deployment';
import { MAX_QUEUES_AT_ONCE } from '../../rpc/directory';
import { directoryObject, queueObject } from '../../rpc/stubs';
import { type AppContext, json } from '../context';
import { renderQueueConfig } from '../queues/config';
import { pendingQueues } from '../queues/render';
import { renderOverride, shownKey } from '../rate-limits/routes';
import { readOptionalBody } from '../request/body';
import { serve } from '../route';

export const adminDeploymentRoutes = serve(deployments, { show, apply });

async function show(c: AppContext) {
  return json(c, await describe(c, await directoryObject(c.env).declaration()));
}

/** Applies the declarations. `reset_crons`, `reset_webhooks` and `reset_alerts` name what is reset to them. */
async function apply(c: AppContext) {
  const body = (await readOptionalBody(c)) ?? {};
  const { crons, webhooks = {}, alerts = {} } = declaration();
  const again = namesIn(body, 'reset_crons', crons, 'schedule');
  const observers = {
    webhooks: namesIn(body, 'reset_webhooks', webhooks, 'webhook'),
    alerts: namesIn(body, 'reset_alerts', alerts, 'alert rule'),
  };
  const { declaration: stored, untold } = await applyDeclared(c.env, declaration(), Date.now(), again, observers);
  return json(c, { ...(await describe(c, stored)), ...pendingQueues(untold) });
}

/** The names in a member of the request, all with `true`. */
function namesIn(body: Record<string, unknown>, member: string, declared: object, what: string): ReadonlySet<string> {
  const all = own(body, member) === true && optional(body, member, readBoolean);
  const names = all ? Object.keys(declared) : (optional(body, member, readList(1000, readName(255))) ?? []);
  const unknown = names.find((name) => !Object.hasOwn(declared, name));
  if (unknown !== undefined) throw invalidRequest(member, `The code declares no ${what} ${unknown}.`);
  return new Set(names);
}

async function describe(c: AppContext, stored: StoredDeclaration | null): Promise<Deployment> {
  const declared = declaration();
  const digest = await digestOf(declared, c.env);
  const nothing = stored === null && declaresNothing(declared);
  const overrides = await directoryObject(c.env).limitOverrides();
  const limits = Object.entries(declared.limits).map(([key, limit]) =>
    shownLimit(shownKey(c, key), limit, own(overrides, key)),
  );
  const [queues, crons] = await Promise.all([
    inParallel(Object.keys(declared.queues).slice(0, MAX_QUEUES_AT_ONCE), (name) => shownQueue(c, name)),
    inParallel(Object.keys(declared.crons), (name) => shownCron(c, name, stored)),
  ]);
  return {
    version: VERSION,
    data_location: locationOf(c.env) ?? null,
    digest,
    in_effect: nothing || (stored?.digest === digest && !stored.problems),
    applied_at: stored ? formatInstant(stored.applied_at) : null,
    handlers: declared.handlers ? [...declared.handlers.types] : [],
    queues,
    queues_total: Object.keys(declared.queues).length,
    limits,
    crons,
    ...(await shownObservers(c, declared, stored)),
    problems: stored?.problems ?? [],
  };
}

/** `changed`: settings of an operator, which override those of the code. */
async function shownQueue(c: AppContext, name: string): Promise<DeclaredQueue> {
  const { own, declared = {} } = unwrap(await queueObject(c.env, name).settings());
  const [operator, code] = [renderQueueConfig(own), renderQueueConfig(declared)];
  return { name, declared: code, operator, changed: Object.keys(operator).filter((setting) => setting in code) };
}

const shownLimit = (key: string, declared: LimitOverride, override: LimitOverride | undefined): DeclaredLimit => ({
  key,
  declared: renderOverride(declared),
  ...(override && { override: renderOverride(override) }),
});

async function shownObservers(
  c: AppContext,
  { webhooks = {}, alerts = {} }: Declared,
  stored: StoredDeclaration | null,
) {
  const directory = directoryObject(c.env);
  const names = [Object.keys(webhooks), Object.keys(alerts)] as const;
  const found = names[0].length > 0 ? await directory.webhooks() : [];
  const rules = names[1].length > 0 ? (await directory.alerts()).map(({ rule }) => rule) : [];
  return {
    webhooks: names[0].map((name) => shownObserver(name, stored?.webhooks, found, textOfWebhook)),
    alerts: names[1].map((name) => shownObserver(name, stored?.alerts, rules, textOfAlert)),
  };
}

/** As of a schedule. */
function shownObserver<T extends { id: string; declared?: string; active: boolean }>(
  name: string,
  texts: Record<string, string | null> = {},
  all: readonly T[],
  textOf: (one: T) => string,
): DeclaredObserver {
  if (!Object.hasOwn(texts, name)) return { name, state: 'pending' };
  const existing = all.find(({ declared }) => declared === name);
  if (!existing) return { name, state: 'deleted' };
  const { id, active } = existing;
  return { name, state: texts[name] === textOf(existing) ? 'declared' : 'changed', id, active };
}

/** `state`: as declared, `changed` or `deleted` by an operator, or `pending` until it is applied. */
async function shownCron(c: AppContext, name: string, stored: StoredDeclaration | null): Promise<DeclaredCron> {
  const before = stored ? own(stored.crons, name) : undefined;
  if (before === undefined) return { name, state: 'pending' };
  const existing = (await findCron(c.env, name))?.definition;
  if (!existing) return { name, state: 'deleted' };
  return { name, state: before === textOf(existing) ? 'declared' : 'changed', enabled: existing.enabled };
}
