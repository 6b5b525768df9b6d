/** What has to happen once the running transaction is committed: a wake to arm, and those to call who wait for jobs. */
import { STANDBY_MS } from '../../durable/outbox';
import type { Configuration } from './configuration';
import type { Handlers } from './handlers';

/** In {@link Wake.arrivedTypes}: jobs of any type may be available. */
export const ANY_TYPE = '*';

export class Wake {
  /** The earliest moment at which something the running transaction wrote becomes due, epoch ms. */
  wanted = Number.POSITIVE_INFINITY;
  /** Did the running transaction make a job available? */
  workArrived = false;
  /** Types of the jobs that have become available since workers that wait were last called. */
  readonly arrivedTypes = new Set<string>();

  /** @param handlers jobs that workers pull need no wake once they are available */
  constructor(
    private readonly config: Pick<Configuration, 'paused' | 'shutUntil'>,
    private readonly handlers: Pick<Handlers, 'isPushed' | 'pushesAny'>,
  ) {}

  /** Goes back to what was wanted before, or to nothing. */
  reset(wanted = Number.POSITIVE_INFINITY, workArrived = false): void {
    this.wanted = wanted;
    this.workArrived = workArrived;
  }

  /** Something this transaction wrote becomes due at `at` (epoch ms). */
  at(at: number): void {
    if (at < this.wanted) this.wanted = at;
  }

  /**
   * A job of this type is available now. One that is pushed is pushed at once; the wake stands by in case this object
   * dies before the push is on record.
   * @param type absent: of any type
   * @param bodies of the jobs, as text
   */
  arrived(now: number, type?: string, bodies: readonly string[] = []): void {
    this.workArrived = true;
    this.arrivedTypes.add(type ?? ANY_TYPE);
    const { config, handlers } = this;
    if (config.paused || !(type === undefined ? handlers.pushesAny : handlers.isPushed(type, bodies))) return;
    // Without an end nobody can wait for it: the queues hear of it.
    if (config.shutUntil < Number.POSITIVE_INFINITY) this.at(Math.max(now + STANDBY_MS, config.shutUntil));
  }

  /** Workers that pull may find jobs that they did not find before, of whatever type. */
  callWorkers(): void {
    this.workArrived = true;
    this.arrivedTypes.add(ANY_TYPE);
  }

  /** Has the transaction that was committed made jobs available? */
  takeArrivals(): boolean {
    const { workArrived } = this;
    this.workArrived = false;
    return workArrived;
  }
}
