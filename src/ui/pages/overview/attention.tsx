/** What needs an operator now, each with a link to it; otherwise that all is well, and when that was checked. */
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Alert } from '../../../contract/alerts';
import type { CronItems, CronStatus } from '../../../contract/cron';
import type { FailureGroup, FailureGroups } from '../../../contract/failures';
import { isIntended } from '../../components/error';
import { Icon, type IconName } from '../../components/icon';
import { Section } from '../../components/page';
import { Age, Foreign, QueueLink, sentence, Time } from '../../components/text';
import { api, can, useResource } from '../../core/api';
import { useNow, useSlowly } from '../../core/clock';
import { brief, counted, number, percent } from '../../core/format';
import type { LiveEvent } from '../../core/live';
import { href, type Query } from '../../core/router';
import { hasNoHandler } from '../queues/mode';
import type { QueueItem, QueueList } from '../queues/types';
import { REASONS } from '../schedules/types';
import { ALERTS, type List, METRICS, shownAs } from '../webhooks/types';

/** Shortest time between two checks, in ms: each reads the failures of many queues. */
const EVERY_MS = 10_000;
const DAY_MS = 86_400_000;

/** A schedule is late when it has not fired this long after its time, in ms. */
const LATE_MS = 60_000;

const SHOWN = 3;

async function check(signal: AbortSignal) {
  const failures = (query: Query) => api.get<FailureGroups>('admin/failures', query, signal);
  const [rules, newest, dead, crons] = await Promise.all([
    api.get<List<Alert>>(ALERTS, { per_page: 100 }, signal),
    failures({ sort: 'first_seen', per_page: 50 }),
    failures({ state: 'dead', since: '24h', per_page: 200 }),
    can('data:read') ? api.get<CronItems>('crons', { per_page: 200 }, signal) : { items: [] },
  ]);
  return { rules: rules.items, newest, dead, schedules: crons.items };
}

const CHANGES = /^(alert\.|cron\.|job\.(discarded|retrying))/;

export function useAttention() {
  const [round, setRound] = useState(0);
  const checks = useResource(check, [useSlowly(round, EVERY_MS)]);
  const onEvents = (events: readonly LiveEvent[]) => {
    if (events.some(({ event }) => event.startsWith('alert.'))) checks.reload();
    else if (events.some(({ event }) => CHANGES.test(event))) setRound((count) => count + 1);
  };
  return { checks, onEvents };
}

interface Line {
  key: string;
  icon: IconName;
  /** Jobs are lost or stand still; otherwise it can wait an hour. */
  isUrgent?: boolean;
  text: ComponentChildren;
  link: { to: string; text: string };
}

export function Attention(props: { of: ReturnType<typeof useAttention>; queues: QueueList }) {
  const {
    of: { checks },
    queues,
  } = props;
  const now = useNow();
  const checkedAt = useMemo(() => Date.now(), [checks.data, queues]);
  const { data, error } = checks;
  if (!data && !error) return null;
  const lines = [...linesOfQueues(queues.items), ...(data ? linesOf(data, queues.items, now) : [])];
  if (error) {
    const text = <>Alerts, failures and schedules could not be checked: {error.message}</>;
    lines.push({ key: 'error', icon: 'failures', text, link: { to: href('events'), text: 'Events' } });
  }
  if (lines.length === 0) {
    return (
      <p class="all-well" role="status">
        <Icon name="check" size={18} /> <strong>All is well</strong>{' '}
        <span class="faint">
          checked <Time at={checkedAt} />
        </span>
      </p>
    );
  }
  lines.sort((a, b) => Number(b.isUrgent ?? false) - Number(a.isUrgent ?? false));
  return (
    <Section title="Needs attention">
      <div class="attention card text">
        {lines.map(({ key, icon, isUrgent, text, link }) => (
          <div key={key} class={`attention-line ${isUrgent ? 'urgent' : ''}`} role={isUrgent ? 'alert' : 'status'}>
            <Icon name={icon} size={18} />
            <div class="attention-text">{text}</div>
            <a href={link.to}>{link.text}</a>
          </div>
        ))}
      </div>
    </Section>
  );
}

