/** Why a job that is pushed does not run: makes the checks of the selection (`select.ts`), in their order. */
import { maskedUrl } from '../../../access/secrets';
import { MAX_CONNECTIONS } from '../../../dispatch/remote';
import { formatInstant } from '../../../job/time';
import { type WaitingFor, waiting } from '../../../job/waiting';
import { behind, waitsForChunk, waitsForQueueLimit } from '../../jobs/waiting';
import type { JobRow } from '../../store/job-row';
import { countAhead } from '../../store/jobs-ahead';
import { startsLeft } from '../../store/limits/queue-limit';
import type { StoredQueue } from '../../store/parts';
import { availableSince } from '../../store/rows';
import { type HandledTypes, urlOf } from './handled-types';
import { gatheredFor } from './plan';
import type { Bound, PushTarget } from './target';

/** Undefined for a job that is not pushed. */
export function waitsForPush(q: StoredQueue, handled: HandledTypes, row: JobRow, now: number): WaitingFor | undefined {
  const since = availableSince(row);
  const target = handled.targetOfJob(row);
  const down = target && waitsForTarget(target, row, now);
  if (down) return down;
  const url = urlOf(row);
  if (url !== undefined && !target) {
    const detail = `ALLOWED_TARGET_HOSTS does not list the host of its target_url ${maskedUrl(url)}.`;
    return waiting('no_handler', detail, since);
  }
  const unhandled = url === undefined ? handled.whyUnhandled(row.type) : undefined;
  if (unhandled !== undefined) return noHandler(unhandled, target, since, now);
  if (!target) return undefined;
  const closed = waitsForRoom(q, handled, target, row, now);
  const chunk = waitsForChunk(gatheredFor(q, target), row, now);
  if (chunk) return chunk.isReady ? (closed ?? chunk.why) : chunk.why;
  const scan = target.deferred.entries.has(target.entryOf(row.type))
    ? target.deferred.scanOf(q, target.entryOf(row.type))
    : q.store.cursors.ofTarget(target.id);
  const ahead = countAhead(q.store, scan, row, now, ({ key, type }) => {
    return !q.store.leases.active.has(key) && handled.targetOf(type) === target && isRival(target, row.type, type);
  });
  return behind(ahead, since, closed) ?? closed;
}

/** Does a job of one type take the place of the other? If the type's concurrency is the bound, only its own type. */
function isRival(target: PushTarget, type: string, other: string): boolean {
  // Jobs that gather for a call hold up none of other types.
  if (target.chunkFor(other) && !target.chunkFor(type)) return false;
  const entry = target.entryOf(other);
  return entry === target.entryOf(type) || !target.deferred.entries.has(entry);
}

function noHandler(why: string, target: PushTarget | undefined, since: number, now: number): WaitingFor {
  const asksAt = target?.asksAgainAt(now);
  const next =
    asksAt === undefined
      ? 'It becomes a dead letter'
      : `The handler is asked again at ${formatInstant(asksAt)}; if it still does not take it, it becomes a dead letter`;
  const detail = `${why} ${next}: deploy a handler that takes it, or enqueue it with the right type.`;
  return waiting('no_handler', detail, since, asksAt);
}

function waitsForRoom(
  q: StoredQueue,
  handled: HandledTypes,
  target: PushTarget,
  row: JobRow,
  now: number,
): WaitingFor | undefined {
  const since = availableSince(row);
  const used = target.bounds(q).find(({ running, max }) => running >= max);
  if (used) return waiting('concurrency', usedUp(used, q.name, target.config.name), since);
  if (startsLeft(q, now) <= 0) {
    const most = `As many jobs run in queue ${q.name} as one queue can have at once.`;
    return waitsForQueueLimit(q, since, now) ?? waiting('concurrency', most, since);
  }
  if (target.config.isRemote && handled.isConnectedOut) {
    const most = `Queue ${q.name} waits for ${MAX_CONNECTIONS} answers from URLs, as many as the platform allows at once.`;
    return waiting('concurrency', most, since);
  }
  const bound = target.boundOf(row.type, target.runningByEntry(q));
  if (!bound || bound.running < bound.max) return undefined;
  const detail = `The concurrency that ${target.config.name} announced for ${bound.entry} is reached: ${bound.running} of ${bound.max} jobs run.`;
  return waiting('concurrency', detail, since);
}

function waitsForTarget({ health, config }: PushTarget, row: JobRow, now: number): WaitingFor | undefined {
  const { trouble } = health;
  if (!trouble) return undefined;
  const until = health.resumesAt(now);
  const next = until === undefined ? 'It is being called.' : `It is called again at ${formatInstant(until)}.`;
  const detail =
    `The handler ${config.name} is ${health.isStopped ? 'stopped' : 'paused'} after errors. ` +
    `Last call at ${formatInstant(trouble.triedAt)}: ${trouble.error} ${next} ` +
    `POST /targets/${config.name}/resume to call it now.`;
  const since = Math.max(trouble.since, availableSince(row));
  return { ...waiting('handler_down', detail, since, until), target: config.name };
}

function usedUp({ by, running, max }: Bound, queue: string, target: string): string {
  if (by === 'solo') return `A job that may have killed ${target} runs there alone; the others follow when it ends.`;
  const [what, how] =
    by === 'queue'
      ? [`queue ${queue}`, 'concurrency in its settings']
      : [`the handler ${target}`, 'max_concurrency where it is mapped'];
  return `The concurrency of ${what} is reached: ${running} of ${max} jobs run. Raise ${how} to run more.`;
}
