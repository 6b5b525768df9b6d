/**
 * The parts of an opened queue. An operation names those that it uses: `q: Stored & Configured`. Only types; what they are at run
 * time is put together in `memory.ts`.
 */
import type { Configuration } from './configuration';
import type { Handlers } from './handlers';
import type { JobStore } from './job-store';
import type { Observations } from './observations';
import type { Wake } from './wake';

/** Which queue it is. */
export interface Named {
  readonly name: string;
  /** What the ids of its jobs carry. */
  readonly route: number;
}

/** What is stored. */
export interface Stored {
  readonly store: JobStore;
}

/** What holds for it. */
export interface Configured {
  readonly config: Configuration;
}

/** What is noted of what happens. */
export interface Observed {
  readonly observed: Observations;
}

/** What follows from a commit. */
export interface Woken {
  readonly wake: Wake;
}

/** What handlers take. */
export interface Handled {
  readonly handlers: Handlers;
}

/** All of it. */
export interface QueueParts extends Named, Stored, Configured, Observed, Woken, Handled {}