/** The first of one kind, and how many more there are. */
function some<T>(items: readonly T[], rest: Pick<Line, 'icon' | 'link'>, lineOf: (item: T) => Line): Line[] {
  const lines = items.slice(0, SHOWN).map(lineOf);
  const more = items.length - lines.length;
  if (more > 0) lines.push({ ...rest, key: `more ${rest.link.to}`, text: `${number(more)} more of these` });
  return lines;
}

function linesOfQueues(queues: readonly QueueItem[]): Line[] {
  const toQueues = linkTo('queues', href('queues'), 'All queues');
  const queueOf = (name: string) => <QueueLink name={name} />;
  const byTarget = new Map<string, string[]>();
  for (const { name, suspended_targets } of queues) {
    for (const target of suspended_targets) byTarget.set(target, [...(byTarget.get(target) ?? []), name]);
  }
  const near = queues.filter(({ pressure, storage }) => pressure || storage?.state === 'full');
  return [
    ...some(queues.filter(hasNoHandler), toQueues, ({ name, counts: { available }, waiting_for }) => {
      const wait = available === 1 ? 'waits' : 'wait, the oldest';
      const age = <Age since={waiting_for?.since} />;
      return {
        ...{ key: `no-handler ${name}`, icon: 'queues', isUrgent: true },
        text: sentence`No handler takes the jobs of ${queueOf(name)}: ${counted(available, 'job')} ${wait} for ${age}.`,
        link: { to: href('jobs', { queue: name, state: 'available' }), text: 'Show the jobs' },
      };
    }),
    ...some([...byTarget], linkTo('workers', href('workers'), 'All handlers'), ([target, [first, ...others]]) => {
      const where = others.length === 0 ? first : `${number(others.length + 1)} queues`;
      return {
        ...{ key: `target ${target}`, icon: 'workers' },
        text: sentence`The handler ${<strong>{target}</strong>} does not accept calls: jobs wait in ${where}.`,
        link: { to: href('workers', { target }), text: 'Show it' },
      };
    }),
    ...some(near, toQueues, ({ name, pressure, storage }) => {
      const { depth, bound } = pressure ?? { depth: storage?.bytes ?? 0, bound: storage?.max_bytes ?? 1 };
      const share = percent(depth / bound);
      return {
        ...{ key: `near ${name}`, icon: 'limits', isUrgent: !pressure || depth >= bound },
        text: pressure
          ? sentence`${queueOf(name)} is ${share} full: ${number(depth)} of ${number(bound)}.`
          : sentence`The storage of ${queueOf(name)} is full: ${share}. It accepts no jobs.`,
        link: { to: href(`queues/${name}`, { tab: 'settings' }), text: 'Its settings' },
      };
    }),
  ];
}

const linkTo = (icon: IconName, to: string, text: string) => ({ icon, link: { to, text } });

type Checks = Awaited<ReturnType<typeof check>>;

