/**
 * The running calls: which one has a job, to notify it when the job is cancelled; and how long the oldest has run, so
 * that this object stays in memory meanwhile.
 *
 * An object without incoming events is evicted after one or two minutes, and waiting for an answer is not an event.
 * Newer runtimes wait for calls under way. So that nothing depends on that, an alarm rings every half minute while an
 * older call runs. Calls that end sooner set none.
 */
import { LONG_CALL_MS } from '../../../dispatch/call';
import type { Call } from '../../../dispatch/deliver';
import { isWithin } from '../../../durable/backoff';
import type { Host } from '../../feature';

/** Events that end an attempt other than by its handler's report. */
const TAKEN = new Set(['job.cancelled', 'job.discarded']);

export class RunningCalls {
  /** When each began, epoch ms; the oldest first. */
  private readonly began = new Map<Call, number>();
  /** The call of each job; built on first use. */
  private byJob: Map<string, { call: Call; delivery: string }> | undefined;
  /** When an alarm was last set for long calls, epoch ms. */
  private wokenAt = Number.NEGATIVE_INFINITY;
  private unlisten: (() => void) | undefined;

  constructor(private readonly host: Pick<Host, 'q' | 'now' | 'wakeAt'>) {}

  add(call: Call): void {
    this.byJob = undefined;
    this.began.set(call, this.host.now());
    this.unlisten ??= this.host.q.observed.events.listen((events) => {
      for (const { type, subject } of events) if (TAKEN.has(type)) this.taken(subject);
    });
  }

  /** The call is over, or its answer is about to be settled. */
  delete(call: Call): void {
    this.byJob = undefined;
    if (!this.began.delete(call) || this.began.size > 0) return;
    this.unlisten?.();
    this.unlisten = undefined;
  }

  /** A call takes long. From the first alarm on, each alarm sets the next. */
  goesOn(): void {
    const now = this.host.now();
    if (isWithin(this.wokenAt, LONG_CALL_MS, now)) return;
    this.wokenAt = now;
    this.host.wakeAt(now + 1);
  }

  /** When an event must come at the latest, epoch ms; undefined while no long call runs. */
  awakeAt(now: number): number | undefined {
    for (const began of this.began.values()) return isWithin(began, LONG_CALL_MS, now) ? undefined : now + LONG_CALL_MS;
    return undefined;
  }

  private taken(job: string): void {
    this.byJob ??= this.index();
    const found = this.byJob.get(job);
    found?.call.cancel(found.delivery);
  }

  private index(): Map<string, { call: Call; delivery: string }> {
    const byJob = new Map<string, { call: Call; delivery: string }>();
    for (const call of this.began.keys()) {
      for (const { job, delivery_id } of call.deliveries) byJob.set(String(job.id), { call, delivery: delivery_id });
    }
    return byJob;
  }
}
