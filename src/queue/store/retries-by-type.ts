/** The retry policies of job types, resolved once: most jobs have no retry options of their own. */
import type { AnnouncedType, LowerLayers, RetryInput } from '../../job/record';
import type { RetryPolicy } from '../../job/retry/policy';

export interface OwnRetry {
  retry?: RetryInput;
  max_attempts?: number;
}

const MAX_TYPES = 1_000;

/** The layers of a type, and the policy of its jobs without options. */
class RetryOfType {
  readonly layers: LowerLayers;
  private resolved: RetryPolicy | undefined;

  constructor(
    readonly announced: AnnouncedType | undefined,
    readonly queue: RetryInput | undefined,
  ) {
    const jobType =
      announced && (announced.retry || announced.max_attempts !== undefined)
        ? { ...announced.retry, ...(announced.max_attempts !== undefined && { max_attempts: announced.max_attempts }) }
        : undefined;
    this.layers = { ...(jobType && { job_type: jobType }), ...(queue && { queue }) };
  }

  /** @param resolve makes it of these layers, the first time */
  policy(resolve: () => RetryPolicy): RetryPolicy {
    this.resolved ??= resolve();
    return this.resolved;
  }
}

export class RetriesByType {
  private readonly known = new Map<string, RetryOfType>();

  /** @param announced by the handler about the type @param queue the queue's default */
  of(type: string, announced: AnnouncedType | undefined, queue: RetryInput | undefined): RetryOfType {
    const known = this.known.get(type);
    if (known && known.announced === announced && known.queue === queue) return known;
    if (this.known.size >= MAX_TYPES) this.known.clear();
    const retry = new RetryOfType(announced, queue);
    this.known.set(type, retry);
    return retry;
  }
}
