import { v7 as uuidv7 } from 'uuid';
import type { Verbs } from '../../durable/answering';
import { parseExactly } from '../../job/envelope/exact';
import { notFound, type Outcome } from '../../job/errors';
import type { SentJobs } from '../../job/message';
import type { JobBody, JobView, UniquePolicy } from '../../job/record';
import { blocks } from '../../job/unique/conflicts';
import { readUnique } from '../../job/unique/policy';
import type { IdPlace } from '../../rpc/ids';
import type { BulkCheck, MovedJob, MoveRequest } from '../../rpc/operations';
import type { UniqueQuestion } from '../../rpc/queue';
import type { EnqueueReceipt, RememberedAnswer } from '../../rpc/receipts';
import type { RunEnding } from '../../rpc/runs';
import type { HeldUnique, HeldUniques, UniquePlace } from '../../rpc/uniques';
import type { StepStart } from '../../rpc/workflow';
import {
  change,
  consider,
  jobs,
  look,
  noJob,
  none,
  noneOf,
  nothing,
  rivals,
  write,
  writeIfExists,
} from '../access-modes';
import type { Operation } from '../creation';
import * as batches from '../features/shares/batch';
import { prepareBulk } from '../features/shares/batch';
import { prepareBatch } from '../features/shares/enqueue';
import { adopt, adoptMoved, beginMove, considerMove, planMove } from '../features/transfer/moves';
import { startSteps } from '../features/workflow/steps';
import { cancelOpen } from '../jobs/cancel';
import { AnswerRoom, conflictsHere, StoredJob } from '../jobs/conflicts';
import { taken } from '../jobs/may-enqueue';
import { endRuns } from '../jobs/runs';
import type { QueueLife } from '../life';
import { chosenIds, knownIds } from '../read/find';
import type { StoredQueue } from '../store/parts';
import { knownFingerprints, rivalKeys, uniqueKeysAfter } from '../store/unique-keys';

/** Jobs that one call looks at, even if most of them no longer conflict. */
const MAX_LOOKED = 500;

/** @param limit how many are returned at most; with the place after the last one looked at if there may be more */
function heldUniques(q: StoredQueue, limit: number, after: UniquePlace | undefined, now: number): HeldUniques {
  const places = uniqueKeysAfter(q.store.sql, after, MAX_LOOKED);
  const items: HeldUnique[] = [];
  let looked = 0;
  for (const place of places) {
    if (items.length === limit) break;
    looked++;
    const held = heldBy(q, place, now);
    if (held) items.push(held);
  }
  const isAll = looked === places.length && looked < MAX_LOOKED;
  return { items, looked, ...(!isAll && { next: places[looked - 1] ?? after }) } as HeldUniques;
}

function heldBy(q: StoredQueue, place: UniquePlace, now: number): HeldUnique | undefined {
  const job = new StoredJob(q, place.key, now);
  const { state, createdAt } = job;
  if (state === 'undecided' || createdAt === undefined) return undefined;
  const body = parseExactly(job.body) as JobBody;
  const policy = policyOf(q.name, body);
  if (!policy || blocks(policy, job, now) !== true) return undefined;
  const until = policy.period_ms === undefined ? {} : { until: createdAt + policy.period_ms };
  return { ...place, job_id: job.id, type: body.type, state, created_at: createdAt, ...until };
}

/** Undefined if the stored policy cannot be read: it may be of another release. */
function policyOf(queue: string, body: JobBody): Pick<UniquePolicy, 'states' | 'period_ms'> | undefined {
  try {
    return readUnique(body.unique, 'unique', { ...body, queue }).policy;
  } catch {
    return undefined;
  }
}

