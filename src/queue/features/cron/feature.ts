/**
 * Cron entries: fires them in transactions, asks other queues about unique jobs; creates, changes, moves and deletes
 * entries. The directory numbers all changes to a name; one with a lower number than the last has no effect, so a late
 * change neither restores an entry nor doubles it.
 *
 * An entry that moves leaves in one transaction, and an outbox message takes it to the other queue.
 */
import type { TransactionStep } from '../../../durable/group-commit';
import { derived, type MessageKind, posted } from '../../../durable/outbox-relay';
import { ApiError, conflict, unavailable } from '../../../job/errors';
import type { CronExecutionView, CronRun, CronSkip, CronView, PutCron } from '../../../rpc/cron';
import { type CronDefinition, jobOf, sameSchedule, scheduleOf } from '../../../schedules/definition';
import { nextFire } from '../../../schedules/schedule';
import type { Feature, Host } from '../../feature';
import { checkPolicies } from '../../jobs/enqueue';
import { checkType } from '../../jobs/may-enqueue';
import { find, viewOf } from '../../read/find';
import type { Configured, Named, Stored, StoredQueue, Woken } from '../../store/parts';
import { acrossJobs, fireCron, fireWaiting, mustReadCron, noteAnswer, setNext } from './fire';

/** Pause of an entry that could not be fired, ms: after a passing failure, and after a defect. */
const TRY_AGAIN_MS = 1_000;
const DEFECT_PAUSE_MS = 60_000;

export class CronFeature implements Feature {
  readonly messages: readonly MessageKind[];

  constructor(private readonly host: Host) {
    this.messages = [movedCrons(host), acrossFires(host)];
  }

  /** During maintenance nothing fires: missed fires are handled at its end, by the entry's policy for them. */
  get overdueAt(): number {
    const { store, config } = this.host.q;
    const { nextAt } = store.crons;
    return nextAt === Number.POSITIVE_INFINITY ? nextAt : Math.max(nextAt, config.shutUntil);
  }

  steps(now: number, when: 'before' | 'after'): TransactionStep[] {
    const { q } = this.host;
    const isBefore = when === 'before';
    const names = isBefore ? q.store.crons.due(now, q.store.turn.share) : q.store.crons.waiting(now);
    if (names.length === 0 || q.config.maintenance(now)) return [];
    const { turn } = q.store;
    const fireDue = (name: string, at: number) => {
      // An entry may catch up on many fires. One that is skipped stays due.
      if (turn.isSpent) q.wake.at(at);
      else turn.spend({ changes: fireCron(q, name, at) });
    };
    const waiting = (name: string, at: number) => fireWaiting(q, name, at);
    const fire = isBefore ? fireDue : waiting;
    return names.map((name) => ({
      run: (at) => fire(name, at),
      failed: (error) => {
        const passing = error instanceof ApiError;
        if (!passing) console.error(`tocsin: cron ${name} of queue ${q.name} could not be fired`, error);
        // A failing entry must not keep the alarm busy, nor delay the others.
        q.store.crons.postpone(name, now + (passing ? TRY_AGAIN_MS : DEFECT_PAUSE_MS));
        q.wake.at(q.store.crons.nextAt);
      },
    }));
  }

  due(now: number): number {
    const { q } = this.host;
    // A fire that waited for a job may follow when the maintenance ends, though the job ended during it.
    return q.config.maintenance(now) && q.store.crons.waiting(q.config.shutUntil).length > 0
      ? q.config.shutUntil
      : this.overdueAt;
  }
}

/** Fires that other queues must be asked about: the oldest of each entry. They follow from the entries. */
const acrossFires = ({ q, write, others }: Host): MessageKind =>
  derived({
    kind: 'fire of cron',
    open: () => q.store.crons.across(),
    deliver: async (name) => {
      const fire = acrossJobs(q, name)[0];
      if (!fire) return;
      const outcome = await others.enqueueAcross(fire.job);
      if (!outcome.ok && outcome.error.status >= 500) throw new ApiError(outcome.error);
      await write((now) => noteAnswer(q, name, fire.pending, outcome, now));
    },
  });

