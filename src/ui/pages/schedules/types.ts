import type { CronSkipped, CronStatus, CronTriggered, MissedPolicy, OverlapPolicy } from '../../../contract/cron';
import type { Action } from '../../components/actions';
import { api } from '../../core/api';
import { act, askAndAct, toast } from '../../core/dialogs';
import { href, openAside, segment } from '../../core/router';

export const OVERLAPS: Readonly<Record<OverlapPolicy, string>> = {
  skip: 'Skip while the previous job has not ended',
  allow: 'Allow jobs to overlap',
  cancel_previous: 'Cancel the previous job',
  enqueue: 'Wait until the previous job has ended',
};

export const MISSES: Readonly<Record<MissedPolicy, string>> = {
  fire_once: 'Fire once for all missed fires',
  skip: 'Skip missed fires',
  fire_all: 'Make up for each missed fire',
};

export const REASONS: Readonly<Record<CronSkipped['reason'], string>> = {
  overlap_skip: 'The previous job had not ended',
  waiting_full: 'Too many fires were waiting',
  missed: 'The fire was missed',
  unique: 'A duplicate job existed',
  refused: 'The queue rejected the job',
};

export const pathOf = (name: string) => `crons/${segment(name)}`;

function toggle({ name, enabled }: CronStatus): Promise<boolean> {
  const verb = enabled ? 'pause' : 'resume';
  return act(() => api.post(`${pathOf(name)}/${verb}`), `${name} is ${enabled ? 'paused' : 'resumed'}.`);
}

function runNow({ name, type }: CronStatus): Promise<boolean> {
  const text = `A job ${type} is enqueued at once, in addition to the schedule.`;
  return askAndAct({ title: `Run ${name} now?`, text, action: 'Run now' }, async () => {
    const { job_id: job } = await api.post<CronTriggered>(`${pathOf(name)}/trigger`);
    toast(`${name} enqueued a job.`, { link: { href: href(`jobs/${segment(job)}`), text: 'Open the job' } });
  });
}

function remove({ name }: CronStatus): Promise<boolean> {
  const text = 'It no longer fires, and its history is deleted. Jobs that it enqueued stay.';
  const question = { title: `Delete ${name}?`, text, action: 'Delete the schedule', danger: true };
  return askAndAct(question, () => api.del(pathOf(name)), `${name} is deleted.`);
}

/** What can be done to a schedule in its row; {@link ALL_ACTIONS}: in its drawer. */
export const ACTIONS: readonly Action<CronStatus>[] = [
  { label: 'Run now', key: ['n', 'Run now'], run: runNow },
  { label: ({ enabled }) => (enabled ? 'Pause' : 'Resume'), key: ['p', 'Pause or resume'], run: toggle },
];
export const ALL_ACTIONS: readonly Action<CronStatus>[] = [
  ...ACTIONS,
  { label: 'Edit', run: ({ name }) => openAside({ edit: name }) },
  { label: 'Delete', danger: true, run: remove, removes: true },
];
