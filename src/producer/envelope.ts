/** Jobs and retry policies as TypeScript has them: those of the wire, in camelCase. */
import type * as wire from '../job/wire';
import type { Named } from './names';

export type { Duration, HistoryEventType } from '../job/wire';

/** A job as clients and handlers see it. Times are RFC 3339 in UTC; absent members do not apply. */
export interface JobEnvelope<Args extends readonly unknown[] = unknown[]> extends Named<wire.JobEnvelope<Args>> {}

/** When and how often a failed job runs again. Each field left out comes from the layer below (queue, deployment). */
export interface RetryPolicy extends Named<wire.RetryPolicy> {}

/** Randomness added to a retry's delay; `true` multiplies it by 0.5 … 1.5. */
export type RetryJitter = Named<wire.RetryJitter>;

/** How long a job is kept after each end; the queue decides about members left out. `0`: not at all. */
export interface RetentionOptions extends Named<wire.RetentionOptions> {}

/** One failed attempt, as an envelope shows it. */
export interface EnvelopeError extends Named<wire.EnvelopeError> {}

/** Why a job that has not ended does not run. */
export interface EnvelopeWaiting extends Named<wire.EnvelopeWaiting> {}
