/** Whether a queue hands out jobs, and the buttons and keys that change it. */
import { Badge, type Tone } from '../../components/badge';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { act, confirm } from '../../core/dialogs';
import { can } from '../../core/session';
import type { QueueItem } from './types';

const MODES: Readonly<Record<string, Tone>> = { active: 'green', paused: 'amber', draining: 'violet' };

export function ModeBadge({ status }: { status: string }) {
  return <Badge tone={MODES[status] ?? 'neutral'}>{status}</Badge>;
}

type Named = Pick<QueueItem, 'name' | 'status'>;

/** Pauses a queue, or ends a pause or drain. @returns whether anything was done */
export async function toggle({ name, status }: Named): Promise<boolean> {
  if (status !== 'active') {
    return act(() => api.post(`admin/queues/${segment(name)}/resume`), `${name} is resumed.`);
  }
  const sure = await confirm({
    title: `Pause ${name}?`,
    text: 'Running jobs continue; no other job starts until the queue is resumed.',
    action: 'Pause',
  });
  return sure && act(() => api.post(`admin/queues/${segment(name)}/pause`), `${name} is paused.`);
}

/** Has a queue take no more jobs and give out those it has. */
export async function drain({ name }: Named): Promise<boolean> {
  const sure = await confirm({
    title: `Drain ${name}?`,
    text: 'Its jobs run to their end. New ones are rejected until the queue is resumed.',
    action: 'Drain',
  });
  return sure && act(() => api.post(`queues/${segment(name)}/drain`), `${name} drains.`);
}

export function ModeButtons({ queue, small, onDone }: { queue: Named; small?: boolean; onDone: () => void }) {
  const button = (label: string, run: (queue: Named) => Promise<boolean>) => (
    <button type="button" class={small ? 'small' : ''} onClick={async () => (await run(queue)) && onDone()}>
      {label}
    </button>
  );
  return (
    <>
      {button(queue.status === 'active' ? 'Pause' : 'Resume', toggle)}
      {queue.status === 'active' && can('data:write') && button('Drain', drain)}
    </>
  );
}
