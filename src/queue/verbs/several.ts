/** Verbs for work of several queues: all or nothing, global uniqueness, jobs that move, workflows. */
import { v7 as uuidv7 } from 'uuid';
import type { Verbs } from '../../durable/answering';
import { notFound } from '../../job/errors';
import type { QueueApi } from '../../rpc/queue';
import type { EnqueueReceipt } from '../../rpc/receipts';
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
import { prepareBulk } from '../features/shares/action';
import * as batches from '../features/shares/batch';
import { prepareBatch } from '../features/shares/enqueue';
import { adopt } from '../features/transfer/adopt';
import { adoptMoved, beginMove, considerMove, planMove } from '../features/transfer/moves';
import { cancelSteps, startSteps } from '../features/workflow/steps';
import { AnswerRoom, conflictsHere } from '../jobs/conflicts';
import { heldUniques } from '../jobs/held-uniques';
import { taken } from '../jobs/schema-misfits';
import type { QueueLife } from '../life';
import { chosenIds, knownIds } from '../read/ids';
import { knownFingerprints, rivalKeys } from '../store/unique-keys';

export const SEVERAL_VERBS = {
  prepareBatch: write(
    (q, now, batch, coordinator, jobs) => prepareBatch(q, batch, coordinator, taken(q, jobs), now),
    undefined,
    (_batch, _coordinator, jobs) => rivals(jobs),
  ),
  async prepareBatchIfExists(life, batch, coordinator, jobs) {
    await life.created();
    const prepare: Operation<EnqueueReceipt> = (q, now) => prepareBatch(q, batch, coordinator, taken(q, jobs), now);
    const prepared = await life.writeIfExists(prepare, rivals(jobs));
    if (prepared) return prepared;
    const tried = await life.consider(prepare);
    return tried.ok ? { ok: true, value: null } : tried;
  },
  async decideBatch(life, batch, others, answer) {
    const decided = await life.write((q, now) => batches.decideBatch(q, batch, others, now, answer));
    if (decided.ok && decided.value === null) await life.engine?.batches.told(batch);
    return decided;
  },
  commitBatch: writeIfExists((q, now, batch) => batches.commitBatch(q, batch, now), nothing),
  abortBatch: writeIfExists((q, now, batch) => batches.abortBatch(q, batch, now), nothing),
  giveUpBatch: writeIfExists(
    (q, now, batch) => batches.decisionOf(q, batch, now),
    () => 'aborted',
  ),
  batchDecision: write((q, now, batch) => batches.decisionOf(q, batch, now)),
  prepareBulk: writeIfExists(
    (q, now, batch, coordinator, request) => prepareBulk(q, batch, coordinator, request, now),
    (_batch, _coordinator, { ids }) => ({ items: noneOf(ids), applied: false }),
    (_batch, _coordinator, { ids }) => jobs(ids),
  ),
  uniqueConflicts: look(
    (q, now, questions) => {
      const room = new AnswerRoom();
      return questions.map((question) => conflictsHere(q, question, now, room));
    },
    (questions) => questions.map(() => ({ known: false, undecided: false, blocking: [] })),
    (questions) => (q) => questions.flatMap(({ fingerprint }) => rivalKeys(q.store.sql, fingerprint)),
  ),
  heldUniques: look(
    (q, now, limit, after) => heldUniques(q, limit, after, now),
    () => ({ items: [], looked: 0 }),
  ),
  knownIds: look((q, _, ids) => knownIds(q.store.sql, ids), none),
  chosenIds: look((q, _, after) => chosenIds(q.store.sql, after), none),
  knownFingerprints: look((q, _, fingerprints) => knownFingerprints(q.store.sql, fingerprints), none),

  adopt: write((q, now, name, jobs, ticket) => adopt(q, name, jobs, ticket, now)),
  async moveDeadLetter(life, id, request) {
    const planned = life.read((q, now) => planMove(q, id, request, now));
    if (!planned) return { ok: false, error: notFound('dead letter', id).data };
    if (!planned.ok) return planned;
    if (!planned.value.open) {
      const considered = await life.queue(request.target).considerMoved(planned.value.job);
      if (!considered.ok) return considered;
    }
    const begun = await change((q, now, at: string) => beginMove(q, at, request, uuidv7(), now))(life, id);
    return begun.ok ? (life.engine?.moves.finish(id, begun.value) ?? noJob(id)) : begun;
  },
  considerMoved: consider((q, _, job) => considerMove(q, job)),
  adoptMoved: write((q, now, name, job, ticket) => adoptMoved(q, name, job, ticket, now)),

  startSteps: write((q, now, start) => startSteps(q, start, now)),
  cancelSteps: writeIfExists((q, now, ids) => cancelSteps(q, ids, now), nothing, jobs),
} satisfies Partial<Verbs<QueueLife, QueueApi>>;
