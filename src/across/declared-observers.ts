/** Applies declared webhooks and alert rules by their stored names, and touches no others. A failure blocks nothing. */
import { type Env, newWebhookSecret, readWebhookSecret, readWebhookUrl } from '../config';
import type { Declared } from '../declaration';
import { isObject, optional } from '../job/envelope/fields';
import { invalidRequest, unwrap } from '../job/errors';
import { own } from '../job/own';
import { type AlertMembers, parseAlert } from '../notifications/alert/parse';
import type { StoredAlert } from '../notifications/alert/rule';
import { parseWebhook } from '../notifications/webhook/parse';
import type { Webhook, WebhookMembers } from '../notifications/webhook/subscription';
import type { Observers, StoredDeclaration } from '../rpc/deployment';
import { directoryObject } from '../rpc/stubs';
import { Reconciliation } from './reconcile';

type ObserverEntry = Record<string, unknown>;

/** In the form for comparison: without what an operator may change at any time, and without the secret. */
export const textOfWebhook = ({ url, events, filter, metadata, format }: WebhookMembers): string =>
  JSON.stringify([url, events, filter, metadata, format]);

export function textOfAlert(rule: Omit<StoredAlert, 'id' | 'active' | 'created_at' | 'updated_at'>): string {
  const { name, queue, metric, above, for_ms, subscription_id } = rule;
  return JSON.stringify([name, queue, metric, above, for_ms, subscription_id]);
}

/** With the values of the variables that it names, `{env: 'SLACK_URL'}`, as far as they are set. */
export function withVariables(webhooks: Declared['webhooks'] = {}, env: Env): Record<string, ObserverEntry> {
  const valueFor = (given: unknown): unknown => {
    const name = isVariable(given) ? given.env : undefined;
    const value = typeof name === 'string' ? Reflect.get(env, name) : undefined;
    return typeof value === 'string' && value !== '' ? value : given;
  };
  return Object.fromEntries(
    Object.entries(webhooks).map(([name, { url, secret, routing_key, ...rest }]) => [
      name,
      { ...rest, url: valueFor(url), secret: valueFor(secret), routing_key: valueFor(routing_key) },
    ]),
  );
}

export interface ObserversAgain {
  webhooks: ReadonlySet<string>;
  alerts: ReadonlySet<string>;
}

/** Applies them. @param before what was applied last @returns what is in effect now, and what is wrong with the rest */
export async function applyObservers(
  env: Env,
  declared: Declared,
  before: StoredDeclaration | null,
  again: ObserversAgain,
): Promise<Observers> {
  const entries = { webhooks: withVariables(declared.webhooks, env), alerts: declared.alerts ?? {} };
  const known = { webhooks: before?.webhooks ?? {}, alerts: before?.alerts ?? {} };
  const all = [entries.webhooks, entries.alerts, known.webhooks, known.alerts];
  if (all.every((one) => Object.keys(one).length === 0)) return {};
  const problems: string[] = [];
  const kind = (member: keyof ObserversAgain) => ({
    ...{ entries: entries[member], before: known[member], again: again[member] },
    refused: (name: string, message: string) => void problems.push(`${member}.${name}: ${message}`),
  });
  const directory = directoryObject(env);
  const existing = byDeclaredName(await directory.webhooks());
  const rules = byDeclaredName((await directory.alerts()).map(({ rule }) => rule));
  const webhooks = new Reconciliation<ObserverEntry, Webhook>({
    ...kind('webhooks'),
    find: (name) => existing.get(name),
    textOf: textOfWebhook,
    put: async (name, entry, webhook, mustReset) => {
      const { put, text } = await putWebhook(env, name, entry, webhook, mustReset);
      existing.set(name, put);
      return text;
    },
    remove: async ({ id }) => unwrap(await directory.deleteWebhook(id)),
  });
  const alerts = new Reconciliation<ObserverEntry, StoredAlert>({
    ...kind('alerts'),
    find: (name) => rules.get(name),
    textOf: textOfAlert,
    put: (name, { webhook, ...entry }, rule, mustReset) => {
      const notified = typeof webhook === 'string' ? existing.get(webhook)?.id : undefined;
      if (typeof webhook === 'string' && notified === undefined) {
        throw invalidRequest('webhook', `its webhook ${webhook} does not exist, so no one would be notified.`);
      }
      const members = { name, ...entry, ...(notified !== undefined && { subscription_id: notified }) };
      return putAlert(env, name, parseAlert(members), rule, mustReset);
    },
    remove: ({ id }) => directory.deleteAlert(id),
  });
  await webhooks.put();
  await alerts.put();
  // A webhook that only a rule notifies cannot be deleted before the rule.
  await alerts.withdraw();
  await webhooks.withdraw();
  return { webhooks: webhooks.applied, alerts: alerts.applied, ...(problems.length > 0 && { problems }) };
}

const byDeclaredName = <T extends { declared?: string }>(all: readonly T[]) =>
  new Map(all.flatMap((one) => (one.declared === undefined ? [] : [[one.declared, one] as const])));

async function putWebhook(
  env: Env,
  name: string,
  entry: ObserverEntry,
  existing: Webhook | undefined,
  mustReset: boolean,
): Promise<{ put: Webhook; text: string }> {
  const directory = directoryObject(env);
  for (const member of ['url', 'secret', 'routing_key']) mustBeSet(own(entry, member), member);
  const secret = optional(entry, 'secret', readWebhookSecret);
  const members = parseWebhook(entry, readWebhookUrl(env));
  const text = textOfWebhook(members);
  if (!existing) {
    const created = await directory.createWebhook({ ...members, declared: name }, secret ?? newWebhookSecret());
    return { put: unwrap(created).webhook, text };
  }
  let put = existing;
  if (mustReset || text !== textOfWebhook(existing)) {
    // A receiver that was given up has a new address.
    const active = existing.active || (existing.disabled !== undefined && existing.url !== members.url);
    const change = { filter: null, metadata: null, format: null, ...members, active };
    put = unwrap(await directory.changeWebhook(existing.id, change)).webhook;
  }
  if (secret !== undefined && secret !== existing.secret) unwrap(await directory.rotateWebhook(existing.id, secret));
  return { put, text };
}

async function putAlert(
  env: Env,
  name: string,
  members: AlertMembers,
  existing: StoredAlert | undefined,
  mustReset: boolean,
): Promise<string> {
  const directory = directoryObject(env);
  const text = textOfAlert(members);
  if (!existing) unwrap(await directory.createAlert({ ...members, declared: name }));
  else if (mustReset || text !== textOfAlert(existing)) {
    unwrap(await directory.changeAlert(existing.id, { ...members, active: existing.active }));
  }
  return text;
}

/** Does this stand for the value of a variable? */
const isVariable = (value: unknown): value is { env: unknown } => isObject(value) && 'env' in value;

function mustBeSet(value: unknown, member: string): void {
  if (isVariable(value)) throw invalidRequest(member, `${member}: the variable ${String(value.env)} is not set.`);
}
