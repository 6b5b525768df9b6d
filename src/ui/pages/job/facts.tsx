/** The job's times, its place, and what holds it. */
import type { ComponentChildren } from 'preact';
import { Facts } from '../../components/page';
import { Duration, Foreign, Time } from '../../components/text';
import { href, segment } from '../../core/base';
import { number, span } from '../../core/format';
import { isHidden } from '../../core/session';
import type { Job } from './types';

export function JobFacts({ of: job }: { of: Job }) {
  const { workflow, cron_name: cron, rate_limit: limit, tags = [], meta, fingerprint } = job;
  const ended = job.completed_at ?? job.cancelled_at ?? job.discarded_at;
  const time = (at: string | undefined): ComponentChildren => at && <Time at={at} />;
  const entries: (readonly [string, ComponentChildren])[] = [
    ['Attempts', `${number(job.attempt)} of ${number(job.max_attempts)}`],
    ['Priority', number(job.priority)],
    ['Created', time(job.created_at)],
    ['Scheduled', job.state === 'scheduled' ? time(job.scheduled_at) : undefined],
    ['Next attempt', time(job.next_attempt_at)],
    [job.first_started_at ? 'First run' : 'Started', time(job.first_started_at ?? job.started_at)],
    ['Last run', job.first_started_at && time(job.started_at)],
    ['Completed', job.state === 'completed' && time(job.completed_at)],
    ['Cancelled', time(job.cancelled_at)],
    ['Discarded', time(job.discarded_at)],
    ['Total time', ended !== undefined && <Duration ms={Date.parse(ended) - Date.parse(job.created_at)} />],
    ['Because', job.discard_reason],
    ['Expires', time(job.expires_at)],
    ['Time limit', job.timeout_ms !== undefined && <Duration ms={job.timeout_ms} />],
    [
      'Runs on',
      job.worker_id && (
        <a href={href('workers', { worker: job.worker_id })}>
          <Foreign>{job.worker_id}</Foreign>
        </a>
      ),
    ],
    ['Heartbeat', time(job.last_heartbeat_at)],
    ['Lease ends', time(job.lease_expires_at)],
    ['Sent to', job.target_url && <Foreign>{job.target_url}</Foreign>],
    ['Tags', tags.length > 0 && <Tags of={tags} />],
    [
      'Workflow',
      workflow && <a href={href(`workflows/${segment(workflow.id)}`)}>step {number(workflow.step)} of a workflow</a>,
    ],
    [
      'Schedule',
      cron && (
        <a href={href('schedules', { open: cron })}>
          <Foreign>{cron}</Foreign>
        </a>
      ),
    ],
    [
      'Counts under',
      limit?.key && (
        <a href={href('limits', { key: limit.key })}>
          <Foreign>{limit.key}</Foreign>
        </a>
      ),
    ],
    ['Unique by', job.unique !== undefined && <UniqueBy of={job.unique} />],
    [
      'Cloned from',
      typeof meta.cloned_from === 'string' && (
        <a href={href(`jobs/${segment(meta.cloned_from)}`)}>{meta.cloned_from.slice(-6)}</a>
      ),
    ],
    ['Failure group', fingerprint && <a href={href('failures', { group: fingerprint })}>Same failures</a>],
  ];
  return (
    <div class="card">
      <Facts of={entries} />
    </div>
  );
}

function Tags({ of: tags }: { of: readonly string[] }) {
  return (
    <span class="chips tags">
      {tags.map((tag) => (
        <a key={tag} class="chip" {...(!isHidden(tag) && { href: href('jobs', { tag }) })}>
          <Foreign>{tag}</Foreign>
        </a>
      ))}
    </span>
  );
}

function UniqueBy({ of: unique }: { of: unknown }) {
  const { keys, period } = (typeof unique === 'object' && unique !== null ? unique : {}) as Record<string, unknown>;
  const by = Array.isArray(keys) ? keys.join(', ') : 'type, arguments';
  return <Foreign>{period === undefined ? by : `${by} for ${span(String(period))}`}</Foreign>;
}