export const SEVERAL_VERBS = {
  /** Holds this queue's share of a batch over several queues, see `features/shares/batch.ts`. */
  prepareBatch: write(
    (q, now, batch: string, coordinator: string, jobs: SentJobs) =>
      prepareBatch(q, batch, coordinator, taken(q, jobs), now),
    undefined,
    (_batch, _coordinator, jobs) => rivals(jobs),
  ),
  /** As `prepareBatch`, unless the queue does not exist: null when it would be created and hold them. */
  async prepareBatchIfExists(
    life,
    batch: string,
    coordinator: string,
    jobs: SentJobs,
  ): Promise<Outcome<EnqueueReceipt | null>> {
    await life.created();
    const prepare: Operation<EnqueueReceipt> = (q, now) => prepareBatch(q, batch, coordinator, taken(q, jobs), now);
    const prepared = await life.writeIfExists(prepare, rivals(jobs));
    if (prepared) return prepared;
    const tried = await life.consider(prepare);
    return tried.ok ? { ok: true, value: null } : tried;
  },
  /**
   * Decides a batch and commits this queue's share. Answers when the others have committed theirs, or after 5 s. 503
   * when it was abandoned meanwhile, or jobs that it replaces have not ended by then. With an answer to remember: an
   * earlier answer under the same key, if there is one; the batch is then abandoned.
   */
  async decideBatch(
    life,
    batch: string,
    others: string[],
    answer?: RememberedAnswer,
    replaced?: IdPlace[],
  ): Promise<Outcome<unknown>> {
    const decided = await life.write((q, now) => batches.decideBatch(q, batch, others, now, answer, replaced));
    if (!decided.ok || decided.value !== null) return decided;
    await life.engine?.batches.told(batch);
    const settled = life.read((q) => batches.settledDecision(q, batch));
    return settled?.ok === false ? settled : decided;
  },
  commitBatch: writeIfExists((q, now, batch: string) => batches.commitBatch(q, batch, now), nothing),
  abortBatch: writeIfExists((q, now, batch: string) => batches.abortBatch(q, batch, now), nothing),
  /** As `batchDecision`, by the caller that drives the batch and gives it up. Creates no queue. */
  giveUpBatch: writeIfExists(
    (q, now, batch: string) => batches.decisionOf(q, batch, now),
    () => 'aborted' as const,
  ),
  /** What this coordinator decided; a batch (or ticket) that is still open is thereby given up. */
  batchDecision: write((q, now, batch: string) => batches.decisionOf(q, batch, now)),
  /** Locks this queue's share of an operation over several queues; decided, committed and aborted as a batch is. */
  prepareBulk: writeIfExists(
    (q, now, batch: string, coordinator: string, request: BulkCheck) =>
      prepareBulk(q, batch, coordinator, request, now),
    (_batch, _coordinator, { ids }) => ({ items: noneOf(ids), applied: false }),
    (_batch, _coordinator, { ids }) => jobs(ids),
  ),
  /** Which jobs here have these fingerprints, and are in conflict by these criteria? One answer for each question. */
  uniqueConflicts: look(
    (q, now, questions: UniqueQuestion[]) => {
      const room = new AnswerRoom();
      return questions.map((question) => conflictsHere(q, question, now, room));
    },
    (questions) => questions.map(() => ({ known: false, undecided: false, blocking: [] })),
    (questions) => (q) => questions.flatMap(({ fingerprint }) => rivalKeys(q.store.sql, fingerprint)),
  ),
  /** At most `limit` of them by fingerprint, after a place; a bounded number of jobs is looked at. */
  heldUniques: look(
    (q, now, limit: number, after?: UniquePlace) => heldUniques(q, limit, after, now),
    () => ({ items: [], looked: 0 }),
  ),
  /** Those of these ids that are written down here, because they do not lead to their jobs by themselves. */
  knownIds: look((q, _, ids: string[]) => knownIds(q.store.sql, ids), none),
  /** The next of them after this one, in order; none: that was all. */
  chosenIds: look((q, _, after: string) => chosenIds(q.store.sql, after), none),
  /** Which of these fingerprints have a job here? */
  knownFingerprints: look((q, _, fingerprints: string[]) => knownFingerprints(q.store.sql, fingerprints), none),

  /** Takes jobs over from a queue that is being deleted, once for each `move`. @param ticket as in `enqueue` */
  adopt: write((q, now, name: string, jobs: MovedJob[], ticket?: string) => adopt(q, name, jobs, ticket, now)),
  /**
   * Gives a dead letter its second life in another queue. Answers the job in its new queue. 404 unless it is a dead
   * letter; that queue's refusal, and then nothing has changed. 409 when something else has been decided about the job;
   * 503 when it is on its way and arrives automatically.
   */
  async moveDeadLetter(life, id: string, request: MoveRequest): Promise<Outcome<JobView>> {
    const planned = life.read((q, now) => planMove(q, id, request, now));
    if (!planned) return { ok: false, error: notFound('dead letter', id).data };
    if (!planned.ok) return planned;
    if (!planned.value.open) {
      const considered = await life.others.queue(request.target).considerMoved(planned.value.job);
      if (!considered.ok) return considered;
    }
    const begun = await change((q, now, at: string) => beginMove(q, at, request, uuidv7(), now))(life, id);
    return begun.ok ? (life.engine?.moves.finish(id, begun.value) ?? noJob(id)) : begun;
  },
  /** Would this queue take the job? Writes nothing. */
  considerMoved: consider((q, _, job: MovedJob) => considerMove(q, job)),
  /**
   * Takes a dead letter of another queue, or refuses it for good; once for each `move`.
   * @param ticket as in `enqueue`; 503 once it is given up, and that is not for good
   */
  adoptMoved: write((q, now, name: string, job: MovedJob, ticket?: string) => adoptMoved(q, name, job, ticket, now)),

  /**
   * Takes jobs of a workflow, each once: their ids in order, null where a job is refused for good. Undefined, where the
   * start is divisible: there is no room now.
   */
  startSteps: write((q, now, start: StepStart) => startSteps(q, start, now)),
  /** Cancels those of these jobs that have not ended: which are not here. Objects of earlier versions do not say. */
  cancelSteps: writeIfExists(
    (q, now, ids: string[]): string[] | undefined => cancelOpen(q, ids, now),
    (ids) => ids,
    jobs,
  ),
  /** Jobs have ended that handlers wait for: those whose handlers are not here. A repeated call changes nothing. */
  runsEnded: writeIfExists(
    (q, now, endings: RunEnding[]) => endRuns(q, endings, now),
    (endings) => endings,
    (endings) => jobs(endings.map(({ by }) => by)),
  ),
} satisfies Verbs<QueueLife>;
