/** What is wrong now: alert rules that fire, targets that are not called. */
import { Icon } from '../../components/icon';
import { Foreign, QueueLink, Time } from '../../components/text';
import { api } from '../../core/api';
import { href } from '../../core/base';
import { duration, number, percent } from '../../core/format';
import type { LiveEvent } from '../../core/live';
import { type Resource, useResource } from '../../core/resource';
import type { QueueItem } from '../queues/types';

interface Alert {
  id: string;
  name: string;
  queue: string | null;
  metric: string;
  above: number;
  state: string;
  since: string | null;
  queues: readonly { queue: string; state: string; since: string; last_value: number }[];
}

export interface AlertsHeld {
  rules: Resource<{ items: readonly Alert[] }>;
  onEvents: (events: readonly LiveEvent[]) => void;
}

export function useAlerts(): AlertsHeld {
  const rules = useResource(
    (signal) => api.get<{ items: readonly Alert[] }>('admin/alerts', { per_page: 100 }, signal),
    [],
  );
  const onEvents = (events: readonly LiveEvent[]) => {
    if (events.some(({ event }) => event.startsWith('alert.'))) rules.reload();
  };
  return { rules, onEvents };
}

const METRICS: Readonly<Record<string, [string, (value: number) => string]>> = {
  error_rate: ['Error rate', percent],
  oldest_age: ['Oldest job waits', (seconds) => duration(seconds * 1_000)],
  depth: ['Jobs that have not ended', number],
  dead_letters: ['Dead letters', number],
};

/** The rules that fire, one line for each queue. */
export function Alerts({ of: { rules } }: { of: AlertsHeld }) {
  const firing = (rules.data?.items ?? []).flatMap((rule) =>
    rule.queues.filter(({ state }) => state === 'firing').map((where) => ({ rule, where })),
  );
  return (
    <>
      {firing.map(({ rule, where }) => {
        const [label, format] = METRICS[rule.metric] ?? [rule.metric, number];
        return (
          <div key={`${rule.id} ${where.queue}`} class="banner red text" role="alert">
            <Icon name="bell" size={18} />
            <div>
              <strong>
                <Foreign>{rule.name}</Foreign>
              </strong>
              : {label} {format(where.last_value)} in <QueueLink name={where.queue} />, above {format(rule.above)},
              since <Time at={where.since} />
            </div>
            <a href={href('webhooks', { tab: 'alerts' })}>Alert rules</a>
          </div>
        );
      })}
    </>
  );
}

/** Targets that queues do not call now, because they did not take the last calls. */
export function SuspendedTargets({ queues }: { queues: readonly QueueItem[] }) {
  const byTarget = new Map<string, string[]>();
  for (const { name, suspended_targets } of queues) {
    for (const target of suspended_targets) byTarget.set(target, [...(byTarget.get(target) ?? []), name]);
  }
  return (
    <>
      {[...byTarget].map(([target, names]) => (
        <div key={target} class="banner text" role="status">
          <Icon name="workers" size={18} />
          <div>
            The handler <strong>{target}</strong> does not take calls: jobs wait in{' '}
            {names.length === 1 ? names[0] : `${number(names.length)} queues`}.
          </div>
          <a href={href('workers', { target })}>Look at it</a>
        </div>
      ))}
    </>
  );
}
