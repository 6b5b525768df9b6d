/** Makes the log entry of an operator's request, from the request and its answer. */
import { isRawNumber } from '../../job/envelope/exact';
import { isObject } from '../../job/envelope/fields';
import { own, textOf } from '../../job/own';
import { cut } from '../../job/text';
import type { AuditEntry } from '../../rpc/audit';

type Json = Record<string, unknown>;

/** What is known of a write when it has been answered. */
export interface Answered {
  action: string;
  /** The name or id in the path. */
  named: string | undefined;
  query: Json;
  /** The request's body, where it is an object, without the secrets in it. */
  sent: Json;
  /** The answer, where it is one. */
  answer: Json;
}

/** Longest target in characters; longest text of a filter or change; ids listed of those that a request names. */
const MAX_TARGET = 255;
const MAX_TEXT = 2_048;
const MAX_IDS = 20;

/** Characters that are kept of a text without room, and those of a member besides its name and its text. */
const MAX_CUT_TEXT = 200;
const MARKS = 4;

/** Members of a request that say which jobs are meant, beside `filter`. */
const CONDITIONS = ['states', 'older_than', 'job_ids', 'queue', 'fingerprint', 'strategy', 'target_queue'];

const PARAMETERS = [...CONDITIONS, 'type', 'state', 'error_type', 'since', 'until'];

/** Members of a request that are not part of the change. */
const ASIDE = ['confirm', 'dry_run', 'idempotency_key', 'atomicity', 'filter', ...CONDITIONS];

/** Actions whose request has only a target: other members are not recorded. */
const SAYS_NOTHING = /\.(pause|resume|drain|cancel|activate|trigger|delete|purge|discard|abort|restore|forget|quiet)$/;

/** Members of a request that modify an action; others have no effect. Actions not named here refuse unknown members. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  'dead_letter.retry': ['override'],
  'dead_letters.retry': ['override'],
  'jobs.retry': ['override'],
  'failure.redrive': ['override'],
  'deployment.apply': ['reset_crons'],
  'maintenance.set': ['enabled', 'duration', 'estimated_duration', 'reason'],
  'worker.direct': ['directive', 'worker_id'],
};

/** Names under which an answer has the number of changes. */
const COUNTS = [
  ...['succeeded', 'retried', 'cancelled', 'deleted', 'purged_count', 'redriven', 'discarded', 'updated', 'tried'],
  ...['imported', 'count'],
];

/** Actions on one job, whose id is the target. */
const ON_A_JOB = /^(job|dead_letter)\./;

/** Actions on one group of a queue: the group is the target. */
const ON_A_GROUP = /^group\./;

type Said = Pick<AuditEntry, 'action' | 'target' | 'queue' | 'job' | 'filter' | 'change' | 'count' | 'operation_id'>;

/** The action, its target, and the number of changes. */
export function describeWrite({ action, named, query, sent, answer }: Answered): Said {
  const filter = ON_A_GROUP.test(action) ? { queue: answer.queue } : filterOf(sent, query);
  const change = Object.entries(sent).filter(([name]) => !ASIDE.includes(name) && isKnown(action, name));
  const isOnJob = ON_A_JOB.test(action) && named !== undefined;
  const target = named ?? textOf(sent.name) ?? textOf(sent.id) ?? textOf(sent.worker_id) ?? textOf(answer.id);
  const inner = isObject(answer.job) ? answer.job : answer;
  const queue = action.startsWith('queue.') && named !== '_default' ? target : (queueIn(filter) ?? textOf(inner.queue));
  return {
    action,
    target: target === undefined ? null : cut(target, MAX_TARGET),
    queue: queue === undefined ? null : cut(queue, MAX_TARGET),
    job: isOnJob ? cut(named, MAX_TARGET) : null,
    filter: filter === undefined ? null : bounded(filter),
    change: change.length === 0 ? null : bounded(Object.fromEntries(change)),
    count: isOnJob ? 1 : (countIn(answer) ?? null),
    operation_id: answer.completed === false ? (textOf(answer.operation_id) ?? null) : null,
  };
}

function filterOf(sent: Json, query: Json): Json | undefined {
  const asked = Object.fromEntries(Object.entries(query).filter(([name]) => PARAMETERS.includes(name)));
  const named = CONDITIONS.flatMap((name) =>
    (own(sent, name) ?? null) === null ? [] : [[name, own(sent, name)] as const],
  );
  const all = { ...asked, ...Object.fromEntries(named), ...(isObject(sent.filter) && sent.filter) };
  if (Object.keys(all).length === 0 && !isObject(sent.filter)) return undefined;
  const { job_ids: ids } = all as { job_ids?: unknown };
  if (!Array.isArray(ids) || ids.length <= MAX_IDS) return all;
  return { ...all, job_ids: ids.slice(0, MAX_IDS), job_ids_in_all: ids.length };
}

const isKnown = (action: string, name: string): boolean =>
  !SAYS_NOTHING.test(action) && (own(KNOWN, action)?.includes(name) ?? true);

function queueIn(filter: Json | undefined): string | undefined {
  const queue = filter?.queue;
  return textOf(Array.isArray(queue) && queue.length === 1 ? queue[0] : queue);
}

/** The number of changes; undefined: the answer has none. */
function countIn(answer: Json): number | undefined {
  const counts = COUNTS.map((name) => own(answer, name));
  return counts.find((count): count is number => typeof count === 'number');
}

/**
 * A value of bounded size, with numbers that can be sent on; a larger one is cut. Its members keep their places, so
 * that redaction finds them by their paths.
 */
function bounded(value: Json): unknown {
  const text = JSON.stringify(value);
  const whole = JSON.parse(text) as Json;
  return text.length <= MAX_TEXT ? whole : { ...(beginning(whole, { left: MAX_TEXT }) as Json), truncated: true };
}

/** The part of a value that fits. @param room characters that are left; is counted down */
export function beginning(value: unknown, room: { left: number }): unknown {
  if (typeof value === 'string') {
    const kept = value.length <= room.left ? value : `${cut(value, Math.min(room.left, MAX_CUT_TEXT))}…`;
    room.left -= kept.length + MARKS;
    return kept;
  }
  if (typeof value !== 'object' || value === null || isRawNumber(value)) {
    room.left -= JSON.stringify(value).length + MARKS;
    return value;
  }
  const kept: [string, unknown][] = [];
  for (const [name, member] of Object.entries(value)) {
    room.left -= name.length + MARKS;
    if (room.left <= 0) break;
    kept.push([name, beginning(member, room)]);
  }
  return Array.isArray(value) ? kept.map(([, member]) => member) : Object.fromEntries(kept);
}
