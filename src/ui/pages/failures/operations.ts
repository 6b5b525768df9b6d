/** What can be done to all jobs of a group. */
import type { OperationStatus, StartedOperation } from '../../components/operation';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { query } from '../../core/router';
import { type DryRun, previewOf } from '../jobs/operations';

/** What narrows the groups that are listed narrows what is done to one of them; the age does not. */
export function narrowed(): Record<string, unknown> {
  const names = ['queue', 'type', 'state'].filter((name) => query(name) !== '');
  return Object.fromEntries(names.map((name) => [name, query(name).split(',')]));
}

export function onGroup(fingerprint: string, action: 'redrive' | 'discard'): StartedOperation {
  const path = `admin/failures/${segment(fingerprint)}/${action}`;
  const narrow = narrowed();
  const words =
    action === 'redrive'
      ? {
          ...{ verb: 'Redrive', doing: 'Redriving', done: 'redriven' },
          text: 'They run again as soon as there is capacity, including those that wait for their next attempt.',
        }
      : {
          ...{ verb: 'Discard', doing: 'Discarding', done: 'deleted permanently', danger: true },
          text: 'They are deleted with their history, including those that wait for their next attempt. This cannot be undone.',
        };
  return {
    ...words,
    preview: async () => previewOf(await api.post<DryRun>(path, { ...narrow, dry_run: true })),
    begin: (key) =>
      api.post<OperationStatus>(
        path,
        { ...narrow, confirm: true },
        { query: { wait: 1 }, headers: { 'Idempotency-Key': key } },
      ),
  };
}
