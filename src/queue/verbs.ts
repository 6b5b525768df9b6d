/**
 * The answers of a queue object, verb by verb. Other rooms call them over RPC as `QueueApi`. Almost every verb is one
 * operation of `jobs/`, `read/` or a feature, in one of the access modes of `access-modes.ts`. The engine does the
 * rest.
 *
 * Rules of all verbs: errors of the product's rules come back as `{ ok: false, error }`, only defects throw; reading
 * never writes; a write is answered only when it is durable (the runtime's output gate).
 */
import type { Verbs } from '../durable/answering';
import type { QueueLife } from './life';
import { CRON_VERBS } from './verbs/crons';
import { OPERATOR_VERBS } from './verbs/operators';
import { PRODUCER_VERBS } from './verbs/producers';
import { READING_VERBS } from './verbs/reading';
import { SEVERAL_VERBS } from './verbs/several';
import { WORKER_VERBS } from './verbs/workers';

export const VERBS = {
  ...PRODUCER_VERBS,
  ...READING_VERBS,
  ...WORKER_VERBS,
  ...OPERATOR_VERBS,
  ...SEVERAL_VERBS,
  ...CRON_VERBS,
} satisfies Verbs<QueueLife>;

declare module '../rpc/tables' {
  interface VerbTables {
    queue: typeof VERBS;
  }
}
