/**
 * Gives jobs to workers on sockets. A ready worker is a claim among all waiting fetches; its jobs are leased on disk
 * before they are sent.
 */
import { isEnd } from '../../../../job/attempt/outcome';
import { defined } from '../../../../job/envelope/fields';
import { jobNotFound, type Outcome } from '../../../../job/errors';
import type { RunnerView } from '../../../../job/record';
import type { Report, Reported } from '../../../../rpc/workers';
import { takeBack } from '../../../jobs/report';
import type { QueueParts } from '../../../store/parts';
import { failedClaim, type Pulling } from '../feature';
import type { WorkerSocket } from './worker-socket';

const MAX_COUNT = 100;

/** Bytes of recorded steps that one answer repeats: a single one always fits. */
const MAX_TOLD_BYTES = 1024 * 1024;

export interface OpenQueue {
  q: QueueParts;
  pull: Pulling;
  write<T>(operation: (now: number) => T): Promise<Outcome<T>>;
}

export class SocketClaims {
  /** Attempts whose failure is being reported here, by worker and job. */
  private readonly failing = new Set<string>();

  /** @param isSilenced must this worker get no more jobs, as far as is known? */
  constructor(
    readonly open: OpenQueue,
    private readonly isSilenced: (workerId: string) => boolean,
    private readonly keepAlive: (promise: Promise<unknown>) => void,
  ) {}

  async report(line: WorkerSocket, said: readonly Outcome<Report>[]): Promise<Outcome<Reported>[]> {
    const workerId = line.worker.worker_id;
    const { q } = this.open;
    const reports = said.map((each) =>
      each.ok && !line.sees(q, each.value.job_id) ? jobNotFound(each.value.job_id) : each,
    );
    const valid = reports.flatMap((report) => (report.ok ? [report.value] : []));
    const failing = valid.flatMap((report) => (endsAgain(report) ? [attemptOf(workerId, report.job_id)] : []));
    for (const attempt of failing) this.failing.add(attempt);
    const reported = valid.length > 0 ? await this.open.pull.report(valid, MAX_TOLD_BYTES) : [];
    for (const attempt of failing) this.failing.delete(attempt);
    let at = 0;
    return reports.map((report) => (report.ok ? (reported[at++] as Outcome<Reported>) : report));
  }

  /** Does the attempt end because its worker says so? */
  isReported(workerId: string, jobId: string): boolean {
    return this.failing.has(attemptOf(workerId, jobId));
  }

  /** It is ready for no more: notifies it once none comes. */
  pause(line: WorkerSocket): void {
    line.isPausing = true;
    if (line.claim) this.open.pull.withdraw(line.claim.waiter);
    else this.tellPaused(line);
  }

  private tellPaused(line: WorkerSocket): void {
    line.isPausing = false;
    line.tell({ type: 'paused' });
  }

  /** Makes a claim for a worker that is ready and reads what it is sent. */
  serve(line: WorkerSocket): void {
    const { open } = this;
    const { worker } = line;
    const count = Math.min(line.ready, MAX_COUNT);
    if (line.isSilenced || !line.mayBeSent || count === 0) return;
    if (line.claim) {
      line.claim.count = count;
      return;
    }
    if (line.isUnchecked) {
      this.whenAllowed(line, () => this.serve(line));
      return;
    }
    const claim = { ...worker, ...line.said, count, waiter: crypto.randomUUID() };
    line.claim = claim;
    const isUnwanted = () => line.isOver || line.isUnchecked || this.isSilenced(worker.worker_id);
    void open.pull.claim(claim, Number.POSITIVE_INFINITY, isUnwanted).then(
      (outcome) => this.give(line, claim, outcome),
      (error: unknown) => this.give(line, claim, failedClaim('the claim of a connected worker', error)),
    );
  }

  /** Acts unless the key of the worker has ended. */
  whenAllowed(line: WorkerSocket, act: () => void): void {
    const allowed = line.isAllowed;
    if (allowed === true) act();
    else if (allowed) {
      const note = (error: unknown) => console.error('tocsin: the key of a connected worker is not known:', error);
      this.keepAlive(allowed.then((is) => (is ? act() : undefined), note));
    }
  }

  private give(line: WorkerSocket, claim: WorkerSocket['claim'], outcome: Outcome<RunnerView[]>): void {
    if (line.claim === claim) line.claim = undefined;
    if (!outcome.ok) {
      // The worker repeats its readiness when it wants to try again.
      line.ready = 0;
      line.keep();
      line.tellError(outcome.error);
    } else if (outcome.value.length > 0) {
      const unsent = line.sendJobs(this.open.q, outcome.value);
      if (unsent.length > 0) this.giveBack(unsent);
    } else if (this.isSilenced(line.worker.worker_id)) {
      line.isSilenced = true;
    }
    if (line.isPausing) this.tellPaused(line);
    else this.serve(line);
  }

  private giveBack(views: readonly RunnerView[]): void {
    const { open } = this;
    const claims = views.map(({ record: { id, attempt, delivery_id, worker_id } }) =>
      defined({ job_id: id, attempt, delivery_id, worker_id }),
    );
    const written = open.write((now) => takeBack(open.q, claims, now));
    this.keepAlive(written.catch((error) => console.error('tocsin: unsent jobs keep their leases:', error)));
  }

  withdraw({ claim }: WorkerSocket): void {
    if (claim) this.open.pull.withdraw(claim.waiter);
  }
}

const attemptOf = (workerId: string, jobId: string) => `${jobId} ${workerId}`;

/** Does the report end its attempt, and not its job? */
const endsAgain = (report: Report): boolean => isEnd(report) && report.kind !== 'completed';
