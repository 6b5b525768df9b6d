/** Metrics for Prometheus, named as in the protocol. Labels are queues, types and states, never ids or texts. */

import type { Reading } from '../../across/metrics';
import { JOB_STATES } from '../../job/states';
import { countOf, type Histogram } from '../../metrics/histogram';
import { type Counter, histogramOf, type Meter, read } from '../../metrics/meter';
import type { GroupsView } from '../../rpc/groups';
import type { QueueReading } from '../../rpc/metrics';
import { dollarsOf } from './render';

type Labels = Record<string, string>;

/** Counters of each queue and type. The protocol calls a discarded job failed: both names have that number. */
const COUNTED: readonly [name: string, help: string, of: Counter][] = [
  ['enqueued', 'Jobs accepted.', 'enqueued'],
  ['completed', 'Jobs completed.', 'completed'],
  ['failed', 'Jobs discarded.', 'discarded'],
  ['discarded', 'The same as ojs_job_failed_total.', 'discarded'],
  ['retried', 'Failed attempts that are retried.', 'retried'],
  ['cancelled', 'Jobs cancelled.', 'cancelled'],
  ['expired', 'Jobs that expired before they ran.', 'expired'],
];

export type QueueGroups = { queue: string } & Pick<GroupsView, 'groups' | 'waiting' | 'running'>;

/** The sum of the groups that are not shown one by one. */
const OTHER_GROUPS = '_other';

/** @param grouped queues whose groups were counted, too */
export function exposition({ queues, total, workers, at }: Reading, grouped: readonly QueueGroups[] = []): string {
  const out = new Exposition();
  const types = queues.flatMap(({ queue, totals }) =>
    totals.filter(([type]) => type !== '').map(([type, meter]) => ({ labels: { queue, type }, meter })),
  );
  const counted = (of: Counter) => types.map(({ labels, meter }) => [labels, read(meter, of)] as const);
  const ofQueues = (value: (queue: QueueReading) => number) =>
    queues.map((one) => [{ queue: one.queue }, value(one)] as const);
  out.family('ojs_up', 'The server answers.', [[{}, 1]]);
  for (const [name, help, counter] of COUNTED) {
    out.family(`ojs_job_${name}_total`, help, counted(counter));
  }
  out.family('ojs_job_attempts_failed_total', 'Failed attempts, whether retried or not.', counted('failed'));
  out.histogram(
    'ojs_job_duration_seconds',
    'Run time of attempts, by outcome.',
    types.flatMap(({ labels, meter }): [Labels, Histogram][] => [
      [{ ...labels, state: 'completed' }, histogramOf(meter, 'completed')],
      [{ ...labels, state: 'failed' }, histogramOf(meter, 'failed')],
    ]),
  );
  out.histogram(
    'ojs_job_queue_time_seconds',
    'Time that jobs were available before their first attempt.',
    types.map(({ labels, meter }) => [labels, histogramOf(meter, 'queue_time')]),
  );
  out.family(
    'ojs_queue_depth',
    'Jobs in each state.',
    queues.flatMap(({ queue, counts }) => JOB_STATES.map((state) => [{ queue, state }, counts[state]] as const)),
  );
  out.family(
    'ojs_queue_dead_letters',
    'Dead letters, a part of the discarded jobs.',
    ofQueues(({ dead }) => dead),
  );
  out.family(
    'ojs_queue_paused',
    '1 if the queue is paused.',
    ofQueues(({ paused }) => (paused ? 1 : 0)),
  );
  out.family(
    'ojs_queue_oldest_available_age_seconds',
    'Waiting time of the job that became available first; 0 when none waits.',
    ofQueues(({ oldest_available_at: since }) => (since === null ? 0 : Math.max(0, at - since) / 1000)),
  );
  out.family(
    'ojs_push_target_suspended',
    '1 if a target is not called because the last calls failed.',
    queues.flatMap(({ queue, suspended_targets }) =>
      suspended_targets.map((target) => [{ queue, target }, 1] as const),
    ),
  );
  out.family(
    'ojs_queue_rows_written_total',
    'Rows written by a queue, for each type and for itself.',
    queues.flatMap(({ queue, totals }) =>
      totals.map(([type, meter]: [string, Meter]) => [{ queue, type }, read(meter, 'rows')] as const),
    ),
  );
  out.family(
    'ojs_queue_rows_dollars_total',
    'List price of these rows, in US dollars.',
    ofQueues(({ totals }) => dollarsOf(totals.reduce((sum, [, meter]) => sum + read(meter, 'rows'), 0))),
  );
  out.family(
    'ojs_events_dropped_total',
    'Events not sent to followers of a queue because there were too many.',
    ofQueues(({ events_dropped }) => events_dropped),
  );
  if (grouped.length > 0) {
    out.family('ojs_group_waiting', 'Jobs of a group that are available.', ofGroups(grouped, 'waiting'));
    out.family('ojs_group_running', 'Attempts of a group that run.', ofGroups(grouped, 'running'));
  }
  out.family('ojs_queues', 'Queues that exist.', [[{}, total]]);
  out.family('ojs_workers_active', 'Workers that pull and are alive.', [[{}, workers.total - workers.stale]]);
  out.family('ojs_workers_stale', 'Workers without a recent heartbeat.', [[{}, workers.stale]]);
  return out.text();
}

const ofGroups = (grouped: readonly QueueGroups[], member: 'waiting' | 'running'): [Labels, number][] =>
  grouped.flatMap(({ queue, groups, [member]: all }): [Labels, number][] => {
    const shown = groups.map((group): [Labels, number] => [{ queue, group: group.group }, group[member]]);
    const others = all - shown.reduce((sum, [, count]) => sum + count, 0);
    return [...shown, [{ queue, group: OTHER_GROUPS }, others]];
  });

class Exposition {
  private readonly lines: string[] = [];

  /** Counters have names that end in `_total`; all others are gauges. */
  family(name: string, help: string, samples: readonly (readonly [Labels, number])[]): void {
    this.head(name, help, name.endsWith('_total') ? 'counter' : 'gauge');
    for (const [labels, value] of samples) this.sample(name, labels, value);
  }

  /** @param histograms in ms; written in seconds, and empty ones are left out */
  histogram(name: string, help: string, histograms: readonly (readonly [Labels, Histogram])[]): void {
    this.head(name, help, 'histogram');
    for (const [labels, histogram] of histograms) {
      const { bounds, counts, sum } = histogram;
      let below = 0;
      const all = countOf(histogram);
      if (all === 0) continue;
      for (const [index, bound] of bounds.entries()) {
        below += counts[index] ?? 0;
        this.sample(`${name}_bucket`, { ...labels, le: String(bound / 1000) }, below);
      }
      this.sample(`${name}_bucket`, { ...labels, le: '+Inf' }, all);
      this.sample(`${name}_sum`, labels, sum / 1000);
      this.sample(`${name}_count`, labels, all);
    }
  }

  text(): string {
    return `${this.lines.join('\n')}\n`;
  }

  private head(name: string, help: string, kind: string): void {
    this.lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`);
  }

  private sample(name: string, labels: Labels, value: number): void {
    const written = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
    this.lines.push(`${name}${written.length === 0 ? '' : `{${written.join(',')}}`} ${value}`);
  }
}

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
