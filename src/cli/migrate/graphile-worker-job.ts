/** Maps jobs and crontabs of graphile-worker. Pure: rows and lines in, what is sent out. */
import { messageOf } from '../../job/thrown';
import type { RetryPolicy } from '../../producer/envelope';
import { epochOf, type Finding, inRange, ranOf, startingAt, type WorkOptions } from './found';

export interface Row {
  /** A text: it may be beyond what a number holds. */
  id: string;
  task: string;
  named_queue: string | null;
  payload: unknown;
  priority: number;
  run_at: string;
  created_at: string;
  attempts: number;
  max_attempts: number;
  last_error?: string | null;
  key?: string | null;
  /** Not in older versions. */
  flags?: Record<string, true> | null;
}

/** All its jobs are in one place: this is what it is called here. */
export const QUEUE = 'default';

export const REMARKS = {
  'priority out of range': 'Priorities are -100 to 100 here: it got the nearest.',
  'named queue':
    'Its named queue became its group. Set the groups of the queue to strict, and they run one by one: PUT /queues/<queue>/config.',
  'job key': 'It waits under its key. New jobs replace it with `unique: { key, onConflict: "replace" }`.',
  flags: 'It has no flags here: use a queue, or a limit with a key.',
} as const;

type Remark = keyof typeof REMARKS;

/** Retries wait e^n s, n being at most this. */
const MAX_EXPONENT = 10;

const delayAfter = (run: number): number => Math.round(Math.exp(Math.min(run, MAX_EXPONENT)) * 1000);

/** The runs that are left, and their delays. @param made runs behind the job */
export function retryOf(most: number, made: number): RetryPolicy {
  const maxAttempts = Math.max(1, most - made);
  if (maxAttempts === 1) return { maxAttempts };
  return {
    ...{ maxAttempts, backoffStrategy: 'exponential', backoffCoefficient: Math.E, jitter: false },
    ...{ initialInterval: delayAfter(made + 1), maxInterval: delayAfter(MAX_EXPONENT) },
  };
}

/** Lower goes first there. */
function optionsOf(given: { priority: number; group: string | null; key: string | null; retry: RetryPolicy }) {
  const { priority, group, key, retry } = given;
  const options: WorkOptions = {
    retry,
    ...(priority !== 0 && { priority: inRange(-priority) }),
    ...(group !== null && { group }),
    ...(key !== null && { unique: { key, states: ['scheduled', 'available', 'retryable'], onConflict: 'ignore' } }),
  };
  const found: [Remark, boolean][] = [
    ['priority out of range', inRange(priority) !== priority],
    ['named queue', group !== null],
    ['job key', key !== null],
  ];
  return { options, remarks: found.flatMap(([what, isSo]) => (isSo ? [what] : [])) };
}

export function jobOf(row: Row, now: number): Finding {
  const retry = retryOf(row.max_attempts, row.attempts);
  const { priority, named_queue: group, key = null } = row;
  const { options, remarks } = optionsOf({ priority, group, key, retry });
  return {
    ...{ kind: 'job', id: row.id, queue: QUEUE, name: row.task, args: [row.payload] },
    createdAt: epochOf(row.created_at),
    options: { ...options, ...startingAt(epochOf(row.run_at), now) },
    ran: ranOf(row.attempts, row.last_error ?? undefined),
    remarks: row.flags ? [...remarks, 'flags'] : remarks,
  };
}

/** Five fields, a task, options like a query, and a payload. */
const LINE = /^(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+([_a-zA-Z][\w:/-]*)(?:\s+\?(\S+))?(?:\s+(\{.*\}))?$/;

/** Runs of a job that names no number. */
const MAX_ATTEMPTS = 25;

/** The entries of a crontab, in UTC. @param parse reads a payload: JSON, or what else is understood */
export function* crontabOf(text: string, parse: (payload: string) => unknown): Generator<Finding> {
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line !== '' && !line.startsWith('#')) yield entryOf(line, index + 1, parse);
  }
}

function entryOf(line: string, number: number, parse: (payload: string) => unknown): Finding {
  const [, expression = '', task = '', query = '', payload] = LINE.exec(line) ?? [];
  const given = new URLSearchParams(query);
  const origin = { id: given.get('id') ?? (task || `line ${number}`), queue: QUEUE, name: task };
  if (task === '') {
    return { kind: 'broken', of: 'schedule', ...origin, message: `line ${number} is not one of a crontab` };
  }
  try {
    const { options, remarks } = optionsOf({
      ...{ priority: Number(given.get('priority') ?? 0), group: given.get('queue'), key: given.get('jobKey') },
      retry: retryOf(Number(given.get('max') ?? MAX_ATTEMPTS), 0),
    });
    return {
      ...{ kind: 'schedule', ...origin, expression, options, remarks },
      args: [payload === undefined ? {} : parse(payload)],
      missedPolicy: given.has('fill') ? 'fire_all' : 'skip',
    };
  } catch (error) {
    return { kind: 'broken', of: 'schedule', ...origin, message: `line ${number}: ${messageOf(error)}` };
  }
}