function movedCrons({ q, write, others }: Host): MessageKind {
  return posted(q.store.outbox, write, {
    kind: CRON,
    send: async (_, [message], taken) => {
      const { definition, run, version } = JSON.parse(message.data) as CronView;
      const outcome = await others.queue(definition.queue).putCron({ definition, run, version });
      // A refusal means that a later change has won.
      if (!outcome.ok && outcome.error.status >= 500) throw new ApiError(outcome.error);
      await taken(() => undefined);
    },
  });
}

const MAX_ENTRIES = 10_000;

/** A change whose number is older than this is too late, ms. */
const MAX_CHANGE_AGE_MS = 60_000;

/** The kind of message that an entry travels in. Its address is the entry's name, its data a {@link CronView}. */
const CRON = 'cron';

/** The caller that moves an entry also hands it over; if that has not happened by then, the outbox relay does. ms */
const HAND_OVER_AFTER_MS = 10_000;

/** Characters of definitions and histories in one answer at most, unless a single entry has more. */
const MAX_ANSWER_CHARS = 8 * 1024 * 1024;

/** Would this queue accept the jobs of the entry? @throws {ApiError} 400: their type; 422: their retry policy */
export function checkCron(q: Named & Configured, definition: CronDefinition, now: number): void {
  const job = jobOf(definition, { now });
  checkType(q, job.type);
  checkPolicies([job], ({ type }) => q.config.retryLayers(type, {}));
}

/**
 * Creates or replaces an entry; an identical one is not written.
 * @throws {ApiError} 409 when the entry was changed, moved or deleted meanwhile; 422
 */
export function putCron(q: StoredQueue & Woken, request: PutCron, now: number): CronView & { created: boolean } {
  const { definition, version, basedOn } = request;
  if (!request.run) {
    if (now - version > MAX_CHANGE_AGE_MS) throw unavailable('The change timed out.');
    checkCron(q, definition, now);
  }
  const before = q.store.crons.read(definition.name);
  if (basedOn !== undefined && before?.version !== basedOn) throw changedMeanwhile(definition.name);
  const known = q.store.crons.versionOf(definition.name);
  // An entry that was taken over may be offered again after it was changed here.
  if (known !== undefined && (known > version || (known === version && request.run !== undefined))) {
    // As if this change had been made just before the later one.
    if (before) return { ...before, created: false };
    throw changedMeanwhile(definition.name);
  }
  if (before && same(before.definition, definition)) return { ...before, created: false };
  if (!before && q.store.crons.size >= MAX_ENTRIES) {
    throw conflict(`Queue ${q.name} has ${MAX_ENTRIES} cron entries, the maximum.`, {
      resource_type: 'cron',
      max_entries: MAX_ENTRIES,
    });
  }
  const run = request.run ?? (before ? renewed(before, definition, now) : newRun(definition, now));
  const entry: CronView = { definition, run, version };
  setNext(q, entry, run.next_at);
  q.store.crons.write(entry, now);
  q.store.outbox.withdraw(CRON, definition.name);
  return { ...entry, created: before === undefined && request.run === undefined };
}

const same = (a: CronDefinition, b: CronDefinition): boolean => JSON.stringify(a) === JSON.stringify(b);

function newRun(definition: CronDefinition, now: number): CronRun {
  const first = definition.enabled ? nextFire(scheduleOf(definition, now), now) : undefined;
  return {
    created_at: now,
    updated_at: now,
    anchor: now,
    ...(first !== undefined && { next_at: first }),
    runs: 0,
    fires: 0,
    skips: 0,
    waiting: [],
    across: [],
    history: [],
    skipped: [],
  };
}

/** The run of a changed entry: it continues, and if the schedule stays the same, no fire is lost or doubled. */
function renewed({ definition: before, run }: CronView, definition: CronDefinition, now: number): CronRun {
  const unchanged = sameSchedule(before, definition);
  const renewedRun: CronRun = { ...run, updated_at: now, anchor: unchanged ? run.anchor : now };
  if (!definition.enabled || definition.overlap_policy !== 'enqueue') renewedRun.waiting = [];
  if (unchanged && before.enabled && definition.enabled && run.next_at !== undefined) return renewedRun;
  delete renewedRun.next_at;
  const next = definition.enabled ? nextFire(scheduleOf(definition, renewedRun.anchor), now) : undefined;
  return next === undefined ? renewedRun : { ...renewedRun, next_at: next };
}

