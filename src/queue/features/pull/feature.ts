/**
 * Workers that pull: claims that may wait for work (long poll).
 *
 * Claims are served in the order of their arrival, in turns. A turn is one operation. It claims for one worker after
 * the other until there is nothing left for them. So it makes about as many claims as there are jobs, however many
 * workers wait. A turn is bounded; the next one does the rest.
 *
 * Between turns a set of types is *ready* while there may be jobs for it. Either its last claim took all that it may,
 * or did not read to the end; or a job of these types has arrived; or anything may have become due.
 */

import { errorDataOf } from '../../../durable/platform-errors';
import { type ErrorData, type Outcome, outcomeOf, unavailable } from '../../../job/errors';
import { isUuidV7 } from '../../../job/ids';
import type { RunnerView } from '../../../job/record';
import { MAX_CLAIM_BYTES } from '../../../job/size';
import { quote } from '../../../job/text';
import { formatInstant } from '../../../job/time';
import { type WaitingFor, waiting } from '../../../job/waiting';
import { countOf } from '../../../metrics/histogram';
import { histogramOf } from '../../../metrics/meter';
import type { ClaimRequest, Report, Reported } from '../../../rpc/workers';
import type { Feature, Host } from '../../feature';
import { claim } from '../../jobs/claim';
import { nextPulledChunk, waitsForPulledChunk } from '../../jobs/pulled-chunks';
import { type AnswerRoom, reportEach } from '../../jobs/report';
import { behind, waitsForQueueLimit } from '../../jobs/waiting';
import { keyOf } from '../../read/find';
import type { JobRow } from '../../store/job-row';
import { countAhead } from '../../store/jobs-ahead';
import { queueOpensAt } from '../../store/limits/queue-limit';
import { nextDue } from '../../store/ranks';
import { availableSince } from '../../store/rows';
import { Scan } from '../../store/scan';
import { ANY_TYPE } from '../../store/wake';
import { Waiter, Waiters } from './waiters';

/**
 * Takes as many reports in one transaction as their work allows. If that reveals a defect, each is taken alone: then
 * only reports that cannot be written fail. @returns the outcomes of the first of them, at least one
 */
async function takeSome(host: Host, reports: readonly Report[], room: AnswerRoom): Promise<Outcome<Reported>[]> {
  const { q, about, request, random } = host;
  try {
    about((state) => reports.map(({ job_id }) => (isUuidV7(job_id) ? keyOf(state, job_id) : undefined)));
    const outcome = await request((now) => reportEach(q, reports, now, random, room));
    return outcome.ok ? outcome.value : reports.map(() => outcome);
  } catch (error) {
    if (reports.length > 1) {
      console.error('tocsin: reports are written one by one because together they could not be:', error);
      return (await Promise.all(reports.map((report) => takeSome(host, [report], room)))).flat();
    }
    console.error(`tocsin: the report about job ${reports[0]?.job_id} could not be written:`, error);
    return [{ ok: false, error: errorDataOf(error) ?? NOT_WRITTEN }];
  }
}

const NOT_WRITTEN = {
  ...({ status: 500, code: 'backend_error', retryable: true } as const),
  message: 'The report could not be written.',
};

/** Beyond these bytes of jobs a turn begins no other claim: its jobs are in memory until it ends. */
const MAX_BYTES = MAX_CLAIM_BYTES / 2;

/** Turns for a worker that does not wait, while there is more to look at and nothing was found. */
const MAX_TURNS = 8;

/** A worker that asked within this time is active, ms: a worker that pulls always asks, or holds a job. */
const RECENTLY_MS = 60_000;

/** Pause before storage that could not be read is read again, ms. */
const RETRY_MS = 1_000;

interface Given {
  waiter: Waiter;
  jobs: RunnerView[];
}

/** Sets of types remembered at most; the one that was asked for longest ago is dropped first. */
const MAX_SETS = 50;

/** Notes why a claim failed. @returns the answer to its worker @param claim names it in the log */
export function failedClaim(claim: string, error: unknown): { ok: false; error: ErrorData } {
  console.error(`tocsin: ${claim} failed:`, error);
  return { ok: false, error: unavailable('The queue could not hand out jobs.').data };
}

export class Pulling implements Feature {
  private readonly waiters = new Waiters();
  private isServing = false;
  /** The claims of the running turn: they fail with it. */
  private attempted: Waiter[] = [];
  private stopTimer: (() => void) | undefined;
  private readonly asked = new LastFetches();
  /** Earlier requests are unknown, epoch ms. */
  private readonly startedAt: number;

  constructor(private readonly host: Host) {
    this.startedAt = host.now();
  }

  /** The next scheduled or retried job, for its workers; without any during maintenance. */
  due(now: number): number | undefined {
    const from = Math.max(now, this.host.q.config.shutUntil);
    if (from === Number.POSITIVE_INFINITY) return undefined;
    const chunk = this.waiters.anyUnlimited ? nextPulledChunk(this.host.q, from) : Number.POSITIVE_INFINITY;
    return Math.min(nextDue(this.host.q.store, from) ?? Number.POSITIVE_INFINITY, chunk);
  }

