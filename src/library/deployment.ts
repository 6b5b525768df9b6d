/** How tests and `tocsin serve`, separate bundles, find the Worker's deployment: under a registered symbol. */
import type { TocsinClient } from '../client/client';

/** The member of the global object with the {@link Deployment} of a Worker that holds the queue. */
export const DEPLOYMENT = Symbol.for('tocsin.deployment');

export interface Deployment {
  /** Everything that a client can do, without a key. */
  readonly client: TocsinClient;
  /** Every Durable Object of the deployment, with a descriptive name. */
  objects(): Promise<{ name: string; stub: DurableObjectStub }[]>;
  /** Empties the deployment, and puts into effect again what the code declares. */
  reset(): Promise<void>;
  /** Hands out no more jobs in this process before `until`, epoch ms. @returns calls to handlers under way */
  rest(until: number): number;
  /** The newest version of each kind of object that it can open; absent in 0.2.0 and before. */
  readonly schemas?: Readonly<Record<string, number>>;
}
