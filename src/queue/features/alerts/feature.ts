/**
 * Evaluates alert rules: in the queue's transactions at most once a second, and by the alarm when a number can pass
 * its bound without a transaction. Without rules there is no work.
 *
 * Which rules fire, or are about to, is one stored fact, written only when it changes. A change is an event, and an
 * outbox message to the directory.
 */
import { isWithin } from '../../../durable/backoff';
import type { TransactionStep } from '../../../durable/group-commit';
import { type MessageKind, posted } from '../../../durable/outbox-relay';
import { readFact, writeMeta } from '../../../durable/sql';
import { formatDuration } from '../../../job/duration';
import { defined } from '../../../job/envelope/fields';
import type { EventData } from '../../../job/event-data';
import { own } from '../../../job/own';
import { errorRate, errorRateChangesAt, errorWindowFrom } from '../../../metrics/series';
import {
  type AlertEvent,
  type AlertRule,
  type AlertState,
  type Judged,
  judge,
  type Reading,
} from '../../../notifications/alert/rule';
import type { Feature, Host } from '../../feature';
import { oldestAvailable } from '../../read/stats';
import type { Observed, Stored } from '../../store/parts';
import { nextDue } from '../../store/ranks';

const ALERTS = 'alerts';

/** The kind of outbox message that notifies the directory. Its address is the rule. */
const ALERT = 'alert';

/** Minimum interval between checks in transactions; what they skipped is checked after the second interval. ms */
const LOOK_EVERY_MS = 1_000;
const LOOK_AFTER_MS = 5_000;

/** A rate of errors needs at least this many attempts. */
const LEAST_ATTEMPTS = 5;

/** A rule that fires keeps what its end is reported with: by then the rule may be deleted. */
type StoredState = AlertState & { rule?: AlertRule };
type States = Record<string, StoredState>;

type EndReason = EventData['alert.resolved']['reason'];

export class AlertWatch implements Feature {
  readonly messages: readonly MessageKind[];
  private lookedAt = Number.NEGATIVE_INFINITY;
  /** When the alarm must check, epoch ms. Undefined: not known yet. */
  private lookAt: number | undefined;
  /** The rules that were checked last, see {@link current}. */
  private version: number | 'deleting' | undefined;

  constructor(private readonly host: Host) {
    this.messages = [alertMessages(host)];
  }

  due(now: number): number | undefined {
    if (this.rules.length === 0) return undefined;
    this.lookAt ??= Math.min(...this.judged(now).map(({ lookAt }) => lookAt));
    return this.lookAt;
  }

  steps(now: number, when: 'before' | 'after'): TransactionStep[] {
    const { q } = this.host;
    const isChanged = this.version !== this.current;
    if (when === 'before' || (this.rules.length === 0 && !isChanged)) return [];
    if (!isChanged && isWithin(this.lookedAt, LOOK_EVERY_MS, now) && now < (this.lookAt ?? now)) {
      this.lookBy(this.lookedAt + LOOK_AFTER_MS);
      return [];
    }
    const failed = (error: unknown) => {
      console.error(`tocsin: the alert rules of queue ${q.name} could not be checked`, error);
      this.lookBy(now + LOOK_AFTER_MS);
    };
    return [{ run: (at) => this.look(at), failed }];
  }

  /** A queue that is being deleted watches nothing. */
  private get rules(): readonly AlertRule[] {
    const { defaults, removal } = this.host.q.config;
    return removal ? [] : (defaults?.alerts ?? []);
  }

  /** Changes whenever the rules do: the version of the settings that they came with. */
  private get current(): number | 'deleting' | undefined {
    const { defaults, removal } = this.host.q.config;
    return removal ? 'deleting' : defaults?.version;
  }

  private lookBy(at: number): void {
    this.lookAt = Math.min(this.lookAt ?? at, at);
    this.host.q.wake.at(this.lookAt);
  }

  private look(now: number): void {
    const { q } = this.host;
    const before = statesOf(q);
    const judged = this.judged(now, before);
    // A rule without anything to report needs no state.
    const notable = judged.filter(({ after }) => after.state === 'firing' || after.above_since !== undefined);
    const after = Object.fromEntries(
      notable.map(({ rule, after }) => [rule.id, after.state === 'firing' ? { ...after, rule } : after]),
    );
    if (JSON.stringify(after) !== JSON.stringify(before)) {
      writeMeta(q.store.sql, ALERTS, notable.length > 0 ? after : undefined);
    }
    for (const one of judged) if (one.event) this.tell(one.rule, one.event, one.after, now);
    this.endUnwatched(before, now);
    this.lookedAt = now;
    this.version = this.current;
    this.lookAt = Math.min(...judged.map(({ lookAt }) => lookAt));
    q.wake.at(this.lookAt);
  }

  /** Resolves what fires by rules that this queue no longer watches: nothing else would ever end it. */
  private endUnwatched(before: States, now: number): void {
    const { q } = this.host;
    const watched = new Set(this.rules.map(({ id }) => id));
    for (const { state, rule } of Object.values(before)) {
      if (state !== 'firing' || !rule || watched.has(rule.id)) continue;
      const { value } = READ[rule.metric](q, now);
      const reason = q.config.removal ? 'queue_deleted' : 'rule_removed';
      this.tell(rule, 'alert.resolved', { state: 'ok', since: now, value }, now, reason);
    }
  }

  private judged(now: number, before = statesOf(this.host.q)): (Judged & { rule: AlertRule })[] {
    const readings = new Map<string, Reading>();
    return this.rules.map((rule) => {
      const reading = readings.get(rule.metric) ?? READ[rule.metric](this.host.q, now);
      readings.set(rule.metric, reading);
      return { rule, ...judge(rule, own(before, rule.id), reading, now) };
    });
  }

  private tell(rule: AlertRule, event: AlertEvent, after: AlertState, now: number, reason?: EndReason): void {
    const { q } = this.host;
    const { id, name, metric, above, for_ms, subscription_id } = rule;
    const data = {
      alert_id: id,
      name,
      metric,
      above,
      for: formatDuration(for_ms),
      value: after.value,
      subscription_id,
      reason,
    };
    q.observed.events.add(event, q.name, now, defined(data));
    q.store.outbox.post(ALERT, id, JSON.stringify(after), now);
  }
}

const READ: Record<AlertRule['metric'], (q: Stored & Observed, now: number) => Reading> = {
  depth: (q) => ({ value: q.store.depth.jobs() }),
  dead_letters: (q) => ({ value: q.store.counts.countDead() }),
  error_rate: (q, now) => {
    const points = q.observed.meters.since(errorWindowFrom(now));
    const changesAt = errorRateChangesAt(points, now);
    return { value: errorRate(points, now, LEAST_ATTEMPTS), ...(changesAt !== undefined && { changesAt }) };
  },
  oldest_age: (q, now) => {
    const oldest = oldestAvailable(q, now)?.at;
    const first = oldest ?? nextDue(q.store, now);
    return {
      value: oldest === undefined ? 0 : Math.max(0, now - oldest) / 1000,
      // One more millisecond: it fires above the bound, not at it.
      risesAbove: (seconds) => (first === undefined ? undefined : Math.ceil(first + seconds * 1000) + 1),
    };
  },
};

const statesOf = ({ store: { sql } }: Stored): States => readFact<States>(sql, ALERTS) ?? {};

const alertMessages = ({ q, write, others }: Host): MessageKind =>
  posted(q.store.outbox, write, {
    kind: ALERT,
    send: async (rule, [{ data }], taken) => {
      await others.noteAlert(rule, JSON.parse(data) as AlertState);
      await taken(() => undefined);
    },
  });