  get isAwaited(): boolean {
    return this.waiters.waiting.size > 0;
  }

  workArrived(): void {
    const { arrivedTypes } = this.host.q.wake;
    if (this.waiters.waiting.size > 0) this.waiters.markReady(arrivedTypes.has(ANY_TYPE) ? undefined : arrivedTypes);
    arrivedTypes.clear();
    // In the turn of the arrival, so that a job and its lease are written together.
    this.serve(true);
  }

  start(why: 'commit' | 'alarm'): void {
    if (why !== 'alarm') return;
    this.waiters.markReady();
    this.serve();
  }

  /**
   * A claim that waits until there is work or the time is up.
   * @param deadline epoch ms
   * @param isUnwanted asked before each try: must this worker get no more jobs?
   */
  claim(request: ClaimRequest, deadline: number, isUnwanted: () => boolean): Promise<Outcome<RunnerView[]>> {
    const waiter = new Waiter(request, deadline, isUnwanted);
    this.waiters.add(waiter);
    this.asked.note(waiter.types, request.types, this.host.now());
    this.serve();
    return waiter.answer.promise;
  }

  /**
   * Reports about fetched jobs: an outcome for each, in order.
   * @param bytes of recorded steps that the answer may repeat
   */
  async report(reports: readonly Report[], bytes: number): Promise<Outcome<Reported>[]> {
    const [outcomes, room]: [Outcome<Reported>[], AnswerRoom] = [[], { bytes }];
    while (outcomes.length < reports.length) {
      outcomes.push(...(await takeSome(this.host, reports.slice(outcomes.length), room)));
    }
    return outcomes;
  }

  waitsFor(row: JobRow, now: number): WaitingFor | undefined {
    const { q } = this.host;
    if (q.handlers.isPushed(row.type, [row.body])) return undefined;
    const since = availableSince(row);
    const askedAt = this.asked.lastFor(row.type);
    const isAsked = (askedAt !== undefined && now - askedAt <= RECENTLY_MS) || this.waiters.anyTakes(row.type);
    if (isAsked || this.holdsAny()) {
      const chunk = waitsForPulledChunk(q, row, now);
      if (chunk) return chunk;
      const closed = waitsForQueueLimit(q, since, now);
      const scan = new Scan();
      scan.reset(q.store.leases.head);
      const isRival = (other: Pick<JobRow, 'key' | 'type'>) =>
        !q.handlers.isPushed(other.type, []) && !q.store.leases.active.has(other.key);
      const before = behind(countAhead(q.store, scan, row, now, isRival), since, closed) ?? closed;
      if (before) return before;
    }
    const last =
      askedAt === undefined
        ? this.isUntouched()
          ? 'No worker has fetched a job from it yet'
          : `No worker has fetched from it since ${formatInstant(this.startedAt)}`
        : `A worker last fetched from it at ${formatInstant(askedAt)}`;
    const how = isAsked
      ? 'it is fetched when a worker has room.'
      : `start a worker that takes it from queue ${q.name}.`;
    const detail = `No handler is mapped to ${JSON.stringify(quote(row.type))} here, so it waits for a worker that pulls. ${last}: ${how}`;
    return waiting('no_worker', detail + q.handlers.hint(row.type), since);
  }

  private isUntouched(): boolean {
    const { totals } = this.host.q.observed.meters.read();
    return [...totals].every(([, meter]) => countOf(histogramOf(meter, 'queue_time')) === 0);
  }

  private holdsAny(): boolean {
    for (const { target, workerId } of this.host.q.store.leases.active.values()) {
      if (target === undefined && workerId !== undefined) return true;
    }
    return false;
  }

  withdraw(name: string): void {
    const waiter = this.waiters.find(name);
    if (waiter) this.answer(waiter, []);
  }

  dismissUnwanted(): void {
    for (const waiter of this.waiters.waiting) if (waiter.isUnwanted()) this.answer(waiter, []);
  }

  private answer(waiter: Waiter, jobs: RunnerView[]): void {
    this.waiters.remove(waiter);
    waiter.answer.resolve({ ok: true, value: jobs });
  }

  /**
   * Takes turns until no claim can find a job. @param atOnce the first one now, not with what arrives in the meantime
   */
  private serve(atOnce = false): void {
    if (this.isServing || !this.waiters.anyReady) return;
    this.isServing = true;
    this.host.keepAlive(this.takeTurns(atOnce));
  }

  private async takeTurns(atOnce: boolean): Promise<void> {
    const turn = (now: number) => this.turn(now);
    for (let first = atOnce; this.waiters.anyReady; first = false) {
      this.attempted = [];
      try {
        const outcome = first ? outcomeOf(() => this.host.writeNow(turn)) : await this.host.request(turn);
        if (outcome.ok) for (const { waiter, jobs } of outcome.value) this.answer(waiter, jobs);
        else for (const waiter of [...this.waiters.waiting]) this.waiters.remove(waiter).answer.resolve(outcome);
      } catch (error) {
        // A transaction that failed before any claim fails for all: it would fail again at once.
        const failed = this.attempted.length > 0 ? this.attempted : [...this.waiters.ready()];
        for (const waiter of failed) this.waiters.remove(waiter).answer.reject(error);
        // Nothing is left of the turn's findings.
        this.waiters.markReady();
      }
      this.endWaits();
    }
    this.isServing = false;
    this.setTimer();
  }

