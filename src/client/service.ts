/** The queue as another Worker of the account sees it through a service binding with the entrypoint `Tocsin`. */
import type { AnyJobs, TocsinClient } from './client';

/**
 * The type of the binding: `interface Env { TOCSIN: TocsinService<Jobs> }`. Calls travel by RPC; errors arrive with
 * their name and message. For everything else, and for errors with their details:
 * `new TocsinClient({ service: env.TOCSIN })`.
 *
 * @example
 * await env.TOCSIN.enqueue('email.send', [{ to: 'ada@example.com' }], { queue: 'mail' });
 */
export interface TocsinService<Jobs extends Record<keyof Jobs, readonly unknown[]> = AnyJobs>
  extends Pick<TocsinClient<Jobs>, Calls> {
  /** The whole HTTP interface, without a key. */
  fetch(input: Request | string, init?: RequestInit): Promise<Response>;
}

type Calls = 'enqueue' | 'enqueueMany' | 'get' | 'cancel' | 'patch' | 'count';
