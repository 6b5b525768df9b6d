import type { Verbs } from '../../durable/answering';
import { answerOnce, recallAnswer } from '../../durable/inbox';
import type { Quota } from '../../job/limits/policy';
import type { SentJobs } from '../../job/message';
import type { NewJob } from '../../job/record';
import type { PatchRequest } from '../../rpc/operations';
import { type IdempotencyKey, isAnyAccepted, packOutcomes, packReceipt } from '../../rpc/receipts';
import { change, consider, read, rivals, write } from '../access-modes';
import { cancel } from '../jobs/cancel';
import { checkJobs, enqueue, enqueueEach } from '../jobs/enqueue';
import { refuseGivenUp, taken } from '../jobs/may-enqueue';
import { activate, patch, runNow } from '../jobs/patch';
import type { QueueLife } from '../life';

export const PRODUCER_VERBS = {
  /**
   * All or nothing. Errors carry `details.index` when there is more than one job.
   * @param ticket UUIDv7 under which fingerprints are reserved, see `src/locks/object.ts`; 503 once it is given up
   */
  enqueue: write(
    (q, now, jobs: SentJobs, ticket?: string, idempotency?: IdempotencyKey) => {
      if (ticket !== undefined) refuseGivenUp(q, ticket, now);
      return packReceipt(
        answerOnce(q.store.inbox, idempotency, now, () => enqueue(q, taken(q, jobs), now)),
        jobs,
      );
    },
    undefined,
    (newcomers) => rivals(newcomers),
  ),
  /** Accepts each job on its own; what cannot be accepted says why. */
  enqueueEach: write(
    (q, now, jobs: SentJobs, idempotency?: IdempotencyKey, divided?: boolean) =>
      packOutcomes(enqueueEach(q, taken(q, jobs), idempotency, now, !divided), jobs),
    isAnyAccepted,
    (newcomers) => rivals(newcomers),
  ),
  /** Would this queue take these jobs? Writes nothing; `details.index` names the first it would not. */
  checkJobs: consider((q, now, jobs: NewJob[]) => checkJobs(q, jobs, now)),
  /** What was answered under this key. @returns null: nothing; 409: to another request */
  recall: read(
    (q, now, idempotency: IdempotencyKey) => recallAnswer<unknown>(q.store.inbox, idempotency, now) ?? null,
    () => null,
  ),
  /** Counts jobs that a key is about to enqueue here. @returns 0, or in how many ms there is room for them */
  spendRate: (life, key: string, count: number, quota: Quota) => life.rates.spend(key, count, quota, Date.now()),
  cancel: change((q, now, id: string) => cancel(q, id, now)),
  activate: change((q, now, id: string) => activate(q, id, now)),
  /** A pending, delayed or retried job becomes available now. */
  runNow: change((q, now, id: string) => runNow(q, id, now)),
  /** @returns 404; 409 for a job that runs or has ended; 422 for a retry policy that is none */
  patch: change((q, now, request: PatchRequest) => patch(q, request, now)),
} satisfies Verbs<QueueLife>;