  /**
   * Claims for the ready workers, until there is nothing left for them. Findings are noted at once: arrivals later in
   * the same transaction make types ready again.
   */
  private turn(now: number): Given[] {
    const { q } = this.host;
    const given: Given[] = [];
    const resting = new Set<string>();
    let bytes = 0;
    for (const waiter of q.store.turn.draw(this.waiters.ready())) {
      if (waiter.isUnwanted()) {
        given.push({ waiter, jobs: [] });
        continue;
      }
      if (resting.has(waiter.types)) continue;
      if (bytes > MAX_BYTES) break;
      const found = this.claimFor(waiter, () => claim(q, waiter.request, now));
      bytes += found.bytes;
      if (found.jobs.length > 0) given.push({ waiter, jobs: found.jobs });
      else waiter.turns++;
      if (found.isClosed) this.wakeWhenOpen(now);
      else if (this.waiters.anyUnlimited) q.wake.at(q.store.cursors.nextGroup());
      if (found.isUnfinished) resting.add(waiter.types);
      else if (found.isClosed || (!found.hasMore && waiter.types === '')) this.waiters.allIdle();
      else if (!found.hasMore) this.waiters.idle(waiter.types);
    }
    // No timer serves an unlimited claim.
    if (this.waiters.anyUnlimited) q.wake.at(nextPulledChunk(q, now));
    return given;
  }

  /** No timer serves an unlimited claim, and the claims before it may leave before the queue opens. */
  private wakeWhenOpen(now: number): void {
    const { q } = this.host;
    if (!this.waiters.anyUnlimited) return;
    const opensAt = q.config.shutUntil > now ? q.config.shutUntil : queueOpensAt(q, now);
    if (opensAt !== undefined && opensAt < Number.POSITIVE_INFINITY) q.wake.at(opensAt);
  }

  /** A claim that fails does not affect the others: those before it are served in the next turn. */
  private claimFor<T>(waiter: Waiter, run: () => T): T {
    const before = this.attempted;
    this.attempted = [waiter];
    const result = run();
    this.attempted = [...before, waiter];
    return result;
  }

  /**
   * Answers claims whose waiting time is over. One that does not wait still gets some turns while its types are ready.
   */
  private endWaits(): void {
    const now = this.host.now();
    for (const waiter of this.waiters.waiting) {
      if (now < waiter.deadline) continue;
      if (!this.waiters.isReady(waiter) || waiter.turns >= MAX_TURNS) this.answer(waiter, []);
    }
  }

  /** Checks again when a waiting time is over, or when something may have become due. */
  private setTimer(): void {
    this.stopTimer?.();
    const { waiters, host } = this;
    // The alarm serves unlimited claims: a timer would keep the object in memory.
    if (waiters.firstDeadline === Number.POSITIVE_INFINITY) return;
    const now = host.now();
    const due = this.nextMoment(now);
    const look = () => {
      if (this.isServing) return;
      if (host.now() >= due) waiters.markReady();
      this.endWaits();
      if (waiters.anyReady) this.serve();
      else this.setTimer();
    };
    this.stopTimer = host.after(Math.max(1, Math.min(due, waiters.firstDeadline) - now), look);
  }

  /** When the next job may become available by itself, epoch ms. */
  private nextMoment(now: number): number {
    const { q } = this.host;
    const never = Number.POSITIVE_INFINITY;
    if (q.config.shutUntil > now) return q.config.shutUntil;
    try {
      const opens = Math.min(q.store.limiters.nextCheck, q.store.cursors.nextGroup(), queueOpensAt(q, now) ?? never);
      return Math.min(nextDue(q.store, now) ?? never, nextPulledChunk(q, now), this.host.overdueAt(), opens);
    } catch (error) {
      console.error('tocsin: waiting workers retry because the next due time could not be read', error);
      return now + RETRY_MS;
    }
  }
}

/** When workers last asked for jobs, by the types that they take. In memory only: for explanations. */
class LastFetches {
  private readonly asked = new Map<string, { types: ReadonlySet<string> | undefined; at: number }>();

  /** A worker asks. @param name names the set of types @param types absent: it takes any */
  note(name: string, types: readonly string[] | undefined, at: number): void {
    this.asked.delete(name);
    this.asked.set(name, { types: types && new Set(types), at });
    const [oldest] = this.asked.keys();
    if (this.asked.size > MAX_SETS && oldest !== undefined) this.asked.delete(oldest);
  }

  /** When a worker that takes this type last asked, epoch ms; undefined when none has. */
  lastFor(type: string): number | undefined {
    const times = [...this.asked.values()].flatMap(({ types, at }) => (!types || types.has(type) ? at : []));
    return times.length === 0 ? undefined : Math.max(...times);
  }
}
