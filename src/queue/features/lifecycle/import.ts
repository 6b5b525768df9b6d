/** Takes the jobs of a file, part by part, recording the last part's number: a repeated import continues behind it. */
import { readFact, writeMeta } from '../../../durable/sql';
import type { StoredJob } from '../../../export/stored-job';
import { conflict } from '../../../job/errors';
import { decodeId, FIRST_CHOSEN, sequenceOf } from '../../../job/ids';
import type { ImportPart, ImportRequest, PartsImported } from '../../../rpc/export';
import { hasDeparted, refuseRemoved } from '../../jobs/may-enqueue';
import { find, knownIds } from '../../read/find';
import { stats } from '../../read/stats';
import { setEvicting } from '../../store/jobs';
import type { Named, QueueParts, Stored, StoredQueue } from '../../store/parts';
import { Restoration } from '../../store/restore';
import { refuseWhenFull } from '../../store/storage';
import { replaceGroups, replaceSettings } from './settings';

const FACT = 'import';

interface Progress {
  file: string;
  part: number;
}

interface Plan extends PartsImported {
  /** The parts that were not taken before, and their jobs that are not here. */
  fresh: ImportPart[];
  jobs: StoredJob[];
}

/**
 * What parts would bring. Writes nothing.
 * @throws {ApiError} 409 for other jobs, missing parts, or a queue being deleted; 503 when the storage is full
 */
export function planImport(q: StoredQueue, request: ImportRequest, now: number): Plan {
  refuseRemoved(q);
  refuseWhenFull(q);
  const { file, merge, parts } = request;
  const before = merge ? undefined : readFact<Progress>(q.store.sql, FACT);
  const done = before?.file === file ? before.part : 0;
  const fresh = parts.filter(({ number }) => merge || number > done);
  const [first] = fresh;
  if (first && !merge) {
    if (first.number > done + 1) {
      throw conflict(`Part ${first.number} cannot be imported before part ${done + 1}.`, { expected_part: done + 1 });
    }
    if (done === 0) refuseOthers(q, now);
  }
  const all = fresh.flatMap((part) => part.jobs);
  const seen = new Set(
    knownIds(
      q.store.sql,
      all.map(({ id }) => id),
    ),
  );
  const jobs = all.filter(({ id }) => {
    const isNew = !seen.has(id) && !wasHere(q, id, now);
    seen.add(id);
    return isNew;
  });
  const total = parts.reduce((sum, part) => sum + part.jobs.length, 0);
  return { imported: jobs.length, known: total - jobs.length, id_rows: 0, fresh, jobs };
}

/** Does the id lead to a job of this queue by itself, or has it? Those ahead of the queue are not looked for. */
function wasHere(q: Named & Stored, id: string, now: number): boolean {
  const { route, key } = decodeId(id);
  if (route !== q.route) return false;
  const sequence = sequenceOf(key);
  if (sequence >= q.store.nextSequence && sequence < FIRST_CHOSEN) return false;
  return find(q, id) !== undefined || hasDeparted(q, id, now);
}

function refuseOthers(q: StoredQueue, now: number): void {
  const count = Object.values(stats(q, now).counts).reduce((sum, n) => sum + n, 0);
  if (count === 0) return;
  throw conflict(
    `Queue ${q.name} has ${count} jobs.`,
    { queue: q.name, jobs: count },
    'Import into an empty queue, or say merge=true: jobs that are here stay as they are, and so do the settings.',
  );
}

/** Takes parts. Their share of blocks, and one row. @throws {ApiError} as {@link planImport} */
export function importParts(q: QueueParts, request: ImportRequest, now: number): PartsImported {
  const { jobs, fresh, ...plan } = planImport(q, request, now);
  const last = fresh.at(-1);
  if (!last) return plan;
  for (const { settings } of fresh) {
    if (!settings || request.merge) continue;
    replaceSettings(q, settings.config, settings.mode, now);
    replaceGroups(q, settings.groups);
  }
  const restoration = new Restoration(q, now);
  for (const [index, job] of jobs.entries()) {
    restoration.add(job, isLike(job, jobs[index - 1]) || isLike(job, jobs[index + 1]));
  }
  restoration.end();
  writeMeta(q.store.sql, FACT, { file: request.file, part: last.number } satisfies Progress);
  if (q.store.counts.countDead() > q.config.maxDeadLetters) setEvicting(q, true);
  return { ...plan, id_rows: restoration.id_rows };
}

const isLike = (job: StoredJob, other: StoredJob | undefined): boolean =>
  other?.due_at !== undefined && other.due_at === job.due_at && other.priority === job.priority;
