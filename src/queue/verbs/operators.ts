import type { Verbs } from '../../durable/answering';
import { notFound, type Outcome, unwrap } from '../../job/errors';
import type { GroupChange } from '../../job/group';
import type { ExportRequest, ExportStart, ImportRequest } from '../../rpc/export';
import type { GroupDetail } from '../../rpc/groups';
import type {
  BulkAction,
  BulkAnswer,
  BulkCheck,
  BulkRequest,
  MatchingRequest,
  OperationRequest,
  OperationView,
  RemovalRequest,
  RemovalView,
} from '../../rpc/operations';
import type { RedriveOptions } from '../../rpc/queue';
import type { StepAnswer } from '../../rpc/workers';
import type { QueueConfig, QueueDefaults, SettingsChange } from '../../settings';
import {
  change,
  consider,
  jobs,
  look,
  none,
  noneOf,
  nothing,
  read,
  readAll,
  write,
  writeIfExists,
} from '../access-modes';
import { abortTask, bulkMatching, checkMatching, createTask, viewTask, viewTasks } from '../features/bulk/feature';
import { importParts, planImport } from '../features/lifecycle/import';
import { beginRemoval } from '../features/lifecycle/remove';
import { configure, overrideGroup, setMode, takeDefaults } from '../features/lifecycle/settings';
import { deskCalls, limitKeys, rateLimits } from '../features/limits/feature';
import { bulk, checkItem } from '../jobs/bulk-act';
import { group, unknownGroup } from '../jobs/group-detail';
import { refuseGivenUp } from '../jobs/may-enqueue';
import { deleteDeadLetter, redrive } from '../jobs/redrive';
import { answerStep } from '../jobs/snooze';
import type { QueueLife } from '../life';
import { beginExport, exportPage } from '../read/export';
import type { QueueParts } from '../store/parts';

function nothingToDo({ id, action }: OperationRequest): OperationView {
  const counts = { matched: 0, succeeded: 0, skipped: 0, failed: 0 };
  return { id, action, done: true, ...counts, errors: [], started_at: Date.now() };
}

function changedGroup(q: QueueParts, name: string, change: GroupChange | null, now: number): GroupDetail {
  const isChanged = overrideGroup(q, name, change, now);
  return { ...group(q, name, now), ...(!isChanged && { unchanged: true }) };
}