function linesOf({ rules, newest, dead, schedules }: Checks, queues: readonly QueueItem[], now: number): Line[] {
  const firing = rules.flatMap((rule) =>
    rule.queues.filter(({ state }) => state === 'firing').map((where) => ({ rule, where })),
  );
  const fresh = newest.items.filter(
    ({ first_seen_at, error }) => now - Date.parse(first_seen_at) < DAY_MS && !isIntended(error),
  );
  const died = dead.items.reduce((sum, { count }) => sum + count, 0);
  const failed = schedules.flatMap((one) => (didNotFire(one, now) ? [one] : []));
  return [
    ...some(firing, linkTo('alerts', href('alerts'), 'All alerts'), ({ rule, where: { queue, since, last_value } }) => {
      const { name, metric, above } = rule;
      const what = sentence`${<strong>{<Foreign>{name}</Foreign>}</strong>}: ${LABELS[metric] ?? metric}`;
      const value = shownAs(metric, valueNow(rule, queue, queues, now) ?? last_value);
      const bound = sentence`above ${shownAs(metric, above)}, since ${<Time at={since} />}`;
      return {
        ...{ key: `alert ${rule.id} ${queue}`, icon: 'alerts', isUrgent: true },
        text: sentence`${what} ${value} in ${<QueueLink name={queue} />}, ${bound}`,
        link: /error_rate|dead/.test(metric)
          ? { to: href('failures', { queue }), text: 'Show the failures' }
          : { to: href('jobs', { queue, sort: 'created_at' }), text: 'Show the jobs' },
      };
    }),
    ...(died > 0 ? [lineOfDead(died, dead.more || dead.total > dead.items.length)] : []),
    ...some(fresh, linkTo('failures', href('failures', { sort: 'first_seen' }), 'All failures'), lineOfGroup),
    ...some(failed, linkTo('schedules', href('schedules'), 'All schedules'), ({ name, next_run_at, last_skipped }) => {
      const why = last_skipped
        ? sentence` ${<Time at={last_skipped.scheduled_at} />}: ${REASONS[last_skipped.reason].toLowerCase()}`
        : sentence`, due ${<Time at={next_run_at} />}`;
      return {
        ...{ key: `schedule ${name}`, icon: 'schedules' },
        text: sentence`The schedule ${<Foreign>{name}</Foreign>} did not fire${why}`,
        link: { to: href('schedules', { open: name }), text: 'Show it' },
      };
    }),
  ];
}

const lineOfDead = (count: number, isMore: boolean): Line => ({
  ...{ key: 'dead', icon: 'discarded', isUrgent: true },
  text: `${counted(count, 'dead letter')}${isMore ? ' or more' : ''} since yesterday`,
  link: { to: href('failures', { state: 'dead', since: '24h' }), text: 'Show the failures' },
});

function lineOfGroup({ fingerprint, type, error, count, sample, first_seen_at: since }: FailureGroup): Line {
  const where = sentence`${<Foreign>{type}</Foreign>}, ${<Time at={since} />}`;
  const message = <Foreign>{brief(sample.message || error.message)}</Foreign>;
  return {
    ...{ key: `group ${fingerprint}`, icon: 'failures' },
    text: sentence`New failure in ${where}, ${counted(count, 'job')}: ${message}`,
    link: { to: href('failures', { group: fingerprint }), text: 'Show it' },
  };
}

const LABELS: Readonly<Record<string, string>> = { ...METRICS, oldest_age: 'Oldest job waits' };

/** The number of a rule as it is now; undefined for a queue that was not loaded. */
function valueNow({ metric }: Alert, name: string, queues: readonly QueueItem[], now: number): number | undefined {
  const queue = queues.find((one) => one.name === name);
  if (!queue) return undefined;
  const { completed, cancelled, discarded, ...open } = queue.counts;
  if (metric === 'depth') return Object.values(open).reduce((sum, count) => sum + count, 0);
  if (metric === 'dead_letters') return queue.dead;
  if (metric === 'error_rate') return queue.error_rate;
  return Math.max(0, now - Date.parse(queue.oldest_available_at ?? new Date(now).toISOString())) / 1_000;
}

/** A policy that skips a fire does what it should: that is not a failure. */
function didNotFire({ enabled, next_run_at, last_run_at, last_skipped: skip }: CronStatus, now: number): boolean {
  if (!enabled) return false;
  if (next_run_at !== null && now - Date.parse(next_run_at) > LATE_MS) return true;
  if (!skip || skip.reason === 'overlap_skip' || skip.reason === 'unique') return false;
  return now - Date.parse(skip.skipped_at) < DAY_MS && !(last_run_at !== null && last_run_at > skip.skipped_at);
}
