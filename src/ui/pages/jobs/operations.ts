/** What can be done to many jobs: those that are chosen, or all that fit the filter. */
import type { JobItems } from '../../../contract/jobs';
import type { OperationStatus, Preview, StartedOperation } from '../../components/operation';
import { JOB_STATES } from '../../components/text';
import { api } from '../../core/api';
import { filterBody } from './filter';

export type Action = 'retry' | 'cancel' | 'delete';

/** Those that run are cancelled by id only: their handler must be notified. */
const ACTS_ON: Readonly<Record<Action, readonly string[]>> = {
  retry: ['discarded', 'cancelled', 'retryable'],
  cancel: ['pending', 'scheduled', 'available', 'retryable', 'active'],
  delete: ['completed', 'cancelled', 'discarded'],
};

type Words = Pick<StartedOperation, 'verb' | 'doing' | 'done' | 'text' | 'danger'>;

const WORDS: Readonly<Record<Action, Words>> = {
  retry: { verb: 'Retry', doing: 'Retrying', done: 'retried', text: 'They run again as soon as there is capacity.' },
  cancel: { verb: 'Cancel', doing: 'Cancelling', done: 'cancelled', text: 'They do not run unless you retry them.' },
  delete: {
    verb: 'Delete',
    doing: 'Deleting',
    done: 'deleted',
    text: 'They are deleted with their history. This cannot be undone.',
    danger: true,
  },
};

/** {@link Words} for lists of dead letters only. */
export const DEAD_WORDS: Readonly<Partial<Record<Action, Pick<Words, 'verb' | 'doing' | 'done'>>>> = {
  retry: { verb: 'Redrive', doing: 'Redriving', done: 'redriven' },
  delete: { verb: 'Discard', doing: 'Discarding', done: 'deleted permanently' },
};

/** On all jobs that fit the filter of the URL, as it is now. @param total how many these are, if that is known */
export function onMatching(action: Action, dead: boolean, total: number | undefined): StartedOperation {
  return { ...onFilter(action, filterBody(JOB_STATES), total), ...(dead && DEAD_WORDS[action]) };
}

/** What is asked and begun at one path: a dry run, then the operation, which continues behind its first answer. */
export const atPath = (path: string, body: Record<string, unknown>): Pick<StartedOperation, 'preview' | 'begin'> => ({
  preview: () => api.post<Preview>(path, { ...body, dry_run: true }),
  begin: (key) => {
    const options = { query: { wait: 1 }, headers: { 'Idempotency-Key': key } };
    return api.post<OperationStatus>(path, { ...body, confirm: true }, options);
  },
});

export function onFilter(action: Action, filter: Record<string, unknown>, total?: number): StartedOperation {
  const { preview, begin } = atPath(`admin/jobs/bulk/${action}`, { filter });
  const counted = async () => {
    const found = await preview();
    return { ...found, left: total !== undefined && found.matched_is_exact ? Math.max(0, total - found.matched) : 0 };
  };
  return { ...WORDS[action], preview: counted, begin };
}

interface EachAnswer {
  items: readonly { job_id: string; status: string; reason?: string }[];
}

export const onChosen = (action: Action, ids: readonly string[], dead: boolean): StartedOperation => ({
  ...WORDS[action],
  ...(dead && DEAD_WORDS[action]),
  preview: async () => {
    const { counts = {} } = await api.get<JobItems>('admin/jobs', { id: ids.join(), counts: true, per_page: 1 });
    const fit = Object.entries(counts).filter(([state, count]) => count > 0 && ACTS_ON[action].includes(state));
    const matched = fit.reduce((sum, [, count]) => sum + count, 0);
    const found = { matched, matched_is_exact: true, by_state: Object.fromEntries(fit), by_queue: {} };
    return { ...found, left: ids.length - matched };
  },
  begin: async (key) => {
    const { items } = await api.post<EachAnswer>(
      `jobs/bulk/${action}`,
      { job_ids: ids },
      { headers: { 'Idempotency-Key': key } },
    );
    const count = (...statuses: string[]) => items.filter(({ status }) => statuses.includes(status)).length;
    const [skipped, failed] = [count('skipped'), count('failed')];
    const wrong = items.filter(({ status }) => status === 'failed');
    return {
      ...{ completed: true, skipped, failed, succeeded: items.length - skipped - failed },
      errors: wrong.map(({ job_id, reason = '' }) => ({ job_id, error: reason })),
    };
  },
});
