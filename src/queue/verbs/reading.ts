/** Verbs that read a queue: its jobs, its numbers, its events. */
import type { Verbs } from '../../durable/answering';
import type { JobView } from '../../job/record';
import type { JobStory, QueueApi } from '../../rpc/queue';
import { jobs, look, noJob, none, type On, read, readAll, readJob } from '../access-modes';
import { group, unknownGroup } from '../jobs/group-detail';
import { storyOf } from '../jobs/job-story';
import { deadLetterRow } from '../jobs/redrive';
import type { QueueLife } from '../life';
import { activity, noActivity, points } from '../read/activity';
import { awaitEnd } from '../read/await-end';
import { deadLetterKinds, deadLetterPlaces, deadLettersAt } from '../read/dead-letters';
import { failures } from '../read/failures';
import { mustFind, runningOf, viewOf, viewOfRow } from '../read/find';
import { getMany } from '../read/get-many';
import { groups } from '../read/groups';
import { count, countStates, list, listPlaces } from '../read/list';
import { sorted } from '../read/sorted';
import { emptyStats, priorities, stats, upcoming } from '../read/stats';
import type { Configured, Named, Stored } from '../store/parts';
import { storageUse } from '../store/storage';

const viewJob: On<[id: string], ReturnType<typeof viewOf>> = (q, now, id) => viewOf(q, mustFind(q, id), now);

/** A job, with what it waits for if it waits, or with its lease if a worker has pulled it. */
function explained(life: QueueLife, q: Named & Stored & Configured, now: number, id: string): JobView {
  const found = mustFind(q, id);
  const view = viewOf(q, found, now);
  const waiting = found.row && life.engine?.waitingFor(found.row, now);
  if (waiting) view.record.waiting_for = waiting;
  const active = found.row && q.store.leases.active.get(found.row.key);
  // Each heartbeat sets a new end of the lease.
  if (active && active.target === undefined) {
    const { expiresAt: expires_at, visibilityMs } = active;
    view.record.lease = { renewed_at: expires_at - visibilityMs, expires_at };
  }
  return view;
}

/** What belongs to a queue besides its stored state. */
const besideState = ({ engine, followers }: QueueLife) => ({
  targets: engine?.targets() ?? [],
  events_dropped: followers.dropped,
});

export const READING_VERBS = {
  get: (life, id) => readJob<[string], JobView>((q, now) => explained(life, q, now, id))(life, id),
  story: (life, id) =>
    readJob<[string], JobStory>((q, now) => storyOf(q, id, explained(life, q, now, id), now))(life, id),
  async awaitEnd(life, id, waitMs) {
    const view = () => life.read((q, now) => viewJob(q, now, id), jobs([id])) ?? noJob(id);
    const { engine } = life;
    return engine ? awaitEnd(engine.q.observed.events, id, Date.now() + waitMs, () => Date.now(), view) : view();
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
  nextDue: (life) => life.engine?.nextDue() ?? null,
  async watch(life) {
    const around = besideState(life);
    const read = await life.readAll((q, now) => {
      const reading = { ...stats(q, now), storage: storageUse(q), ...activity(q, around, now) };
      // Changes from here on must be reported.
      life.engine?.readers.read();
      return { ...reading, upcoming: upcoming(q, now) };
    });
    return read ?? { ok: true, value: { ...emptyStats(life.name, Date.now()), ...noActivity(), upcoming: [] } };
  },
  async priorities(life) {
    await life.engine?.caughtUp();
    return look((q, now) => priorities(q, now), none)(life);
  },
  groups: readAll(
    (q, now, request) => groups(q, request, now),
    () => ({ groups: [], total: 0, waiting: 0, running: 0, ungrouped: 0, complete: true }),
  ),
  group: readAll(
    (q, now, name) => group(q, name, now),
    (name) => unknownGroup(name),
  ),
  async activity(life) {
    await life.engine?.caughtUp();
    const around = besideState(life);
    return look((q, now) => activity(q, around, now), noActivity)(life);
  },
  points: look((q, _, request) => points(q, request), none),
  events: look((q, _, request) => q.observed.events.read(request), none),
  async targets(life) {
    return life.present() ? (life.engine?.targets() ?? []) : [];
  },
  async resumeTarget(life, name) {
    return life.present() ? ((await life.engine?.resumeTarget(name)) ?? []) : [];
  },
} satisfies Partial<Verbs<QueueLife, QueueApi>>;
