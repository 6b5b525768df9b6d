/** The queue as another Worker of the account sees it through a service binding with the entrypoint `Tocsin`. */
import type { JobEnvelope } from '../producer/envelope';
import type { EnqueueOptions } from '../producer/job';
import type { JobOf } from './client';
import type { BatchOptions } from './enqueue';
import type { JobPatch } from './patch';
import type { JobQuery } from './queries';

/**
 * The type of the binding: `interface Env { TOCSIN: TocsinService<Jobs> }`. Calls travel by RPC; errors arrive with
 * their name and message. For everything else, and for errors with their details:
 * `new TocsinClient({ service: env.TOCSIN })`.
 *
 * @example
 * await env.TOCSIN.enqueue('email.send', [{ to: 'ada@example.com' }], { queue: 'mail' });
 */
export interface TocsinService<
  Jobs extends Record<keyof Jobs, readonly unknown[]> = Record<string, readonly unknown[]>,
> {
  /** As `TocsinClient.enqueue`. */
  enqueue<Type extends keyof Jobs & string>(
    type: Type,
    args: Jobs[Type],
    options?: EnqueueOptions,
  ): Promise<JobEnvelope<Jobs[Type]>>;
  /** As `TocsinClient.enqueueMany`. */
  enqueueMany(jobs: readonly JobOf<Jobs>[], options?: BatchOptions): Promise<JobEnvelope[]>;
  get(id: string): Promise<JobEnvelope>;
  cancel(id: string): Promise<JobEnvelope>;
  patch(id: string, change: JobPatch): Promise<JobEnvelope>;
  count(query?: JobQuery): Promise<number>;
  /** The whole HTTP interface, without a key. */
  fetch(input: Request | string, init?: RequestInit): Promise<Response>;
}
