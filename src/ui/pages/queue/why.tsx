/** Why nothing runs, or not more: what holds jobs back, with what ends it beside each reason. */
import type { ComponentChildren } from 'preact';
import type { CronItems } from '../../../contract/cron';
import type { InspectedJob } from '../../../contract/jobs';
import type { MaintenanceState } from '../../../contract/maintenance';
import type { RateLimitStatus } from '../../../contract/rate-limits';
import { Icon, type IconName } from '../../components/icon';
import { Section } from '../../components/page';
import { Button, Foreign, sentence, Time, Told } from '../../components/text';
import { api, can, useResource } from '../../core/api';
import { act } from '../../core/dialogs';
import { counted, number } from '../../core/format';
import { href, segment } from '../../core/router';
import { toggle } from '../queues/mode';
import type { QueueItem } from '../queues/types';

type WaitingJob = Pick<InspectedJob, 'id' | 'type' | 'waiting_for'>;

/** What else there is to know, asked only where something waits. */
async function load(queue: QueueItem, signal: AbortSignal) {
  const { name, counts } = queue;
  const waits = counts.available > 0;
  const [maintenance, limits, jobs, crons] = await Promise.all([
    api.get<MaintenanceState>('admin/system/maintenance', {}, signal),
    waits ? api.get<{ items: RateLimitStatus[] }>('rate-limits', { queue: name }, signal) : { items: [] },
    waits
      ? api.get<{ items: { id: string }[] }>(
          'admin/jobs',
          { queue: name, state: 'available', sort: 'created_at', order: 'asc', per_page: 1 },
          signal,
        )
      : { items: [] as { id: string }[] },
    waits ? { items: [] } : api.get<CronItems>('crons', { per_page: 100 }, signal),
  ]);
  const [head] = jobs.items;
  const first = head && (await api.get<WaitingJob>(`admin/jobs/${head.id}`, {}, signal).catch(() => undefined));
  const schedules = crons.items.filter(({ queue: of }) => of === name);
  return { maintenance, limits: limits.items, first, schedules };
}

const SHOWN = 3;

export function Why({ queue, round, reload }: { queue: QueueItem; round: number; reload: () => void }) {
  const { name, status, counts, concurrency, suspended_targets } = queue;
  const found = useResource((signal) => load(queue, signal), [name, status, round, suspended_targets.length]);
  const { maintenance, limits = [], first, schedules = [] } = found.data ?? {};
  const reasons: ComponentChildren[] = [];
  const add = (key: string, icon: IconName, text: ComponentChildren, action?: ComponentChildren) =>
    reasons.push(
      <li key={key}>
        <Icon name={icon} />
        <div>{text}</div>
        {action}
      </li>,
    );
  const button = (label: string, run: () => Promise<boolean>) =>
    can('admin:write') && <Button label={label} class="small" onClick={async () => (await run()) && reload()} />;

  if (status !== 'active') {
    const [icon, text] =
      status === 'paused'
        ? (['pause', 'The queue is paused: it accepts jobs and hands none out.'] as const)
        : (['down', 'The queue is draining: it hands out its jobs and accepts no new ones.'] as const);
    const resume = button('Resume', () => toggle(queue));
    add('mode', icon, text, resume);
  }
  if (maintenance?.enabled) {
    const { reason, ends_at: end } = maintenance;
    const because = reason && <Foreign before=": ">{reason}</Foreign>;
    const text = sentence`The deployment is in maintenance${because}. ${end && sentence`It ends ${<Time at={end} />}.`}`;
    add('maintenance', 'pause', text, <a href={href('settings', { tab: 'deployment' })}>Maintenance</a>);
  }
  for (const target of suspended_targets) {
    const path = `admin/targets/${segment(target)}/resume`;
    const call = () => act(() => api.post(path, {}, { query: { queue: name } }), `${target} was called.`);
    const link = <a href={href('workers', { target })}>{target}</a>;
    const text = sentence`The handler ${link} did not accept the last calls.`;
    add(`target ${target}`, 'workers', text, button('Try it now', call));
  }
  if (counts.available > 0 && concurrency.limit !== null && counts.active >= concurrency.limit) {
    const settings = <a href={href(`queues/${segment(name)}`, { tab: 'settings' })}>Settings</a>;
    add('concurrency', 'active', `All ${number(concurrency.limit)} slots are in use.`, settings);
  }
  const waitedFor = limits.filter(({ waiting }) => waiting > 0);
  for (const { key, waiting, active, concurrency: most } of waitedFor.slice(0, SHOWN)) {
    const link = <a href={href('limits', { key })}>{key}</a>;
    const use = most !== undefined && `, with ${number(active)} of ${number(most)} running`;
    const jobs = waiting === 1 ? '1 job waits' : `${number(waiting)} jobs wait`;
    add(`limit ${key}`, 'limits', sentence`${jobs} for the key ${link}${use}.`);
  }
  /** Reasons that another line has already. */
  const shown: Partial<Record<string, boolean>> = {
    queue_paused: status === 'paused',
    maintenance: maintenance?.enabled === true,
    key_limit: waitedFor.length > 0,
    handler_down: suspended_targets.length > 0,
  };
  if (first?.waiting_for && !shown[first.waiting_for.reason]) {
    const link = <a href={href(`jobs/${first.id}`)}>{first.type}</a>;
    const reason = <Told text={first.waiting_for.detail} />;
    add('first', 'waiting', sentence`The job that has waited longest, ${link}: ${reason}`);
  }
  if (counts.available === 0) {
    const waits = (state: 'scheduled' | 'retryable', icon: IconName, text: string) => {
      const link = <a href={href('jobs', { queue: name, state })}>{counted(counts[state], 'job')}</a>;
      add(state, icon, sentence`${link} ${counts[state] === 1 ? 'waits' : 'wait'} ${text}.`);
    };
    if (counts.active === 0 && counts.scheduled > 0) waits('scheduled', 'schedules', 'for its time');
    if (counts.retryable > 0) waits('retryable', 'retry', 'for a retry');
    for (const { name: schedule, enabled, next_run_at: next } of schedules.slice(0, SHOWN)) {
      const link = <a href={href('schedules', { open: schedule })}>{schedule}</a>;
      const what = enabled && next ? sentence`enqueues the next job ${<Time at={next} />}.` : 'is paused.';
      add(`cron ${schedule}`, 'schedules', sentence`The schedule ${link} ${what}`);
    }
  }
  const isStill = counts.active === 0;
  if (reasons.length === 0) {
    const none = isStill ? 'There are no jobs to run.' : 'No jobs wait.';
    add('none', 'check', counts.available > 0 ? 'Nothing blocks jobs: they are handed out as they arrive.' : none);
  }
  return (
    <Section title={isStill ? 'Why nothing runs' : 'What blocks jobs'}>
      <ul class="why card text">{reasons}</ul>
    </Section>
  );
}
