/** What must happen once the running transaction is committed: a wake to arm, and waiting workers to call. */
import { STANDBY_MS } from '../../durable/outbox';
import type { Configuration } from './configuration';
import type { Handlers } from './handlers';

/** In {@link Wake.arrivedTypes}: jobs of any type may be available. */
export const ANY_TYPE = '*';

export class Wake {
  /** The earliest due moment of what the running transaction wrote, epoch ms. */
  wanted = Number.POSITIVE_INFINITY;
  /** Did the running transaction make a job available? */
  workArrived = false;
  /** Types of the jobs that became available since waiting workers were last called. */
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
   * A job is available now, and pushed at once; the wake is armed in case this object dies before that.
   * @param type absent: of any type @param bodies of the jobs, as text
   */
  arrived(now: number, type?: string, bodies: readonly string[] = []): void {
    this.workArrived = true;
    this.arrivedTypes.add(type ?? ANY_TYPE);
    const { config, handlers } = this;
    if (config.paused || !(type === undefined ? handlers.pushesAny : handlers.isPushed(type, bodies))) return;
    // Without an end nothing can wait for it: the queues are notified.
    if (config.shutUntil < Number.POSITIVE_INFINITY) this.at(Math.max(now + STANDBY_MS, config.shutUntil));
  }

  /** Workers that pull may find jobs of any type that they did not find before. */
  callWorkers(): void {
    this.workArrived = true;
    this.arrivedTypes.add(ANY_TYPE);
  }

  takeArrivals(): boolean {
    const { workArrived } = this;
    this.workArrived = false;
    return workArrived;
  }
}
