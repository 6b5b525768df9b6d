/** Verbs for operators: about the jobs of a queue, many at once too, and about the queue itself. */
import type { Verbs } from '../../durable/answering';
import { notFound, unwrap } from '../../job/errors';
import type { GroupChange } from '../../job/group';
import type { ExportStart } from '../../rpc/export';
import type { GroupDetail } from '../../rpc/groups';
import type { BulkAnswer, OperationRequest, OperationView } from '../../rpc/operations';
import type { QueueApi } from '../../rpc/queue';
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
import { bulkMatching, checkMatching } from '../features/bulk/matching';
import { abortTask, createTask, viewTask, viewTasks } from '../features/bulk/tasks';
import { overrideGroup } from '../features/lifecycle/groups';
import { importParts, planImport } from '../features/lifecycle/import';
import { beginRemoval } from '../features/lifecycle/remove';
import { configure, setMode, takeDefaults } from '../features/lifecycle/settings';
import { deskCalls } from '../features/limits/leasing';
import { limitKeys, rateLimits } from '../features/limits/report';
import { bulk, checkItem } from '../jobs/bulk-act';
import { group, unknownGroup } from '../jobs/group-detail';
import { deleteDeadLetter, redrive } from '../jobs/redrive';
import { refuseGivenUp } from '../jobs/ticket';
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

  pause: write((q, now) => setMode(q, 'paused', now)),
  resume: write((q, now) => setMode(q, 'active', now)),
  drain: write((q, now) => setMode(q, 'draining', now)),
  config: async (life) => ({ ok: true, value: life.engine?.q.config.own ?? {} }),
  settings: (life) => life.settings(),
  configure: write((q, _, settings, mayPurge) => configure(q, settings, mayPurge)),
  overrideGroup: write((q, now, name, change) => changedGroup(q, name, change, now)),
  restoreGroup: writeIfExists(
    (q, now, name) => changedGroup(q, name, null, now),
    (name): GroupDetail => ({ ...unknownGroup(name), unchanged: true }),
  ),
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
  beginExport: read(
    (q): ExportStart | null => beginExport(q),
    () => null,
  ),
  exportPage: read(
    (q, now, request) => exportPage(q, request, now),
    () => ({ lines: '', jobs: {}, not_kept: {} }),
  ),
  importParts: write((q, now, request, ticket) => {
    if (ticket !== undefined) refuseGivenUp(q, ticket, now);
    return importParts(q, request, now);
  }),
  considerImport: consider((q, now, request) => {
    const { jobs: _, fresh: __, ...plan } = planImport(q, request, now);
    return plan;
  }),
  reset: (life) => life.reset(),
  async deskCalls(life, key, recall) {
    await life.created();
    const called = await life.writeIfExists((q, now) => deskCalls(q, key, recall, now));
    return called !== undefined && unwrap(called);
  },
  limitKeys: look((q) => limitKeys(q), none),
  rateLimits: look((q, now, keys) => rateLimits(q, keys, now), none),
} satisfies Partial<Verbs<QueueLife, QueueApi>>;
