/**
 * Takes the jobs of a file, part by part. The transaction that takes a part records its number. So a file whose import
 * was cut off continues behind that part, and no part is taken twice, whatever has become of its jobs meanwhile.
 */
import { readFact, writeMeta } from '../../../durable/sql';
import { conflict } from '../../../job/errors';
import type { StoredJob } from '../../../job/export/stored-job';
import type { ImportPart, PartImported } from '../../../rpc/export';
import { hasDeparted } from '../../jobs/departed-ids';
import { find } from '../../read/find';
import { stats } from '../../read/stats';
import { setEvicting } from '../../store/jobs';
import type { Configured, Named, QueueParts, Stored } from '../../store/parts';
import { Restoration } from '../../store/restore';
import { refuseWhenFull } from '../../store/storage';
import { replaceSettings } from './settings';

const FACT = 'import';

/** The file of the last import, and the last of its parts that was taken. */
interface Progress {
  file: string;
  part: number;
}

/**
 * What a part would bring. Writes nothing.
 * @throws {ApiError} 409 when the queue has other jobs, when parts are missing, while it is being deleted; 503 when the
 *   storage is full
 */
export function planImport(
  q: Named & Stored & Configured,
  part: ImportPart,
  now: number,
): PartImported & { jobs: StoredJob[] } {
  if (q.config.removal) {
    throw conflict(`Queue ${q.name} is being deleted.`, { queue: q.name, current_state: 'deleting' });
  }
  refuseWhenFull(q);
  if (!part.merge) {
    const before = readFact<Progress>(q.store.sql, FACT);
    const done = before?.file === part.file ? before.part : 0;
    if (part.number <= done) return { imported: 0, known: part.jobs.length, id_rows: 0, repeated: true, jobs: [] };
    if (part.number > done + 1) {
      throw conflict(`Part ${part.number} cannot be imported before part ${done + 1}.`, { expected_part: done + 1 });
    }
    if (done === 0) refuseOthers(q, now);
  }
  const seen = new Set<string>();
  const jobs = part.jobs.filter(({ id }) => {
    const isNew = !seen.has(id) && !q.store.hasAlias(id) && !find(q, id) && !hasDeparted(q, id, now);
    seen.add(id);
    return isNew;
  });
  return { imported: jobs.length, known: part.jobs.length - jobs.length, id_rows: 0, jobs };
}

function refuseOthers(q: Named & Stored & Configured, now: number): void {
  const count = Object.values(stats(q, now).counts).reduce((sum, n) => sum + n, 0);
  if (count === 0) return;
  throw conflict(
    `Queue ${q.name} has ${count} jobs.`,
    { queue: q.name, jobs: count },
    'Import into an empty queue, or say merge=true: jobs that are here stay as they are, and so do the settings.',
  );
}

/** Takes a part. Its share of blocks, and one row. @throws {ApiError} as {@link planImport} */
export function importPart(q: QueueParts, part: ImportPart, now: number): PartImported {
  const { jobs, ...plan } = planImport(q, part, now);
  if (plan.repeated) return plan;
  const { file, number, settings } = part;
  if (settings && !part.merge) replaceSettings(q, settings.config, settings.mode, now);
  const restoration = new Restoration(q, now);
  for (const [index, job] of jobs.entries()) {
    restoration.add(job, isLike(job, jobs[index - 1]) || isLike(job, jobs[index + 1]));
  }
  restoration.end();
  writeMeta(q.store.sql, FACT, { file, part: number } satisfies Progress);
  if (q.store.counts.countDead() > q.config.maxDeadLetters) setEvicting(q, true);
  return { ...plan, id_rows: restoration.id_rows };
}

/** Do both wait for the same moment at the same priority? */
function isLike(job: StoredJob, other: StoredJob | undefined): boolean {
  return other?.due_at !== undefined && other.due_at === job.due_at && other.priority === job.priority;
}
