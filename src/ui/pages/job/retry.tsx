/** The retry policy, and the delays that it makes: what would follow if every attempt failed. */
import type { RetryPreview } from '../../../contract/system';
import { Json } from '../../components/json';
import { Loaded } from '../../components/page';
import { RetryCurve } from '../../components/retry-curve';
import { api, useResource } from '../../core/api';
import type { Job } from './types';

/** Attempts that are foreseen at most. */
const MOST = 25;

export function RetryPolicy({ of: job }: { of: Job }) {
  const { retry_policy: policy = {} } = job;
  const attempts = Math.min(MOST, Math.max(1, job.max_attempts - 1));
  const given = { ...(job.retry as object | undefined), max_attempts: job.max_attempts };
  const preview = useResource(
    (signal) =>
      api.post<RetryPreview>('admin/retry/preview', { policy: policyOf(policy, given), attempts }, { signal }),
    [JSON.stringify(policy), attempts],
  );
  return (
    <>
      {job.max_attempts > 1 ? (
        <Loaded of={preview}>{({ delays }) => <RetryCurve delays={delays} done={job.attempt} />}</Loaded>
      ) : (
        <p class="faint">It has one attempt.</p>
      )}
      <Json value={policy} label="retry policy" open={1} />
    </>
  );
}

/** The effective policy if the server accepts it back, else the job's own as an approximation. */
function policyOf(policy: object, given: object): object {
  return Object.keys(policy).length > 0 ? policy : given;
}
