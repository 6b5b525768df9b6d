/**
 * The answers of a queue object, verb by verb ({@link QueueApi} explains each). Almost every verb is one operation of
 * `jobs/`, `read/` or a feature, in one of the access modes of `access-modes.ts`; the engine does the rest.
 */
import type { Verbs } from '../durable/answering';
import type { QueueApi } from '../rpc/queue';
import type { QueueLife } from './life';
import { CRON_VERBS } from './verbs/crons';
import { OPERATOR_VERBS } from './verbs/operators';
import { PRODUCER_VERBS } from './verbs/producers';
import { READING_VERBS } from './verbs/reading';
import { SEVERAL_VERBS } from './verbs/several';
import { WORKER_VERBS } from './verbs/workers';

export const VERBS: Verbs<QueueLife, QueueApi> = {
  ...PRODUCER_VERBS,
  ...READING_VERBS,
  ...WORKER_VERBS,
  ...OPERATOR_VERBS,
  ...SEVERAL_VERBS,
  ...CRON_VERBS,
};
