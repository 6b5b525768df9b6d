/** Claims of workers that pull, in the order of their arrival. In memory only, so waiting costs no rows. */
import type { Outcome } from '../../../job/errors';
import type { RunnerView } from '../../../job/record';
import type { ClaimRequest } from '../../../rpc/workers';
import { consumerKey } from '../../jobs/pulled-chunks';

export class Waiter {
  /** Names the types that it takes, and how, see {@link consumerKey}. */
  readonly types: string;
  private readonly wanted: ReadonlySet<string> | undefined;
  /** How many turns it got because there was more to look at. */
  turns = 0;
  readonly answer = Promise.withResolvers<Outcome<RunnerView[]>>();

  /** @param deadline epoch ms @param isUnwanted must this worker get no more jobs? */
  constructor(
    readonly request: ClaimRequest,
    readonly deadline: number,
    readonly isUnwanted: () => boolean,
  ) {
    this.types = consumerKey(request);
    this.wanted = request.types && new Set(request.types);
  }

  takesAny(types: Iterable<string>): boolean {
    const { wanted } = this;
    if (!wanted) return true;
    for (const type of types) if (wanted.has(type)) return true;
    return false;
  }
}

/** All waiting claims, and which of them may find something. */
export class Waiters {
  readonly waiting = new Set<Waiter>();
  /** Names of the sets of types for which there may be jobs. */
  private readonly readyTypes = new Set<string>();

  add(waiter: Waiter): void {
    this.waiting.add(waiter);
    // Claims before it for the same types come first.
    this.readyTypes.add(waiter.types);
  }

  remove(waiter: Waiter): Waiter {
    this.waiting.delete(waiter);
    return waiter;
  }

  find(name: string): Waiter | undefined {
    for (const waiter of this.waiting) if (waiter.request.waiter === name) return waiter;
    return undefined;
  }

  /** There may be jobs of these types; absent: of any. */
  markReady(types?: ReadonlySet<string>): void {
    const asked = new Set<string>();
    for (const waiter of this.waiting) {
      if (asked.has(waiter.types)) continue;
      asked.add(waiter.types);
      if (!types || waiter.takesAny(types)) this.readyTypes.add(waiter.types);
    }
  }

  idle(types: string): void {
    this.readyTypes.delete(types);
  }

  allIdle(): void {
    this.readyTypes.clear();
  }

  isReady({ types }: Waiter): boolean {
    return this.readyTypes.has(types);
  }

  *ready(): Generator<Waiter> {
    for (const waiter of this.waiting) if (this.isReady(waiter)) yield waiter;
  }

  get anyReady(): boolean {
    // Asked after every commit: without a generator.
    if (this.readyTypes.size > 0) for (const waiter of this.waiting) if (this.isReady(waiter)) return true;
    return false;
  }

  anyTakes(type: string): boolean {
    for (const waiter of this.waiting) if (waiter.takesAny([type])) return true;
    return false;
  }

  get anyUnlimited(): boolean {
    for (const { deadline } of this.waiting) if (deadline === Number.POSITIVE_INFINITY) return true;
    return false;
  }

  /** When the waiting time of the first one is over, epoch ms. */
  get firstDeadline(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { deadline } of this.waiting) first = Math.min(first, deadline);
    return first;
  }
}
