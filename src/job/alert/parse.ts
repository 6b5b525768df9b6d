/**
 * Reads an alert rule of a client.
 *
 * | member | value | default |
 * |---|---|---|
 * | `name` | 1 … 128 characters | required |
 * | `queue` | its name; null: each queue for itself | null |
 * | `metric` | `error_rate`, `oldest_age`, `depth`, `dead_letters` | required |
 * | `above` | a number; of `oldest_age` seconds, or a duration such as `"PT5M"` | required |
 * | `for` | a duration | nothing |
 * | `subscription_id` | the only one to be notified; null: all that subscribed to `alert.*` | null |
 * | `active` | false: it is not looked at | true |
 */
import {
  defined,
  optional,
  type Reader,
  readBoolean,
  readDuration,
  readName,
  readQueueName,
  readText,
  readWord,
} from '../envelope/fields';
import { invalidRequest } from '../errors';
import { notKnown } from '../near-miss';
import { quote } from '../text';
import { isWebhookId } from '../webhook/ids';
import { ALERT_METRICS, type AlertMetric, type StoredAlert } from './rule';

/** What a client may say of a rule. */
export type AlertMembers = Omit<StoredAlert, 'id' | 'created_at' | 'updated_at'>;

const MEMBERS = ['name', 'queue', 'metric', 'above', 'for', 'subscription_id', 'active'];

/** The longest time that a number must be too high, ms. */
const LONGEST_FOR_MS = 86_400_000;

const readFor: Reader<number> = (value, field) => {
  const ms = readDuration(value, field);
  if (ms <= LONGEST_FOR_MS) return ms;
  throw invalidRequest(field, `${field} must be at most a day.`);
};

const readSubscription = readText(isWebhookId, 'must be the id of a webhook subscription');

/** The bound of a metric. Of an age a duration will do. */
function readAbove(metric: AlertMetric): Reader<number> {
  return (value, field) => {
    const seconds = metric === 'oldest_age' && typeof value === 'string' ? readDuration(value, field) / 1000 : value;
    const most = metric === 'error_rate' ? 1 : Number.MAX_SAFE_INTEGER;
    if (typeof seconds === 'number' && seconds >= 0 && seconds <= most) return seconds;
    const rule = metric === 'error_rate' ? 'a number from 0 to 1' : 'a number from 0';
    throw invalidRequest(field, `${field} must be ${rule}.`);
  };
}

/**
 * A rule as it is after a request.
 * @param before what it was; members that the request does not name stay
 * @throws {ApiError} 400
 */
export function parseAlert(body: Record<string, unknown>, before?: StoredAlert): AlertMembers {
  const unknown = Object.keys(body).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) {
    throw invalidRequest(unknown, `${quote(unknown)} ${notKnown(unknown, MEMBERS)}`);
  }
  const required = <T>(name: string, read: Reader<T>, known: T | undefined): T => {
    const given = optional(body, name, read) ?? known;
    if (given === undefined) throw invalidRequest(name, `${name} is required.`);
    return given;
  };
  /** null takes it back. */
  const given = <T>(name: string, read: Reader<T>, known: T | undefined): T | undefined =>
    body[name] === null ? undefined : (optional(body, name, read) ?? known);
  const metric = required('metric', readWord(ALERT_METRICS), before?.metric);
  const known = before?.metric === metric ? before.above : undefined;
  return defined({
    name: required('name', readName(128), before?.name),
    queue: given('queue', readQueueName, before?.queue),
    metric,
    above: required('above', readAbove(metric), known),
    for_ms: given('for', readFor, before?.for_ms) ?? 0,
    subscription_id: given('subscription_id', readSubscription, before?.subscription_id),
    active: given('active', readBoolean, before?.active) ?? true,
  });
}
