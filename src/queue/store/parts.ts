/** The parts of an opened queue, as types: operations name those they use (`q: Stored & Configured`). */
import type { Configuration } from './configuration';
import type { Handlers } from './handlers';
import type { JobStore } from './job-store';
import type { Observations } from './observations';
import type { Wake } from './wake';

export interface Named {
  readonly name: string;
  readonly route: number;
}

export interface Stored {
  readonly store: JobStore;
}

export interface Configured {
  readonly config: Configuration;
}

/** A queue as it is stored: what most reads need. */
export type StoredQueue = Named & Stored & Configured;

export interface Observed {
  readonly observed: Observations;
}

export interface Woken {
  readonly wake: Wake;
}

export interface Handled {
  readonly handlers: Handlers;
}

export interface QueueParts extends Named, Stored, Configured, Observed, Woken, Handled {}
