/** Reads an alert rule of a client (`docs/operate/alerts.md`). */
import {
  defined,
  type Reader,
  readAny,
  readBoolean,
  readDuration,
  readName,
  readNumber,
  readQueueName,
  readText,
  readWord,
} from '../../job/envelope/fields';
import { notMember, nullable, readMembers } from '../../job/envelope/members';
import { invalidRequest } from '../../job/errors';
import { ALERT_METRICS, type AlertMetric } from '../../job/event-data';
import { isWebhookId } from '../webhook/ids';
import type { StoredAlert } from './rule';

export type AlertMembers = Omit<StoredAlert, 'id' | 'created_at' | 'updated_at'>;

const LONGEST_FOR_MS = 86_400_000;

const readFor: Reader<number> = (value, field) => {
  const ms = readDuration(value, field);
  if (ms <= LONGEST_FOR_MS) return ms;
  throw invalidRequest(field, `${field} must be at most a day.`);
};

const readSubscription = readText(isWebhookId, 'must be the id of a webhook subscription');

const readAbove = (metric: AlertMetric): Reader<number> =>
  metric === 'error_rate'
    ? readNumber(0, 1)
    : (value, field) => {
        const seconds =
          metric === 'oldest_age' && typeof value === 'string' ? readDuration(value, field) / 1000 : value;
        if (typeof seconds === 'number' && seconds >= 0 && seconds <= Number.MAX_SAFE_INTEGER) return seconds;
        throw invalidRequest(field, `${field} must be a number from 0.`);
      };

/** Of the members that may be null, null takes back what was said. */
export const readAlertRule = readMembers(
  {
    name: readName(128),
    queue: nullable(readQueueName),
    metric: readWord(ALERT_METRICS),
    above: readAny,
    for: nullable(readFor),
    subscription_id: nullable(readSubscription),
    active: nullable(readBoolean),
  },
  notMember,
);

/** A rule after a request. @param before the former one, for members that are left out @throws {ApiError} 400 */
export function parseAlert(body: Record<string, unknown>, before?: StoredAlert): AlertMembers {
  const { above: bound, for: wait = before?.for_ms, ...named } = readAlertRule(body, '');
  const { name, queue, metric, subscription_id, active } = { ...before, ...named };
  if (metric === undefined) throw isRequired('metric');
  if (name === undefined) throw isRequired('name');
  const kept = before?.metric === metric ? before.above : undefined;
  const above = bound === undefined ? kept : readAbove(metric)(bound, 'above');
  if (above === undefined) throw isRequired('above');
  return defined({
    name,
    queue: queue ?? undefined,
    metric,
    above,
    for_ms: wait ?? 0,
    subscription_id: subscription_id ?? undefined,
    active: active ?? true,
  });
}

const isRequired = (name: string) => invalidRequest(name, `${name} is required.`);
