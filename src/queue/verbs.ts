/**
 * What a queue object answers, verb by verb ({@link QueueApi} says what each means). Almost every verb is one operation of
 * `jobs/`, `read/` or a feature, on one of the footings of `footings.ts`; the engine does the rest.
 */
import { v7 as uuidv7 } from 'uuid';
import { withBody } from '../across/bodies';
import type { Verbs } from '../durable/answering';
import { answerOnce, recallAnswer } from '../durable/inbox';
import { jobOf } from '../job/cron/definition';
import { notFound, type Outcome } from '../job/errors';
import { type SentJobs, unpack } from '../job/message';
import type { JobView, NewJob } from '../job/record';
import type { BulkAnswer, BulkItem, EachReceipt, OperationRequest, OperationView } from '../rpc/operations';
import type { JobStory, QueueApi } from '../rpc/queue';
import type { EnqueueReceipt } from '../rpc/receipts';
import type { Operation } from './birth';
import { bulkMatching, checkMatching } from './features/bulk/matching';
import { abortTask, createTask, viewTask, viewTasks } from './features/bulk/tasks';
import { mustReadCron, noSuchCron, noteTriggered, triggerHere } from './features/cron/fire';
import * as crons from './features/cron/manage';
import { beginRemoval } from './features/lifecycle/remove';
import { configure, setMode, takeDefaults } from './features/lifecycle/settings';
import { limitKeys, rateLimits } from './features/limits/report';
import { prepareBulk } from './features/shares/action';
import * as batches from './features/shares/batch';
import { prepareBatch } from './features/shares/enqueue';
import { adopt } from './features/transfer/adopt';
import { adoptMoved, beginMove, considerMove, planMove } from './features/transfer/moves';
import { cancelSteps, startSteps } from './features/workflow/steps';
import {
  change,
  consider,
  held,
  jobs,
  look,
  noJob,
  type On,
  read,
  readAll,
  readJob,
  rivals,
  write,
  writeIfExists,
} from './footings';
import { bulk, checkItem } from './jobs/act';
import { activate, runNow } from './jobs/activate';
import { cancel } from './jobs/cancel';
import { checkpointOf, deleteCheckpoint, saveCheckpoint } from './jobs/checkpoint';
import { conflictsHere, Room } from './jobs/conflicts';
import { checkJobs, enqueue } from './jobs/enqueue';
import { enqueueEach } from './jobs/enqueue-each';
import { heartbeat } from './jobs/heartbeat';
import { heldUniques } from './jobs/held-uniques';
import { leasedBy, releaseLeased } from './jobs/leased';
import { addLog, logOf } from './jobs/log';
import { refuseOutdated } from './jobs/misfits';
import { patch } from './jobs/patch';
import { progressOf, reportProgress } from './jobs/progress';
import { deadLetterRow, deleteDeadLetter, redrive } from './jobs/redrive';
import { ack, nack, takeBack } from './jobs/report';
import { signal } from './jobs/snooze';
import { recordStep, stepsOf } from './jobs/steps';
import { storyOf } from './jobs/story';
import { refuseGivenUp } from './jobs/ticket';
import type { QueueLife } from './life';
import { activity, noActivity, points } from './read/activity';
import { awaitEnd } from './read/await-end';
import { deadLetterKinds, deadLetterPlaces, deadLettersAt } from './read/dead-letters';
import { failures } from './read/failures';
import { mustFind, runningOf, viewOf, viewOfRow } from './read/find';
import { getMany } from './read/get-many';
import { chosenIds, knownIds } from './read/ids';
import { count, countStates, list, listPlaces } from './read/list';
import { sorted } from './read/sorted';
import { emptyStats, priorities, stats, upcoming } from './read/stats';
import type { QueueState } from './store/state';
import { storageUse } from './store/storage';
import { knownFingerprints, rivalKeys } from './store/unique-keys';

/** About a cron entry of this queue. */
function onCron<A extends [string, ...unknown[]], T>(
  run: (life: QueueLife, operation: Operation<T>) => Outcome<T> | Promise<Outcome<T>> | undefined,
  operation: On<A, T>,
) {
  return async (life: QueueLife, ...args: A): Promise<Outcome<T>> =>
    (await run(life, (q, now) => operation(q, now, ...args))) ?? { ok: false, error: noSuchCron(args[0]).data };
}

/** The jobs that a producer sent. @throws {ApiError} 503 when they were validated by schemas that have changed */
function taken(q: QueueState, sent: SentJobs): NewJob[] {
  const jobs = unpack(sent);
  refuseOutdated(q, jobs);
  return jobs;
}

const nothing = () => undefined;
const none = () => [];

const viewJob: On<[id: string], ReturnType<typeof viewOf>> = (q, now, id) => viewOf(q, mustFind(q, id), now);

