/** Alert rules: fire when a queue's number exceeds a bound for some time, resolve when it is well below again. Pure. */
import type { AlertMetric } from '../../job/event-data';

export interface AlertRule {
  id: string;
  name: string;
  metric: AlertMetric;
  /** It fires when the number is greater than this. */
  above: number;
  /** … for this time, ms. */
  for_ms: number;
  /** The only one to notify. Absent: all that subscribed to the event. */
  subscription_id?: string;
}

/** A rule as operators made it. Times in epoch ms. */
export interface StoredAlert extends AlertRule {
  /** Absent: each queue for itself. */
  queue?: string;
  active: boolean;
  /** The name under which the code declares it. */
  declared?: string;
  created_at: number;
  updated_at: number;
}

/** How a rule stands in a queue. Times in epoch ms. */
export interface AlertState {
  state: 'ok' | 'firing';
  since: number;
  /** Since when the number has been too high, while it has not fired. */
  above_since?: number;
  value: number;
}

/** A number, and when it changes although nothing happens. */
export interface Reading {
  value: number;
  /** The value passes this bound by itself at that moment, epoch ms. Absent: only what happens changes it. */
  risesAbove?(bound: number): number | undefined;
  /** When it may be another one by itself, epoch ms. */
  changesAt?: number;
}

export type AlertEvent = 'alert.firing' | 'alert.resolved';

export interface Judged {
  after: AlertState;
  event?: AlertEvent;
  /** When the rule must be looked at again although nothing happens, epoch ms. Infinity: not at all. */
  lookAt: number;
}

/** It resolves when the number is no more than this part of the bound. */
const RESOLVED_BELOW = 0.9;

/** Minimum time that it fires: a number that goes up and down makes few events; ms. */
const LEAST_FIRING_MS = 60_000;

const NEVER = Number.POSITIVE_INFINITY;

/** How a rule stands now. @param before as it was; undefined: it was never looked at */
export function judge(rule: AlertRule, before: AlertState | undefined, reading: Reading, now: number): Judged {
  const { value } = reading;
  if (before?.state === 'firing') return judgeFiring(rule, before, reading, now);
  const since = before?.since ?? now;
  if (value <= rule.above) {
    // What has been reported stays as it is, so that nothing is written.
    const after = before && before.above_since === undefined ? before : { state: 'ok' as const, since, value };
    return { after, lookAt: lookAtLow(rule, reading) };
  }
  const aboveSince = before?.above_since ?? now;
  const firesAt = aboveSince + rule.for_ms;
  if (now < firesAt) {
    const after = { state: 'ok' as const, since, value: before?.value ?? value, above_since: aboveSince };
    return { after, lookAt: Math.min(firesAt, reading.changesAt ?? NEVER) };
  }
  const after = { state: 'firing' as const, since: now, value };
  return { after, event: 'alert.firing', lookAt: lookAtFiring(rule, after, reading, now) };
}

function judgeFiring(rule: AlertRule, before: AlertState, reading: Reading, now: number): Judged {
  const { value } = reading;
  if (!isLow(rule, value) || now < before.since + LEAST_FIRING_MS) {
    return { after: before, lookAt: lookAtFiring(rule, before, reading, now) };
  }
  const after = { state: 'ok' as const, since: now, value };
  return { after, event: 'alert.resolved', lookAt: lookAtLow(rule, reading) };
}

const isLow = ({ above }: AlertRule, value: number) => value <= RESOLVED_BELOW * above;

/** When a number that is not too high may be, although nothing happens. */
const lookAtLow = ({ above }: AlertRule, { risesAbove, changesAt }: Reading): number =>
  Math.min(risesAbove?.(above) ?? NEVER, changesAt ?? NEVER);

/** When a rule that fires may resolve although nothing happens. */
function lookAtFiring(rule: AlertRule, { since }: AlertState, reading: Reading, now: number): number {
  const least = since + LEAST_FIRING_MS;
  if (isLow(rule, reading.value)) return Math.max(least, now);
  return reading.changesAt === undefined ? NEVER : Math.max(least, reading.changesAt);
}