/** Pauses or resumes. Fires missed during the pause are not made up for. Idempotent. @throws {ApiError} 404 */
export function enableCron(q: Stored & Woken, name: string, enabled: boolean, now: number): CronView {
  const before = mustReadCron(q, name);
  if (before.definition.enabled === enabled) return before;
  const definition = { ...before.definition, enabled };
  const entry: CronView = { ...before, definition, run: renewed(before, definition, now) };
  setNext(q, entry, entry.run.next_at);
  q.store.crons.write(entry, now);
  return entry;
}

/** Deletes an entry; its jobs stay. Null when there is none. @throws {ApiError} 409 when it was changed meanwhile */
export function removeCron(q: Stored, name: string, version: number, now: number): CronView | null {
  const entry = q.store.crons.read(name) ?? leavingCron(q, name);
  const known = q.store.crons.versionOf(name);
  if (known !== undefined && known > version) {
    if (entry) throw changedMeanwhile(name);
    return null;
  }
  q.store.crons.remove(name, version, now);
  q.store.outbox.withdraw(CRON, name);
  return entry ?? null;
}

/** Lets an entry go to another queue, under a new definition. Idempotent. Null when there is nothing to take over. */
export function handOffCron(q: Stored, definition: CronDefinition, version: number, now: number): CronView | null {
  const { name } = definition;
  const known = q.store.crons.versionOf(name);
  if (known !== undefined && known > version) throw changedMeanwhile(name);
  const before = q.store.crons.read(name);
  const leaving = before ? undefined : leavingCron(q, name);
  const run = before ? renewed(before, definition, now) : leaving && renewed(leaving, definition, now);
  q.store.crons.remove(name, version, now);
  if (!run) return null;
  const entry: CronView = { definition, run, version };
  q.store.outbox.post(CRON, name, JSON.stringify(entry), now, now + HAND_OVER_AFTER_MS);
  return entry;
}

export function confirmCron(q: Stored, name: string, version: number): void {
  if (leavingCron(q, name)?.version === version) q.store.outbox.withdraw(CRON, name);
}

/** An entry on its way to another queue: what that queue must take over. */
function leavingCron(q: Stored, name: string): CronView | undefined {
  const data = q.store.outbox.find(CRON, name);
  return data === undefined ? undefined : (JSON.parse(data) as CronView);
}

/** The entries with these names, as many as fit into one message. */
export function cronsNamed(q: Stored, names: readonly string[]): { crons: CronView[]; omitted: string[] } {
  const crons: CronView[] = [];
  const omitted: string[] = [];
  let chars = 0;
  for (const name of names) {
    if (crons.length > 0 && chars > MAX_ANSWER_CHARS) {
      if (q.store.crons.has(name)) omitted.push(name);
      continue;
    }
    const entry = q.store.crons.read(name);
    if (!entry) continue;
    chars += JSON.stringify(entry).length;
    crons.push(entry);
  }
  return { crons, omitted };
}

/** The latest executions of an entry, newest first, with the state of their jobs. @throws {ApiError} 404 */
export function cronHistory(
  q: StoredQueue,
  name: string,
  limit: number,
  now: number,
): { executions: CronExecutionView[]; skipped: CronSkip[] } {
  const { run } = mustReadCron(q, name);
  const executions = run.history.slice(-limit).reverse();
  return {
    executions: executions.map((execution) => {
      const found = find(q, execution.job_id);
      if (!found) return { ...execution, state: 'pruned' };
      const { state, history } = viewOf(q, found, now).record;
      const ended = history.completed_at ?? history.cancelled_at ?? history.discarded_at;
      return {
        ...execution,
        state,
        ...(history.started_at !== undefined && { started_at: history.started_at }),
        ...(ended !== undefined && { ended_at: ended }),
      };
    }),
    skipped: run.skipped.slice(-limit).reverse(),
  };
}

const changedMeanwhile = (name: string) =>
  conflict(`Cron ${name} was changed, moved or deleted meanwhile.`, {
    resource_type: 'cron',
    resource_id: name,
  });

/** The entry with this name, also while it is on its way to another queue. @throws {ApiError} 404 */
export const readCron = (q: Stored, name: string): CronView => leavingCron(q, name) ?? mustReadCron(q, name);
