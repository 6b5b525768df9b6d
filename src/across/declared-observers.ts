/**
 * Applies declared webhooks and alert rules, known by their stored declared name; those made over HTTP are never
 * touched. A failure blocks nothing else.
 */
import { type Env, newWebhookSecret, readWebhookSecret, readWebhookUrl } from '../config';
import type { Declared } from '../declaration';
import { parseAlert } from '../job/alert/parse';
import type { StoredAlert } from '../job/alert/rule';
import { isObject, optional } from '../job/envelope/fields';
import { ApiError, invalidRequest, unwrap } from '../job/errors';
import { own } from '../job/own';
import { parseWebhook } from '../job/webhook/parse';
import type { Webhook, WebhookMembers } from '../job/webhook/subscription';
import type { Observers, StoredDeclaration } from '../rpc/deployment';
import { directoryObject } from '../rpc/stubs';

type ObserverEntry = Record<string, unknown>;

/** In the form for comparison: without what an operator may change at any time, and without the secret. */
export function textOfWebhook({ url, events, filter, metadata, format }: WebhookMembers): string {
  return JSON.stringify([url, events, filter, metadata, format]);
}

/** {@link textOfWebhook} for an alert rule. */
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
  const alerts = declared.alerts ?? {};
  const webhooks = withVariables(declared.webhooks, env);
  const counts = [webhooks, alerts, before?.webhooks ?? {}, before?.alerts ?? {}].map((all) => Object.keys(all).length);
  if (counts.every((count) => count === 0)) return {};
  const work = new ObserverWork(env, again, { webhooks: before?.webhooks ?? {}, alerts: before?.alerts ?? {} });
  await work.look();
  for (const [name, entry] of Object.entries(webhooks)) {
    await work.trying(`webhooks.${name}`, () => work.putWebhook(name, entry));
  }
  for (const [name, entry] of Object.entries(alerts)) {
    await work.trying(`alerts.${name}`, () => work.putAlert(name, entry));
  }
  // A webhook that only a rule notifies cannot be deleted before the rule.
  for (const name of Object.keys(before?.alerts ?? {})) {
    if (!Object.hasOwn(alerts, name)) await work.trying(`alerts.${name}`, () => work.withdrawAlert(name));
  }
  for (const name of Object.keys(before?.webhooks ?? {})) {
    if (!Object.hasOwn(webhooks, name)) await work.trying(`webhooks.${name}`, () => work.withdrawWebhook(name));
  }
  return work.done();
}

type Texts = Record<string, string>;

class ObserverWork {
  private readonly directory;
  private readonly problems: string[] = [];
  private readonly webhookTexts: Texts = {};
  private readonly alertTexts: Texts = {};
  private webhooks = new Map<string, Webhook>();
  private alerts = new Map<string, StoredAlert>();

  constructor(
    private readonly env: Env,
    private readonly again: ObserversAgain,
    private readonly known: { webhooks: Texts; alerts: Texts },
  ) {
    this.directory = directoryObject(env);
  }

  async look(): Promise<void> {
    const named = <T extends { declared?: string }>(all: readonly T[]) =>
      new Map(all.flatMap((one) => (one.declared === undefined ? [] : [[one.declared, one] as const])));
    this.webhooks = named(await this.directory.webhooks());
    this.alerts = named((await this.directory.alerts()).map(({ rule }) => rule));
  }

  /** Applies one change; a refusal is noted. Any other failure ends the whole, which is tried again. */
  async trying(what: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.problems.push(`${what}: ${error.data.message}`);
    }
  }

  done(): Observers {
    const { webhookTexts: webhooks, alertTexts: alerts, problems } = this;
    return { webhooks, alerts, ...(problems.length > 0 && { problems }) };
  }

  async putWebhook(name: string, entry: ObserverEntry): Promise<void> {
    const { known, directory } = this;
    const existing = this.webhooks.get(name);
    const before = own(known.webhooks, name);
    if (before !== undefined) this.webhookTexts[name] = before;
    const isWanted = this.again.webhooks.has(name);
    if (!isWanted && isChanged(before, existing && textOfWebhook(existing))) return;
    for (const member of ['url', 'secret', 'routing_key']) mustBeSet(own(entry, member), member);
    const secret = optional(entry, 'secret', readWebhookSecret);
    const members = parseWebhook(entry, readWebhookUrl(this.env));
    const text = textOfWebhook(members);
    const put =
      existing ??
      unwrap(await directory.createWebhook({ ...members, declared: name }, secret ?? newWebhookSecret())).webhook;
    this.webhooks.set(name, put);
    if (existing && (isWanted || text !== textOfWebhook(existing))) {
      // A receiver that was given up has a new address.
      const active = existing.active || (existing.disabled !== undefined && existing.url !== members.url);
      const change = { filter: null, metadata: null, format: null, ...members, active };
      this.webhooks.set(name, unwrap(await directory.changeWebhook(existing.id, change)).webhook);
    }
    if (existing && secret !== undefined && secret !== existing.secret) {
      unwrap(await directory.rotateWebhook(existing.id, secret));
    }
    this.webhookTexts[name] = text;
  }

  async putAlert(name: string, { webhook, ...entry }: ObserverEntry): Promise<void> {
    const existing = this.alerts.get(name);
    const before = own(this.known.alerts, name);
    if (before !== undefined) this.alertTexts[name] = before;
    const isWanted = this.again.alerts.has(name);
    if (!isWanted && isChanged(before, existing && textOfAlert(existing))) return;
    const told = typeof webhook === 'string' ? this.webhooks.get(webhook)?.id : undefined;
    if (typeof webhook === 'string' && told === undefined) {
      throw invalidRequest('webhook', `its webhook ${webhook} does not exist, so no one would be notified.`);
    }
    const members = parseAlert({ name, ...entry, ...(told !== undefined && { subscription_id: told }) });
    const text = textOfAlert(members);
    if (!existing) unwrap(await this.directory.createAlert({ ...members, declared: name }));
    else if (isWanted || text !== textOfAlert(existing)) {
      unwrap(await this.directory.changeAlert(existing.id, { ...members, active: existing.active }));
    }
    this.alertTexts[name] = text;
  }

  async withdrawAlert(name: string): Promise<void> {
    const existing = this.alerts.get(name);
    if (existing && own(this.known.alerts, name) === textOfAlert(existing))
      await this.directory.deleteAlert(existing.id);
  }

  async withdrawWebhook(name: string): Promise<void> {
    const existing = this.webhooks.get(name);
    const before = own(this.known.webhooks, name) as string;
    if (!existing || before !== textOfWebhook(existing)) return;
    // It is retried while a rule needs it.
    this.webhookTexts[name] = before;
    unwrap(await this.directory.deleteWebhook(existing.id));
    delete this.webhookTexts[name];
  }
}

/** Has an operator changed it? @param before as it was applied; undefined: never @param now undefined: it is gone */
function isChanged(before: string | undefined, now: string | undefined): boolean {
  return before !== undefined && before !== now;
}

/** Does this stand for the value of a variable? */
const isVariable = (value: unknown): value is { env: unknown } => isObject(value) && 'env' in value;

function mustBeSet(value: unknown, member: string): void {
  if (isVariable(value)) throw invalidRequest(member, `${member}: the variable ${String(value.env)} is not set.`);
}
