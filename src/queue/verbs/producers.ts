/** Verbs for producers: enqueuing jobs, and changing them. */
import type { Verbs } from '../../durable/answering';
import { answerOnce, recallAnswer } from '../../durable/inbox';
import type { QueueApi } from '../../rpc/queue';
import { isAnyAccepted, packOutcomes, packReceipt } from '../../rpc/receipts';
import { change, consider, read, rivals, write } from '../access-modes';
import { activate, runNow } from '../jobs/activate';
import { cancel } from '../jobs/cancel';
import { checkJobs, enqueue } from '../jobs/enqueue';
import { enqueueEach } from '../jobs/enqueue-each';
import { patch } from '../jobs/patch';
import { taken } from '../jobs/schema-misfits';
import { refuseGivenUp } from '../jobs/ticket';
import type { QueueLife } from '../life';

export const PRODUCER_VERBS = {
  enqueue: write(
    (q, now, jobs, ticket, idempotency) => {
      if (ticket !== undefined) refuseGivenUp(q, ticket, now);
      return packReceipt(
        answerOnce(q.store.inbox, idempotency, now, () => enqueue(q, taken(q, jobs), now)),
        jobs,
      );
    },
    undefined,
    (newcomers) => rivals(newcomers),
  ),
  enqueueEach: write(
    (q, now, jobs, idempotency, divided) =>
      packOutcomes(enqueueEach(q, taken(q, jobs), idempotency, now, !divided), jobs),
    isAnyAccepted,
    (newcomers) => rivals(newcomers),
  ),
  checkJobs: consider((q, now, jobs) => checkJobs(q, jobs, now)),
  recall: read(
    (q, now, idempotency) => recallAnswer<unknown>(q.store.inbox, idempotency, now) ?? null,
    () => null,
  ),
  cancel: change((q, now, id) => cancel(q, id, now)),
  activate: change((q, now, id) => activate(q, id, now)),
  runNow: change((q, now, id) => runNow(q, id, now)),
  patch: change((q, now, request) => patch(q, request, now)),
} satisfies Partial<Verbs<QueueLife, QueueApi>>;
