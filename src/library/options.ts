/** The options of a deployment's code, checked while its modules load: a mistake stops the deploy. */

import { readRedactionRules } from '../access/redaction';
import { type CronEntry, wireCron } from '../client/cron-entry';
import type { QueueConfig } from '../client/queue-config';
import type { RateLimitOverride } from '../client/rate-limits';
import { DELIVERY_BOUNDS, type Declared, type OwnDelivery } from '../declaration';
import { defaultsIn, RUNNABLE } from '../handler/runnable';
import type { HandlerWorker } from '../handler/worker-types';
import { parseQueueConfig } from '../http/queues/config';
import { utf8Bytes } from '../job/bytes';
import { readQueueName } from '../job/envelope/fields';
import { ApiError } from '../job/errors';
import { isLimitKey, KEY_RULE, type LimitOverride, readLimitOverride } from '../job/limits/policy';
import { notKnown } from '../job/near-miss';
import { wired } from '../producer/names';
import { CRON_NAME_RULE, isCronName } from '../schedules/definition';
import type { QueueConfig as Settings } from '../settings';
import { type DeclaredAlert, type DeclaredWebhook, readDeclaredAlert, readDeclaredWebhook } from './observers';

/** A schedule as the code declares it: its name is the key. */
export type DeclaredCron = CronEntry extends infer Entry
  ? Entry extends unknown
    ? Omit<Entry, 'name'>
    : never
  : never;

/** Limits of all jobs that count under a key; they replace the jobs' own. */
export type DeclaredLimit = Omit<RateLimitOverride, 'expiresAt'>;

export interface TocsinOptions {
  /** Handlers that run in this Worker: what `defineHandlers` returned. Others are bound with `HANDLERS`. */
  handlers?: HandlerWorker | undefined;
  /** How pushed jobs travel to these handlers. */
  delivery?: OwnDelivery | undefined;
  /** Settings by queue. An operator's settings override them. */
  queues?: Record<string, QueueConfig> | undefined;
  /** Limits by key: `{ stripe: { limit: 100, period: 'minute' } }`. An operator's override wins. */
  limits?: Record<string, DeclaredLimit> | undefined;
  /**
   * Rules by which payloads are redacted for keys without `data:reveal`, beside `REDACT`: `['password', 'card.*']`.
   * `tags` and `rate_limit.key` become pseudonyms.
   */
  redact?: readonly string[] | undefined;
  /** Schedules by name. One that is no longer declared is removed. */
  crons?: Record<string, DeclaredCron> | undefined;
  /** Webhooks by name. Undeclared ones are removed; those made over HTTP stay. */
  webhooks?: Record<string, DeclaredWebhook> | undefined;
  /** Alert rules, by name, which is shown to humans. One that is no longer declared is removed. */
  alerts?: Record<string, DeclaredAlert> | undefined;
}

const NAMES = ['handlers', 'delivery', 'queues', 'limits', 'crons', 'webhooks', 'alerts', 'redact'];

/** Largest declaration, in bytes of JSON: it is one value in the directory. */
const MAX_DECLARED_BYTES = 524_288;

/** The options, checked. @throws {TypeError} naming the option that is wrong */
export function readOptions(
  options: TocsinOptions,
): Declared & Pick<TocsinOptions, 'handlers' | 'delivery' | 'redact'> {
  for (const name of Object.keys(options)) {
    if (!NAMES.includes(name)) throw wrong(name, notKnown(name, NAMES));
  }
  const { handlers, delivery, queues, limits, crons, webhooks, alerts, redact } = options;
  if (handlers !== undefined && typeof handlers?.fetch !== 'function') {
    throw wrong('handlers', 'must be what defineHandlers returned');
  }
  const declared: Declared = {
    queues: each('queues', queues, settingsOf),
    limits: each('limits', limits, limitOf),
    crons: each('crons', crons, (name, entry) => cronOf(name, entry, handlers)),
    ...(webhooks && { webhooks: each('webhooks', webhooks, readDeclaredWebhook) }),
    ...(alerts && { alerts: each('alerts', alerts, (name, rule) => readDeclaredAlert(name, rule, webhooks ?? {})) }),
  };
  const bytes = utf8Bytes(JSON.stringify(declared));
  if (bytes > MAX_DECLARED_BYTES) {
    const problem = `take ${bytes} bytes together; at most ${MAX_DECLARED_BYTES} can be declared`;
    throw wrong('queues, limits, crons, webhooks and alerts', problem);
  }
  return {
    ...declared,
    ...(handlers && { handlers }),
    ...(delivery && { delivery: deliveryOf(delivery) }),
    ...(redact && { redact: rulesOf(redact) }),
  };
}

const each = <In, Out>(
  option: string,
  given: Record<string, In> | undefined,
  read: (name: string, value: In) => Out,
): Record<string, Out> =>
  Object.fromEntries(
    Object.entries(given ?? {}).map(([name, value]) => {
      try {
        if (typeof value !== 'object' || value === null) throw new Error('must be an object');
        return [name, read(name, value)];
      } catch (error) {
        const { message } = error instanceof ApiError ? error.data : (error as Error);
        throw wrong(`${option}.${name}`, message);
      }
    }),
  );

function settingsOf(name: string, config: QueueConfig): Settings {
  readQueueName(name, 'its name');
  const settings = parseQueueConfig(wireForm(config));
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null));
}

function limitOf(key: string, limit: DeclaredLimit): LimitOverride {
  if (!isLimitKey(key)) throw new Error(`its name ${KEY_RULE}`);
  const read = readLimitOverride({ ...limit }, () => {
    throw new Error('a declared limit lasts until the next deploy: expiresAt is for operators');
  });
  if (read.limit !== undefined && read.period_ms === undefined) throw new Error('period is required with limit');
  return read;
}

/** Its job and expression are read when it is put into effect, as those of any other schedule. */
function cronOf(name: string, entry: DeclaredCron, handlers: HandlerWorker | undefined): Record<string, unknown> {
  if (!isCronName(name)) throw new Error(`its name ${CRON_NAME_RULE}`);
  const defaultsOf = handlers && RUNNABLE in handlers ? defaultsIn(handlers) : undefined;
  return wireForm(wireCron({ ...entry, name } as CronEntry, defaultsOf));
}

const wireForm = (value: object): Record<string, unknown> =>
  wired(JSON.parse(JSON.stringify(value))) as Record<string, unknown>;

function rulesOf(rules: readonly string[]): readonly string[] {
  if (!Array.isArray(rules) || !rules.every((rule) => typeof rule === 'string'))
    throw wrong('redact', 'must be a list');
  try {
    readRedactionRules(rules);
    return rules;
  } catch (error) {
    throw wrong('redact', (error as Error).message);
  }
}

function deliveryOf(delivery: OwnDelivery): OwnDelivery {
  for (const [name, value] of Object.entries(delivery)) {
    const max = Object.hasOwn(DELIVERY_BOUNDS, name) ? DELIVERY_BOUNDS[name as keyof OwnDelivery] : undefined;
    if (max === undefined) {
      throw wrong(`delivery.${name}`, notKnown(name, Object.keys(DELIVERY_BOUNDS)));
    }
    if (!Number.isInteger(value) || value < 1 || value > max) {
      throw wrong(`delivery.${name}`, `must be a whole number from 1 to ${max}`);
    }
  }
  return delivery;
}

const wrong = (option: string, problem: string): TypeError => new TypeError(`createTocsin: ${option}: ${problem}`);