/** A job with what it waits for, if it waits. */
function explained(life: QueueLife, q: QueueState, now: number, id: string): JobView {
  const found = mustFind(q, id);
  const view = viewOf(q, found, now);
  const waiting = found.row && life.engine?.waitingFor(found.row, now);
  if (waiting) view.record.waiting_for = waiting;
  return view;
}

const noneOf = (ids: readonly string[]): BulkItem[] =>
  ids.map((job_id) => ({ job_id, status: 'failed', reason: 'not_found' }));

function nothingToDo({ id, action }: OperationRequest): OperationView {
  const counts = { matched: 0, succeeded: 0, skipped: 0, failed: 0 };
  return { id, action, done: true, ...counts, errors: [], started_at: Date.now() };
}

export const VERBS: Verbs<QueueLife, QueueApi> = {
  // ---- producers ---------------------------------------------------------------------------------------------------

  enqueue: write(
    (q, now, jobs, ticket, idempotency) => {
      if (ticket !== undefined) refuseGivenUp(q, ticket, now);
      return answerOnce(q, idempotency, now, () => enqueue(q, taken(q, jobs), now));
    },
    undefined,
    (newcomers) => rivals(newcomers),
  ),
  enqueueEach: write(
    (q, now, jobs, idempotency) => enqueueEach(q, taken(q, jobs), idempotency, now),
    ({ outcomes }: EachReceipt) => outcomes.some(({ ok }) => ok),
    (newcomers) => rivals(newcomers),
  ),
  checkJobs: consider((q, now, jobs) => checkJobs(q, jobs, now)),
  recall: read(
    (q, now, idempotency) => recallAnswer<unknown>(q, idempotency, now) ?? null,
    () => null,
  ),
  get: (life, id) => readJob<[string], JobView>((q, now) => explained(life, q, now, id))(life, id),
  story: (life, id) =>
    readJob<[string], JobStory>((q, now) => storyOf(q, id, explained(life, q, now, id), now))(life, id),
  cancel: change((q, now, id) => cancel(q, id, now)),
  activate: change((q, now, id) => activate(q, id, now)),
  runNow: change((q, now, id) => runNow(q, id, now)),
  patch: change((q, now, request) => patch(q, request, now)),

  // ---- reading -----------------------------------------------------------------------------------------------------

  async awaitEnd(life, id, waitMs) {
    const view = () => life.read((q, now) => viewJob(q, now, id), jobs([id])) ?? noJob(id);
    const { engine } = life;
    return engine ? awaitEnd(engine.q.events, id, Date.now() + waitMs, () => Date.now(), view) : view();
  },
  getMany: look(
    (q, now, ids) => getMany(q, ids, now),
    () => ({ jobs: [], omitted: [] }),
    jobs,
  ),
  runningOf: look((q, _, ids) => runningOf(q, ids), none, jobs),
  list: readAll(
    (q, now, request) => list(q, request, now),
    () => ({ jobs: [], total: 0, has_more: false, looked: 0, spent: 0 }),
  ),
  countStates: readAll(
    (q, now, request) => countStates(q, request, now),
    () => ({ counts: emptyStats('', 0).counts, looked: 0 }),
  ),
  failures: readAll(
    (q, now, request) => failures(q, request, now),
    () => ({ groups: [], looked: 0 }),
  ),
  listPlaces: readAll(
    (q, now, request) => listPlaces(q, request, now),
    () => ({ places: [] }),
  ),
  sorted: readAll(
    (q, now, request) => sorted(q, request, now),
    () => ({ entries: [], matched: 0, looked: 0 }),
  ),
  count: readAll(
    (q, now, request) => count(q, request, now),
    () => ({ count: 0 }),
  ),
  deadLetterPlaces: readAll(
    (q, now, request) => deadLetterPlaces(q, request, now),
    () => ({ places: [], total: 0 }),
  ),
  deadLettersAt: read(
    (q, now, keys) => deadLettersAt(q, keys, now),
    () => ({ jobs: [], rest: [] }),
  ),
  deadLetterKinds: readAll(
    (q) => deadLetterKinds(q),
    () => ({ total: 0, types: [], errors: [], complete: true }),
  ),
  deadLetter: readJob((q, now, id) => viewOfRow(q, deadLetterRow(q, id), now)),
  async stats(life) {
    return (
      (await life.readAll((q, now) => ({ ...stats(q, now), storage: storageUse(q) }))) ?? {
        ok: true,
        value: emptyStats(life.name, Date.now()),
      }
    );
  },
  async watch(life) {
    const { engine } = life;
    const around = { targets: engine?.targets() ?? [], events_dropped: life.followers.dropped };
    const read = await life.readAll((q, now) => {
      const reading = { ...stats(q, now), storage: storageUse(q), ...activity(q, around, now) };
      // What changes from here on is to be told of.
      life.engine?.readers.read();
      return { ...reading, upcoming: upcoming(q, now) };
    });
    return read ?? { ok: true, value: { ...emptyStats(life.name, Date.now()), ...noActivity(), upcoming: [] } };
  },
  async priorities(life) {
    await life.engine?.caughtUp();
    return look((q, now) => priorities(q, now), none)(life);
  },
  async activity(life) {
    const { engine } = life;
    await engine?.caughtUp();
    const around = { targets: engine?.targets() ?? [], events_dropped: life.followers.dropped };
    return look((q, now) => activity(q, around, now), noActivity)(life);
  },
  points: look((q, _, request) => points(q, request), none),
  events: look((q, _, request) => q.events.read(request), none),
  async targets(life) {
    return life.present() ? (life.engine?.targets() ?? []) : [];
  },
  async resumeTarget(life, name) {
    return life.present() ? ((await life.engine?.resumeTarget(name)) ?? []) : [];
  },

  // ---- workers that pull -------------------------------------------------------------------------------------------

  claim: (life, request) => life.claim(request),
  activeCount: look(
    (q) => q.leases.active.size,
    () => 0,
  ),
  withdraw: async (life, waiter) => life.withdraw(waiter),
  takeBack: writeIfExists((q, now, claims) => takeBack(q, claims, now), nothing),
  ack: change((q, now, request) => ack(q, request, now)),
  nack: change((q, now, request) => nack(q, request, now, Math.random)),
  async report(life, reports) {
    await life.born();
    return life.engine ? life.engine.pull.report(reports) : reports.map(({ job_id }) => noJob(job_id));
  },
  heartbeat: writeIfExists(
    (q, now, request) => heartbeat(q, request, now),
    () => ({ extended: [], cancelled: [], lost: [] }),
    ({ job_ids, worker_id }) => (job_ids ? jobs(job_ids) : held(worker_id)),
  ),
  reportProgress: change((q, now, request) => reportProgress(q, request, now)),
  progress: readJob((q, now, id) => progressOf(q, id, now)),
  saveCheckpoint: change((q, now, request) => saveCheckpoint(q, request, now)),
  checkpoint: readJob((q, _, id) => checkpointOf(q, id)),
  deleteCheckpoint: change((q, now, request) => deleteCheckpoint(q, request, now)),
  recordStep: change((q, now, request) => recordStep(q, request, now)),
  steps: readJob((q, _, id) => stepsOf(q, id)),
  signal: change((q, now, request) => signal(q, request, now)),
  addLog: change((q, now, request) => addLog(q, request, now)),
  log: readJob((q, _, id) => logOf(q, id)),
  leasedBy: look((q, _, workerId) => leasedBy(q, workerId), none, held),
  releaseLeased: writeIfExists((q, now, workerId) => releaseLeased(q, workerId, now, Math.random), none, held),
  silence: async (life, workerIds, silenced) => life.silence(workerIds, silenced),

  // ---- operators: jobs ---------------------------------------------------------------------------------------------

  redrive: change((q, now, id, options) => redrive(q, id, options, now)),
  deleteDeadLetter: change((q, now, id) => deleteDeadLetter(q, id, now)),
  bulk: writeIfExists(
    (q, now, request) => bulk(q, request, now),
    ({ ids, atomic }) => ({ items: noneOf(ids), applied: !atomic }),
    ({ ids }) => jobs(ids),
  ),
  checkBulk: read(
    (q, now, { action, ids }) => ids.map((id) => checkItem(q, action, id, now)),
    ({ ids }) => noneOf(ids),
    ({ ids }) => jobs(ids),
  ),
  checkMatching: readAll((q, now, request) => checkMatching(q, request, now), none),
  async bulkMatching(life, request) {
    const late = await life.engine?.caughtUp();
    if (late) return { ok: false, error: late.data };
    const act = writeIfExists(
      (q, now) => bulkMatching(q, request, now),
      (): BulkAnswer => ({ items: [], applied: true }),
    );
    return act(life);
  },
  async operate(life, request, waitMs) {
    const { engine } = life;
    const known = engine && viewTask(engine.q, request.id);
    if (known?.done) return { ok: true, value: known };
    const late = await engine?.caughtUp();
    if (late) return { ok: false, error: late.data };
    const begun = await life.writeIfExists((q, now) => createTask(q, request, now));
    if (!engine || !begun) return { ok: true, value: nothingToDo(request) };
    if (!begun.ok) return begun;
    engine.bulk.began(request.id);
    return { ok: true, value: (await engine.bulk.view(request.id, waitMs)) ?? nothingToDo(request) };
  },
  async operation(life, id, waitMs, items) {
    const q = life.present();
    return (q && viewTask(q, id) && (await life.engine?.bulk.view(id, waitMs, items))) ?? null;
  },

  async abortOperation(life, id, action) {
    const aborted = await life.writeIfExists((q, now) => abortTask(q, id, action, now));
    if (aborted?.ok) life.engine?.bulk.aborted(id);
    return aborted ?? { ok: true, value: null };
  },
  operations: look((q) => viewTasks(q), none),

  // ---- operators: the queue ----------------------------------------------------------------------------------------

  pause: write((q, now) => setMode(q, 'paused', now)),
  resume: write((q, now) => setMode(q, 'active', now)),
  drain: write((q, now) => setMode(q, 'draining', now)),
  config: async (life) => ({ ok: true, value: life.engine?.q.own ?? {} }),
  settings: (life) => life.settings(),
  configure: write((q, _, settings, mayPurge) => configure(q, settings, mayPurge)),
  takeDefaults: writeIfExists((q, _, defaults) => takeDefaults(q, defaults), nothing),
  async remove(life, request, waitMs) {
    const late = await life.engine?.caughtUp();
    if (late) return { ok: false, error: late.data };
    const begun = await life.writeIfExists((q, now) => beginRemoval(q, request, now));
    if (!begun) return { ok: false, error: notFound('queue', life.name).data };
    if (!begun.ok) return begun;
    const gone = (await life.engine?.removal.removed(waitMs)) ?? true;
    return { ok: true, value: { ...begun.value, ...(gone && { state: 'deleted' as const }) } };
  },
  reset: (life) => life.reset(),
  limitKeys: look((q) => limitKeys(q), none),
  rateLimits: look((q, now, keys) => rateLimits(q, keys, now), none),

  // ---- several queues: all or nothing ------------------------------------------------------------------------------

  prepareBatch: write(
    (q, now, batch, coordinator, jobs) => prepareBatch(q, batch, coordinator, taken(q, jobs), now),
    undefined,
    (_batch, _coordinator, jobs) => rivals(jobs),
  ),
  async prepareBatchIfExists(life, batch, coordinator, jobs) {
    await life.born();
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
      const room = new Room();
      return questions.map((question) => conflictsHere(q, question, now, room));
    },
    (questions) => questions.map(() => ({ known: false, undecided: false, blocking: [] })),
    (questions) => (q) => questions.flatMap(({ fingerprint }) => rivalKeys(q.sql, fingerprint)),
  ),
  heldUniques: look(
    (q, now, limit, after) => heldUniques(q, limit, after, now),
    () => ({ items: [], looked: 0 }),
  ),
  knownIds: look((q, _, ids) => knownIds(q.sql, ids), none),
  chosenIds: look((q, _, after) => chosenIds(q.sql, after), none),
  knownFingerprints: look((q, _, fingerprints) => knownFingerprints(q.sql, fingerprints), none),

  // ---- several queues: jobs that move ------------------------------------------------------------------------------

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

  // ---- workflows ---------------------------------------------------------------------------------------------------

  startSteps: write((q, now, start) => startSteps(q, start, now)),
  cancelSteps: writeIfExists((q, now, ids) => cancelSteps(q, ids, now), nothing, jobs),

  // ---- cron entries ------------------------------------------------------------------------------------------------

  putCron: write((q, now, request) => crons.putCron(q, request, now)),
  checkCron: consider((q, now, definition) => crons.checkCron(q, definition, now)),
  cron: onCron(
    (life, operation) => life.read(operation),
    (q, _, name) => crons.readCron(q, name),
  ),
  cronSummaries: look((q) => q.crons.summaries(), none),
  cronsNamed: look(
    (q, _, names) => crons.cronsNamed(q, names),
    () => ({ crons: [], omitted: [] }),
  ),
  removeCron: write((q, now, name, version) => crons.removeCron(q, name, version, now)),
  enableCron: onCron(
    (life, operation) => life.writeIfExists(operation),
    (q, now, name, enabled) => crons.enableCron(q, name, enabled, now),
  ),
  async triggerCron(life, name) {
    const made = life.read((q, now) => jobOf(mustReadCron(q, name).definition, { now }));
    if (!made) return { ok: false, error: noSuchCron(name).data };
    if (!made.ok) return made;
    const job = made.value;
    if (job.unique?.scope !== 'global') {
      const triggered = await life.write((q, now) => triggerHere(q, name, job, now));
      return triggered.ok ? { ok: true, value: withBody(job, triggered.value) } : triggered;
    }
    const outcome = await life.enqueueAcross(job);
    if (outcome.ok) await life.write((q, now) => noteTriggered(q, name, outcome.value, now));
    return outcome;
  },
  cronHistory: onCron(
    (life, operation) => life.read(operation),
    (q, now, name, limit) => crons.cronHistory(q, name, limit, now),
  ),
  handOffCron: write((q, now, definition, version) => crons.handOffCron(q, definition, version, now)),
  confirmCron: write((q, _, name, version) => crons.confirmCron(q, name, version)),
};
