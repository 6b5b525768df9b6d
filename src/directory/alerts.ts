/** Alert rules and their states. Queues receive the rules with the settings, evaluate them, and report changes. */
import type { Schema } from '../durable/schema';
import { conflict, invalidRequest, notFound } from '../job/errors';
import type { AlertMembers } from '../notifications/alert/parse';
import type { AlertRule, AlertState, StoredAlert } from '../notifications/alert/rule';
import type { AlertInQueue, AlertView } from '../rpc/alerts';

const MAX_ALERTS = 100;

const MAX_SHOWN = 200;

export class AlertList {
  /** @param rulesChanged the queues must receive other rules */
  constructor(
    private readonly tables: Schema,
    private readonly hasWebhook: (id: string) => boolean,
    private readonly rulesChanged: (now: number) => void,
  ) {}

  rules(queue: string): AlertRule[] {
    return this.stored()
      .filter((rule) => rule.active && (rule.queue ?? queue) === queue)
      .map(({ queue: _, active: _a, declared: _d, created_at: _c, updated_at: _u, ...rule }) => rule);
  }

  all(): AlertView[] {
    return this.stored().map((rule) => this.view(rule));
  }

  find(id: string): AlertView | undefined {
    const rule = this.stored().find((one) => one.id === id);
    return rule && this.view(rule);
  }

  /** The rules that notify only this webhook. */
  telling(subscription: string): string[] {
    return this.stored().flatMap(({ id, subscription_id }) => (subscription_id === subscription ? [id] : []));
  }

  /** @throws {ApiError} 400, 409 */
  create(id: string, members: AlertMembers, now: number): AlertView {
    const { declared } = members;
    // Two isolates may apply the same declaration at once.
    const same = declared === undefined ? undefined : this.stored().find((one) => one.declared === declared);
    if (same) return this.change(same.id, members, now);
    if (this.stored().length >= MAX_ALERTS) {
      throw conflict('The maximum number of alert rules is reached.', { max_alerts: MAX_ALERTS });
    }
    return this.write({ ...members, id, created_at: now, updated_at: now }, now);
  }

  /** @throws {ApiError} 400, 404 */
  change(id: string, members: AlertMembers, now: number): AlertView {
    const before = this.find(id)?.rule;
    if (!before) throw notFound('alert', id);
    const { declared, created_at } = before;
    const kept = { ...(declared !== undefined && { declared }), id, created_at };
    return this.write({ ...members, ...kept, updated_at: now }, now);
  }

  /** @returns whether there was one */
  remove(id: string, now: number): boolean {
    if (!this.find(id)) return false;
    this.tables.transaction(() => {
      this.tables.rows('DELETE FROM alerts WHERE id = ?', id);
      this.tables.rows('DELETE FROM alert_states WHERE rule = ?', id);
      this.rulesChanged(now);
    });
    return true;
  }

  /** The state of a rule in a queue; reports about a deleted or inactive rule change nothing. */
  note(id: string, queue: string, state: AlertState): void {
    const rule = this.find(id)?.rule;
    if (!rule?.active || (rule.queue ?? queue) !== queue) return;
    this.tables.put('alert_states', { rule: id, queue, since: state.since, data: JSON.stringify(state) });
  }

  /** A queue was deleted: nothing fires there. */
  forgetQueue(queue: string): void {
    this.tables.rows('DELETE FROM alert_states WHERE queue = ?', queue);
  }

  private stored(): StoredAlert[] {
    const all = this.tables.rows<{ data: string }>('SELECT data FROM alerts ORDER BY id');
    return all.map(({ data }) => JSON.parse(data) as StoredAlert);
  }

  private view(rule: StoredAlert): AlertView {
    const states = `SELECT queue, data FROM alert_states WHERE rule = ?
      ORDER BY data ->> '$.state' = 'firing' DESC, since DESC LIMIT ?`;
    const found = this.tables.rows<{ queue: string; data: string }>(states, rule.id, MAX_SHOWN);
    return { rule, queues: found.map(({ queue, data }) => ({ queue, ...JSON.parse(data) }) as AlertInQueue) };
  }

  private write(rule: StoredAlert, now: number): AlertView {
    const { subscription_id } = rule;
    if (subscription_id !== undefined && !this.hasWebhook(subscription_id)) {
      throw invalidRequest('subscription_id', 'subscription_id is not the id of a webhook subscription.');
    }
    this.tables.transaction(() => {
      this.tables.put('alerts', { id: rule.id, data: JSON.stringify(rule) });
      // An inactive rule gets no report that it has resolved.
      if (!rule.active) this.tables.rows('DELETE FROM alert_states WHERE rule = ?', rule.id);
      else if (rule.queue !== undefined) {
        this.tables.rows('DELETE FROM alert_states WHERE rule = ? AND queue <> ?', rule.id, rule.queue);
      }
      this.rulesChanged(now);
    });
    return this.view(rule);
  }
}
