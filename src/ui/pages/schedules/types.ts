/** Schedules as the API tells of them, and what one does with them. */
import { api } from '../../core/api';
import { href, segment } from '../../core/base';
import { act, confirm, toast } from '../../core/dialogs';

export interface Schedule {
  name: string;
  expression: string;
  timezone: string;
  status: 'active' | 'paused' | 'completed';
  enabled: boolean;
  overlap_policy: string;
  missed_policy: string;
  max_catchup?: number;
  start_at?: string;
  end_at?: string;
  limit?: number;
  description?: string;
  group?: string;
  queue: string;
  type: string;
  args?: unknown;
  job_template: Readonly<Record<string, unknown>>;
  next_run_at: string | null;
  last_run_at: string | null;
  last_job_id?: string;
  run_count: number;
  fire_count: number;
  skipped_count: number;
  /** Fires that wait for the job of the one before. */
  waiting: number;
  created_at: string;
  /** Of one schedule, not of a list. */
  next_fires?: readonly string[];
}

export interface Execution {
  job_id: string;
  state: string;
  trigger: 'schedule' | 'manual';
  scheduled_at: string;
  triggered_at: string;
  started_at: string | null;
  completed_at: string | null;
}

export interface Skip {
  scheduled_at: string;
  scheduled_until?: string;
  skipped_at: string;
  reason: string;
  job_id?: string;
  message?: string;
}

export const OVERLAPS: Readonly<Record<string, string>> = {
  skip: 'Skip while the previous job has not ended',
  allow: 'Allow jobs to overlap',
  cancel_previous: 'Cancel the previous job',
  enqueue: 'Wait until the previous job has ended',
};

export const MISSES: Readonly<Record<string, string>> = {
  fire_once: 'Fire once for all missed fires',
  skip: 'Skip missed fires',
  fire_all: 'Make up for each missed fire',
};

export const REASONS: Readonly<Record<string, string>> = {
  overlap_skip: 'The previous job had not ended',
  waiting_full: 'Too many fires were waiting',
  missed: 'The fire was missed',
  unique: 'A duplicate job existed',
  refused: 'The queue rejected the job',
};

export const pathOf = (name: string) => `crons/${segment(name)}`;

/** @returns whether anything was changed */
export async function toggle({ name, enabled }: Schedule): Promise<boolean> {
  const verb = enabled ? 'pause' : 'resume';
  return act(() => api.post(`${pathOf(name)}/${verb}`), `${name} is ${enabled ? 'paused' : 'resumed'}.`);
}

export async function runNow({ name, type }: Schedule): Promise<boolean> {
  const sure = await confirm({
    title: `Run ${name} now?`,
    text: `A job ${type} is enqueued at once, in addition to the schedule.`,
    action: 'Run now',
  });
  if (!sure) return false;
  return act(async () => {
    const { job_id: job } = await api.post<{ job_id: string }>(`${pathOf(name)}/trigger`);
    toast(`${name} enqueued a job.`, { link: { href: href(`jobs/${segment(job)}`), text: 'Open the job' } });
  });
}

export async function remove({ name }: Schedule): Promise<boolean> {
  const sure = await confirm({
    title: `Delete ${name}?`,
    text: 'It no longer fires, and its history is deleted. Jobs that it enqueued stay.',
    action: 'Delete the schedule',
    danger: true,
  });
  return sure && act(() => api.del(pathOf(name)), `${name} is deleted.`);
}
