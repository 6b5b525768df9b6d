/**
 * Cron entries at work: fires them in the queue's transactions, asks other queues about fires whose jobs must be unique across
 * queues, and offers entries that move to the queues they go to.
 */

import type { Step } from '../../../durable/group-commit';
import { ApiError } from '../../../job/errors';
import type { Feature, Host } from '../../feature';
import { acrossJobs, dueCrons, fireCron, fireWaiting, settleAcross } from './fire';
import { confirmCron, OFFER_AGAIN_MS } from './manage';

/** An entry that could not be fired is left alone for so long: when it was a matter of the moment, and when it was a defect; ms. */
const TRY_AGAIN_MS = 1_000;
const DEFECT_PAUSE_MS = 60_000;

/** Other queues that could not be asked are asked again after this long, ms. */
const ASK_AGAIN_MS = 5_000;

export class CronFeature implements Feature {
  private asking = false;
  private askAt = 0;
  private offering = false;
  private offerAt = 0;

  constructor(private readonly host: Host) {}

  get overdueAt(): number {
    return this.host.q.crons.nextAt;
  }

  /** The entries to fire in the running transaction. */
  steps(now: number, when: 'before' | 'after'): Step[] {
    const { q } = this.host;
    const [names, fire] = when === 'before' ? [dueCrons(q, now), fireCron] : [q.crons.waiting(now), fireWaiting];
    return names.map((name) => ({
      run: (at) => fire(q, name, at),
      failed: (error) => {
        const passing = error instanceof ApiError;
        if (!passing) console.error(`tocsin: cron ${name} of queue ${q.name} could not be fired`, error);
        // Whoever is in trouble must not keep the alarm busy, nor hold up the others.
        q.crons.postpone(name, now + (passing ? TRY_AGAIN_MS : DEFECT_PAUSE_MS));
        q.wake(q.crons.nextAt);
      },
    }));
  }

  due(now: number): number | undefined {
    const { crons } = this.host.q;
    // What is under way needs the alarm only in case this object dies before it is done.
    const asks = Math.max(this.askAt, this.asking ? now + ASK_AGAIN_MS : now);
    const offers = Math.max(this.offerAt, this.offering ? now + OFFER_AGAIN_MS : now);
    const next = Math.min(
      crons.nextAt,
      crons.across().length > 0 ? asks : Number.POSITIVE_INFINITY,
      crons.leaving().length > 0 ? offers : Number.POSITIVE_INFINITY,
    );
    return Number.isFinite(next) ? next : undefined;
  }

  start(why: 'commit' | 'alarm'): void {
    this.askOthers();
    if (why === 'alarm') this.offerMoved();
  }

  /** Asks other queues about fires that depend on them, if there are any. */
  private askOthers(): void {
    const { q, keepAlive, now } = this.host;
    if (this.asking || now() < this.askAt || q.crons.across().length === 0) return;
    this.asking = true;
    const done = this.ask()
      .then(() => {
        this.askAt = 0;
      })
      .catch((error) => {
        console.error(`tocsin: cron jobs of queue ${q.name} could not be enqueued yet`, error);
        this.askAt = now() + ASK_AGAIN_MS;
        this.host.wakeAt(this.askAt);
      })
      .finally(() => {
        this.asking = false;
      });
    keepAlive(done);
  }

  private async ask(): Promise<void> {
    const { q } = this.host;
    for (let jobs = acrossJobs(q); jobs.length > 0; jobs = acrossJobs(q)) {
      for (const { name, pending, job } of jobs) {
        const outcome = await this.host.others.enqueueAcross(job);
        if (!outcome.ok && outcome.error.status >= 500) throw new ApiError(outcome.error);
        await this.host.write((now) => settleAcross(q, name, pending, outcome, now));
      }
    }
  }

  /** Offers entries that move to the queues they go to, if there are any. */
  private offerMoved(): void {
    const { q, keepAlive, now } = this.host;
    if (this.offering || now() < this.offerAt || q.crons.leaving().length === 0) return;
    this.offering = true;
    this.offerAt = now() + OFFER_AGAIN_MS;
    const done = this.offer()
      .catch((error) => console.error(`tocsin: cron entries of queue ${q.name} could not be handed over yet`, error))
      .finally(() => {
        this.offering = false;
        if (q.crons.leaving().length > 0) this.host.wakeAt(this.offerAt);
      });
    keepAlive(done);
  }

  private async offer(): Promise<void> {
    const { q } = this.host;
    for (const name of q.crons.leaving()) {
      const entry = q.crons.readLeaving(name);
      if (!entry) continue;
      const { definition, run, version } = entry;
      const outcome = await this.host.others.queue(definition.queue).putCron({ definition, run, version });
      // Refused means overtaken by a later change.
      if (!outcome.ok && outcome.error.status >= 500) throw new ApiError(outcome.error);
      await this.host.write((now) => confirmCron(q, name, version, now));
    }
  }
}
