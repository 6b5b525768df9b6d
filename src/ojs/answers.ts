/** What clients of the Open Job Spec need: which of them asks, and answers in the shapes of both its documents. */
import type { Context } from 'hono';
import type { Envelope } from '../job/envelope/render';
import { UNKNOWN_MEMBERS } from '../job/envelope/render';

type Asking = Pick<Context, 'req'>;

/** Does the client name its version? OJS SDKs do; they read the HTTP binding's shapes, not the conformance suite's. */
export const saysVersion = (c: Asking): boolean => c.req.header('OJS-Version') !== undefined;

const isBy = (c: Asking, library: RegExp): boolean => library.test(c.req.header('User-Agent') ?? '');

/** The Python SDK accepts the protocol's type like every other, but reads only plain JSON. Its library names it. */
export const readsPlainJsonOnly = (c: Asking): boolean => isBy(c, /^python-httpx\//i);

/** The Go SDK cannot read a workflow whose step has a result other than an object. Its library names it. */
export const readsObjectsOnly = (c: Asking): boolean => saysVersion(c) && isBy(c, /^Go-http-client\//);

/**
 * The answer about one job: its envelope under `job`, and a flat copy without the application's own members, which
 * could shadow members of the answer. @param own the answer's other members, which win over the copy
 */
export function withFlatCopy<Job extends object, Own extends object = object>(
  envelope: Job,
  own?: Own,
): { job: Job } & Partial<Job> & Own {
  const { [UNKNOWN_MEMBERS]: added, ...copy } = envelope as Envelope & { [UNKNOWN_MEMBERS]?: readonly string[] };
  for (const name of added ?? []) delete copy[name];
  return { job: envelope, ...(copy as Partial<Job>), ...(own as Own) };
}

/** {@link withFlatCopy} for an envelope that is JSON text already and has no members of the application. */
export function flatCopyText(envelope: string, own: object): string {
  const others = JSON.stringify(own).slice(1);
  return `{"job":${envelope},${envelope.slice(1, -1)}${others === '}' ? '' : ','}${others}`;
}
