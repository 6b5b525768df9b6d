/** Envelopes of jobs that were just enqueued. */
import { readConfig } from '../config';
import type { ParsedJob } from '../job/envelope/parse';
import { type Envelope, renderJob } from '../job/envelope/render';
import { variablesLayer } from '../job/retry/variables';
import type { EnqueuedJob } from '../rpc/receipts';
import type { AppContext } from './context';

/** The envelope of an entry's job, which is that of another job when the entry was a duplicate. */
export function renderEnqueued(
  view: EnqueuedJob,
  entry: ParsedJob | undefined,
  variables: Parameters<typeof renderJob>[1],
): Envelope {
  const asWritten = entry !== undefined && entry.job.body === view.record.body;
  return renderJob(view, variables, asWritten ? entry.body : undefined);
}

/** The retry variables, found usable before anything is written: a job must not be accepted under no policy at all. */
export function usableVariables(c: AppContext) {
  const { retryVariables } = readConfig(c.env);
  variablesLayer(retryVariables);
  return retryVariables;
}