export const OPERATOR_VERBS = {
  /** `discarded`, `cancelled` or `retryable` → `available`, attempt 0. With `deadLetterOnly`: 404 unless dead. */
  redrive: change((q, now, id: string, options: RedriveOptions) => redrive(q, id, options, now)),
  /** {@link redrive} that also forgets the step `from` and all that began after it. 404 without such a record. */
  restart: change((q, now, id: string, from: string, options: RedriveOptions) => redrive(q, id, options, now, from)),
  /** Records an operator's answer for a step without a result. */
  answerStep: change((q, now, answer: StepAnswer) => answerStep(q, answer, now)),
  deleteDeadLetter: change((q, now, id: string) => deleteDeadLetter(q, id, now)),
  /** One transaction for at most 1000 ids. */
  bulk: writeIfExists(
    (q, now, request: BulkRequest) => bulk(q, request, now),
    ({ ids, atomic }) => ({ items: noneOf(ids), applied: !atomic }),
    ({ ids }) => jobs(ids),
  ),
  /** What {@link bulk} would do to each of these jobs. */
  checkBulk: read(
    (q, now, { action, ids }: BulkCheck) => ids.map((id) => checkItem(q, action, id, now)),
    ({ ids }) => noneOf(ids),
    ({ ids }) => jobs(ids),
  ),
  /**
   * What {@link bulkMatching} would do to each of the jobs that match, in order.
   * @returns 422 when there are more than {@link MAX_ITEMS}, or too many to look through
   */
  checkMatching: readAll((q, now, request: MatchingRequest) => checkMatching(q, request, now), none),
  /** Acts on all jobs that match, or on none: one transaction. 422 as {@link checkMatching}; 503 when one is locked. */
  async bulkMatching(life, request: MatchingRequest): Promise<Outcome<BulkAnswer>> {
    const late = await life.engine?.caughtUp();
    if (late) return { ok: false, error: late.data };
    const act = writeIfExists(
      (q, now) => bulkMatching(q, request, now),
      (): BulkAnswer => ({ items: [], applied: true }),
    );
    return act(life);
  },
  /** Begins an operation, which then continues by itself, whatever fails; waits up to `waitMs` for its end. */
  async operate(life, request: OperationRequest, waitMs: number): Promise<Outcome<OperationView>> {
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
  /** An operation that runs, or ended within the last day; null when there is none. @param items tell the items too */
  async operation(life, id: string, waitMs: number, items?: boolean): Promise<OperationView | null> {
    const q = life.present();
    return (q && viewTask(q, id) && (await life.engine?.bulk.view(id, waitMs, items))) ?? null;
  },

  /**
   * Stops an operation before its next step; one that this queue has not begun yet will not begin here.
   * @returns how far it came; null when the queue does not exist
   */
  async abortOperation(life, id: string, action: BulkAction): Promise<Outcome<OperationView | null>> {
    const aborted = await life.writeIfExists((q, now) => abortTask(q, id, action, now));
    if (aborted?.ok) life.engine?.bulk.finished(id);
    return aborted ?? { ok: true, value: null };
  },
  /** The operations that run, and the last ones that ended within a day. */
  operations: look((q) => viewTasks(q), none),

  pause: write((q, now) => setMode(q, 'paused', now)),
  resume: write((q, now) => setMode(q, 'active', now)),
  /** Takes no more jobs, and gives out those it has, until `resume`. */
  drain: write((q, now) => setMode(q, 'draining', now)),
  config: async (life): Promise<Outcome<QueueConfig>> => ({ ok: true, value: life.engine?.q.config.own ?? {} }),
  settings: (life) => life.settings(),
  /**
   * Merges `change` into the stored settings; `null` members return to the default.
   * @param mayPurge false: 403 when ended jobs would be kept for less time than now
   */
  configure: write((q, _, settings: SettingsChange, mayPurge?: boolean) => configure(q, settings, mayPurge)),
  /** Changes what is said of one group. @returns 409 where the queue says nothing of its groups */
  overrideGroup: write((q, now, name: string, change: GroupChange) => changedGroup(q, name, change, now)),
  /** Nothing is said of the group any more. */
  restoreGroup: writeIfExists(
    (q, now, name: string) => changedGroup(q, name, null, now),
    (name): GroupDetail => ({ ...unknownGroup(name), unchanged: true }),
  ),
  /**
   * The deployment's settings for all queues have changed. A queue that does not exist gets them when it is created.
   */
  takeDefaults: writeIfExists((q, _, defaults: QueueDefaults) => takeDefaults(q, defaults), nothing),
  /** Begins to delete the queue; waits a moment for the end. 404 when it does not exist, 409 while jobs prevent it. */
  async remove(life, request: RemovalRequest, waitMs: number): Promise<Outcome<RemovalView>> {
    const late = await life.engine?.caughtUp();
    if (late) return { ok: false, error: late.data };
    const begun = await life.writeIfExists((q, now) => beginRemoval(q, request, now));
    if (!begun) return { ok: false, error: notFound('queue', life.name).data };
    if (!begun.ok) return begun;
    const gone = (await life.engine?.removal.removed(waitMs)) ?? true;
    return { ok: true, value: { ...begun.value, ...(gone && { state: 'deleted' as const }) } };
  },
  /** @returns null: there is no such queue; 409 while it is being deleted */
  beginExport: read(
    (q): ExportStart | null => beginExport(q),
    () => null,
  ),
  exportPage: read(
    (q, now, request: ExportRequest) => exportPage(q, request, now),
    () => ({ lines: '', jobs: {}, not_kept: {} }),
  ),
  /**
   * Takes parts of a file, each once, in one transaction.
   * @param ticket as in `enqueue`
   * @returns 409 when the queue has other jobs, when parts before it are missing, or while it is being deleted
   */
  importParts: write((q, now, request: ImportRequest, ticket?: string) => {
    if (ticket !== undefined) refuseGivenUp(q, ticket, now);
    return importParts(q, request, now);
  }),
  /** What {@link importParts} would do. Writes nothing. */
  considerImport: consider((q, now, request: ImportRequest) => {
    const { jobs: _, fresh: __, ...plan } = planImport(q, request, now);
    return plan;
  }),
  /** Empties the object: rows, alarm, memory. Only reachable with `TEST_HOOKS`. */
  reset: (life) => life.reset(),
  /**
   * The desk of a key calls: there may be something to lease. With `recall`, others wait: the queue must give back what
   * it does not use, and slots beyond `most` as its attempts end.
   * @returns false: there is no such queue
   */
  async deskCalls(life, key: string, recall?: { most?: number }): Promise<boolean> {
    await life.created();
    const called = await life.writeIfExists((q, now) => deskCalls(q, key, recall, now));
    return called !== undefined && unwrap(called);
  },
  /** The keys that limit jobs in this queue, in order, at most 10000. */
  limitKeys: look((q) => limitKeys(q), none),
  /** Those of these keys that this queue knows. */
  rateLimits: look((q, now, keys: string[]) => rateLimits(q, keys, now), none),
} satisfies Verbs<QueueLife>;
