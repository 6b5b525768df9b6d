/** Whether a queue hands out jobs, and the buttons and keys that change it. */
import type { Action } from '../../components/actions';
import { Badge, type Tone } from '../../components/text';
import { api, can } from '../../core/api';
import { act, askAndAct } from '../../core/dialogs';
import { segment } from '../../core/router';
import type { QueueItem } from './types';

const MODES: Readonly<Record<string, Tone>> = { active: 'green', paused: 'amber', draining: 'violet' };

/** True if no handler or worker takes its jobs. Workers may just be busy: nothing must run, or have run recently. */
export function hasNoHandler({ waiting_for, counts, throughput }: QueueItem): boolean {
  const { reason } = waiting_for ?? {};
  const isStill = counts.active === 0 && throughput.processed_per_minute === 0;
  return reason === 'no_handler' || (reason === 'no_worker' && isStill);
}

export const isNotable = (queue: QueueItem) => queue.status !== 'active' || hasNoHandler(queue);

/** The mode of a queue; red if no handler takes its jobs. */
export function StandingBadge({ of: queue }: { of: QueueItem }) {
  if (queue.status === 'active' && hasNoHandler(queue)) return <Badge look={['red']} text="no handler" />;
  return <Badge look={[MODES[queue.status] ?? 'neutral']} text={queue.status} />;
}

type Named = Pick<QueueItem, 'name' | 'status'>;

/** Pauses a queue, or ends a pause or drain. @returns whether anything was done */
export function toggle({ name, status }: Named): Promise<boolean> {
  const path = `admin/queues/${segment(name)}`;
  if (status !== 'active') return act(() => api.post(`${path}/resume`), `${name} is resumed.`);
  const text = 'Running jobs continue; no other job starts until the queue is resumed.';
  return askAndAct(
    { title: `Pause ${name}?`, text, action: 'Pause' },
    () => api.post(`${path}/pause`),
    `${name} is paused.`,
  );
}

function drain({ name }: Named): Promise<boolean> {
  const text = 'Its jobs run to their end. New ones are rejected until the queue is resumed.';
  const work = () => api.post(`queues/${segment(name)}/drain`);
  return askAndAct({ title: `Drain ${name}?`, text, action: 'Drain' }, work, `${name} drains.`);
}

export const ACTIONS: readonly Action<Named>[] = [
  {
    label: ({ status }) => (status === 'active' ? 'Pause' : 'Resume'),
    ...{ key: ['p', 'Pause or resume'], run: toggle },
  },
  {
    label: 'Drain',
    ...{ key: ['d', 'Drain'], run: drain },
    isFor: ({ status }) => status === 'active' && can('data:write'),
  },
];
