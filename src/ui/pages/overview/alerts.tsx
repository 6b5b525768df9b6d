/** What is wrong now: alert rules that fire, targets that are not called. */
import type { Alert } from '../../../contract/alerts';
import { Icon } from '../../components/icon';
import { Foreign, QueueLink, Time } from '../../components/text';
import { href } from '../../core/base';
import { number } from '../../core/format';
import type { LiveEvent } from '../../core/live';
import { type Resource, useGet } from '../../core/resource';
import type { QueueItem } from '../queues/types';
import { ALERTS, type List, METRICS, shownAs } from '../webhooks/types';

export interface AlertsHeld {
  rules: Resource<List<Alert>>;
  onEvents: (events: readonly LiveEvent[]) => void;
}

export function useAlerts(): AlertsHeld {
  const rules = useGet<List<Alert>>(ALERTS, { per_page: 100 });
  const onEvents = (events: readonly LiveEvent[]) => {
    if (events.some(({ event }) => event.startsWith('alert.'))) rules.reload();
  };
  return { rules, onEvents };
}

/** What each metric says where its number stands after it. */
const LABELS: Readonly<Record<string, string>> = { ...METRICS, oldest_age: 'Oldest job waits' };

export function Alerts({ of: { rules } }: { of: AlertsHeld }) {
  const firing = (rules.data?.items ?? []).flatMap((rule) =>
    rule.queues.filter(({ state }) => state === 'firing').map((where) => ({ rule, where })),
  );
  return (
    <>
      {firing.map(({ rule, where }) => (
        <div key={`${rule.id} ${where.queue}`} class="banner red text" role="alert">
          <Icon name="bell" size={18} />
          <div>
            <strong>
              <Foreign>{rule.name}</Foreign>
            </strong>
            : {LABELS[rule.metric] ?? rule.metric} {shownAs(rule.metric, where.last_value)} in{' '}
            <QueueLink name={where.queue} />, above {shownAs(rule.metric, rule.above)}, since <Time at={where.since} />
          </div>
          <a href={href('webhooks', { tab: 'alerts' })}>Alert rules</a>
        </div>
      ))}
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
            The handler <strong>{target}</strong> does not accept calls: jobs wait in{' '}
            {names.length === 1 ? names[0] : `${number(names.length)} queues`}.
          </div>
          <a href={href('workers', { target })}>Show it</a>
        </div>
      ))}
    </>
  );
}
