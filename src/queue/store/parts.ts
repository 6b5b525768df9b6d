/**
 * The parts of an opened queue. An operation names those that it uses: `q: Stored & Configured`. Only types;
 * `memory.ts` puts the parts together.
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

/** Its settings. */
export interface Configured {
  readonly config: Configuration;
}

/** What is noted of its work. */
export interface Observed {
  readonly observed: Observations;
}

/** What a commit sets off. */
export interface Woken {
  readonly wake: Wake;
}

/** The types that handlers take. */
export interface Handled {
  readonly handlers: Handlers;
}

/** All of it. */
export interface QueueParts extends Named, Stored, Configured, Observed, Woken, Handled {}
