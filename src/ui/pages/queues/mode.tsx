/** Whether a queue hands out jobs, and the buttons and keys that change it. */
import { Badge, type Tone } from '../../components/badge';
import { Button } from '../../components/text';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { act, askAndAct } from '../../core/dialogs';
import { can } from '../../core/session';
import type { QueueItem } from './types';

const MODES: Readonly<Record<string, Tone>> = { active: 'green', paused: 'amber', draining: 'violet' };

export function ModeBadge({ status }: { status: string }) {
  return <Badge look={[MODES[status] ?? 'neutral']} text={status} />;
}

/** True if no handler or worker takes its jobs. Workers may just be busy: nothing must run, or have run recently. */
export function isUntaken({ waiting_for, counts, throughput }: QueueItem): boolean {
  const { reason } = waiting_for ?? {};
  const isStill = counts.active === 0 && throughput.processed_per_minute === 0;
  return reason === 'no_handler' || (reason === 'no_worker' && isStill);
}

export const isNotable = (queue: QueueItem) => queue.status !== 'active' || isUntaken(queue);

/** As {@link ModeBadge}, red if no handler takes the jobs. */
export function StandingBadge({ of: queue }: { of: QueueItem }) {
  if (queue.status === 'active' && isUntaken(queue)) return <Badge look={['red']} text="no handler" />;
  return <ModeBadge status={queue.status} />;
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

/** Has a queue take no more jobs and give out those it has. */
export function drain({ name }: Named): Promise<boolean> {
  const text = 'Its jobs run to their end. New ones are rejected until the queue is resumed.';
  const work = () => api.post(`queues/${segment(name)}/drain`);
  return askAndAct({ title: `Drain ${name}?`, text, action: 'Drain' }, work, `${name} drains.`);
}

export function ModeButtons({ queue, small, onDone }: { queue: Named; small?: boolean; onDone: () => void }) {
  const button = (label: string, run: (queue: Named) => Promise<boolean>) => (
    <Button label={label} class={small ? 'small' : ''} onClick={async () => (await run(queue)) && onDone()} />
  );
  return (
    <>
      {button(queue.status === 'active' ? 'Pause' : 'Resume', toggle)}
      {queue.status === 'active' && can('data:write') && button('Drain', drain)}
    </>
  );
}
