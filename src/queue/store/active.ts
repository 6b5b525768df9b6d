/** One running attempt. Times in epoch ms. */
export interface Active {
  key: number;
  type: string;
  /** Number of this claim over the job's whole life, from 1. */
  claim: number;
  /** Attempt number shown to the world, from 1. */
  attempt: number;
  leaseId: number;
  workerId?: string;
  startedAt: number;
  /** The lease ends at this time… */
  expiresAt: number;
  /** …and a heartbeat moves it to now + this, in ms. */
  visibilityMs: number;
  /** Execution limit; no heartbeat moves it. {@link NEVER} where nothing awaits the answer. */
  timeoutAt: number;
  /** The attempt is over but could not be ended: it is looked at again at this time. */
  putOff?: number;
  /** Name of the target, when pushed. */
  target?: string;
  /** Pushed before a restart, or in a call that failed: no answer is awaited. It takes no slot; its lease runs on. */
  orphaned?: true;
  /** Suspected of killing its handler Worker: nothing else runs there meanwhile. */
  solo?: true;
  /** The number of its chunk among those of its lease row: the jobs of a chunk take one slot together. */
  chunk?: number;
  /** In a chunk of a strict group: where it stood among the others of its group before, epoch ms. */
  place?: number;
  limitKey?: string;
  group?: string;
  indexed: boolean;
}

/** The end of no attempt, epoch ms. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/** A pushed attempt's lease ends this long after its execution limit, ms: the dispatcher's own timer comes first. */
export const LEASE_BEYOND_TIMEOUT_MS = 10_000;

/** Names the chunk of an attempt; undefined: it runs by itself. */
export const chunkOf = ({ leaseId, chunk }: Active): string | undefined =>
  chunk === undefined ? undefined : `${leaseId} ${chunk}`;

export function slotsOf(attempts: Iterable<Active>): number {
  let slots = 0;
  let chunks: Set<string> | undefined;
  for (const attempt of attempts) {
    const chunk = chunkOf(attempt);
    if (chunk === undefined) slots++;
    else chunks = (chunks ?? new Set()).add(chunk);
  }
  return slots + (chunks?.size ?? 0);
}

/** The runner of an attempt, as far as its name is known. @param by receives these names */
export function ranBy<T extends { worker_id?: string; target?: string }>({ workerId, target }: Active, by: T): T {
  if (workerId !== undefined) by.worker_id = workerId;
  if (target !== undefined) by.target = target;
  return by;
}

/** The execution limit of a pushed attempt in ms; undefined when it was pulled. */
export const pushedTimeoutMs = (active: Active): number | undefined =>
  active.target === undefined ? undefined : active.visibilityMs - LEASE_BEYOND_TIMEOUT_MS;
