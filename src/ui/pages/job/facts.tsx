import type { ComponentChildren } from 'preact';
import { type OptionsThat, optionsThat } from '../../../job/options';
import { Facts } from '../../components/page';
import { Duration, Foreign, JobLink, Link, StateBadge, sentence, Time } from '../../components/text';
import { isHidden } from '../../core/api';
import { number, span } from '../../core/format';
import { href, segment } from '../../core/router';
import { isAsleep, type Job } from './types';

export function JobFacts({ of: job }: { of: Job }) {
  const { workflow, cron_name: cron, meta, fingerprint, coalesced } = job;
  const ended = job.completed_at ?? job.cancelled_at ?? job.discarded_at;
  const time = (at: string | undefined): ComponentChildren => at && <Time at={at} />;
  const entries: (readonly [string, ComponentChildren])[] = [
    ['Attempts', `${number(job.attempt + Number(isAsleep(job)))} of ${number(job.max_attempts)}`],
    ['Priority', number(job.priority)],
    ['Created', time(job.created_at)],
    ['Scheduled', job.state === 'scheduled' && !isAsleep(job) ? time(job.scheduled_at) : undefined],
    // Those that a unique policy has made one job of.
    ['Stands for', coalesced && sentence`${number(coalesced.calls)} enqueues since ${<Time at={coalesced.since} />}`],
    ['Next attempt', time(job.next_attempt_at)],
    [job.first_started_at ? 'First run' : 'Started', time(job.first_started_at ?? job.started_at)],
    ['Last run', job.first_started_at && time(job.started_at)],
    ['Completed', job.state === 'completed' && time(job.completed_at)],
    ['Cancelled', time(job.cancelled_at)],
    ['Discarded', time(job.discarded_at)],
    ['Total time', ended !== undefined && <Duration ms={Date.parse(ended) - Date.parse(job.created_at)} />],
    ['Because', job.discard_reason?.replaceAll('_', ' ')],
    ['Not reached', job.drift && <Foreign>{job.drift.join(', ')}</Foreign>],
    ['Expires', time(job.expires_at)],
    ['Runs on', job.worker_id && <Link to={href('workers', { worker: job.worker_id })} text={job.worker_id} />],
    ['Heartbeat', time(job.last_heartbeat_at)],
    ['Lease ends', time(job.lease_expires_at)],
    ...OPTIONS.map((name) => [LABELS[name] ?? labelOf(name), optionOf(job, name)] as const),
    [
      'Workflow',
      workflow && <a href={href(`workflows/${segment(workflow.id)}`)}>step {number(workflow.step)} of a workflow</a>,
    ],
    ['Schedule', cron && <Link to={href('schedules', { open: cron })} text={cron} />],
    ['Cloned from', typeof meta.cloned_from === 'string' && <JobLink id={meta.cloned_from} />],
    ['Undone by', job.undo && <JobLink id={job.undo.job_id} />],
    ['Undo job', job.undo?.state && <StateBadge state={job.undo.state} />],
    ['Undoes', typeof meta.undo_of === 'string' && <JobLink id={meta.undo_of} />],
    ['Failure group', fingerprint && <a href={href('failures', { group: fingerprint })}>Same failures</a>],
  ];
  return (
    <div class="card">
      <Facts of={entries} />
    </div>
  );
}

/** All options that a job shows, but those of other protocols: here `metadata` has its times. */
type ShownOption = Exclude<OptionsThat<'shown'>, OptionsThat<'foreign'>>;
const OPTIONS = optionsThat('shown').filter((name): name is ShownOption => name !== 'metadata');

const LABELS: { readonly [Name in ShownOption]?: string } = {
  timeout_ms: 'Time limit',
  visibility_timeout_ms: 'Lease',
  target_url: 'Sent to',
  rate_limit: 'Counts under',
  unique: 'Unique by',
};

/** `visibility_timeout_ms` → `Visibility timeout` */
export function labelOf(name: string): string {
  const words = name.replace(/_(ms|at|url)$/, '').replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What an option is shown as, by its kind; undefined: the job has none. */
function optionOf(job: Job, name: ShownOption): ComponentChildren {
  const value: unknown = job[name];
  if (value === undefined) return undefined;
  switch (name) {
    case 'tags':
      return job.tags && job.tags.length > 0 && <Tags of={job.tags} />;
    case 'unique':
      return <UniqueBy of={value} />;
    case 'rate_limit':
      return <LimitKey of={job} />;
    default:
      if (typeof value === 'number' && name.endsWith('_ms')) return <Duration ms={value} />;
      return <Foreign>{textOf(value)}</Foreign>;
  }
}

/** `{ completed: '2d', dead_letter: '9d' }` → `completed 2d, dead letter 9d`; what is nested stays JSON. */
export function textOf(value: unknown): string {
  if (!isRecord(value) || Array.isArray(value)) return String(value ?? 'none');
  const entries = Object.entries(value);
  if (entries.some(([, member]) => isRecord(member))) return JSON.stringify(value);
  return entries.map(([name, member]) => `${name.replaceAll('_', ' ')} ${member}`).join(', ');
}

/** Without a key of its own a job counts under its queue's name. */
function LimitKey({ of: { rate_limit: limit, queue } }: { of: Job }) {
  const key = isRecord(limit) && typeof limit.key === 'string' ? limit.key : queue;
  return <Link to={href('limits', { key })} text={key} />;
}

const Tags = ({ of: tags }: { of: readonly string[] }) => (
  <span class="chips tags">
    {tags.map((tag) => (
      <Link key={tag} class="chip" to={isHidden(tag) ? undefined : href('jobs', { tag })} text={tag} />
    ))}
  </span>
);

function UniqueBy({ of: unique }: { of: unknown }) {
  const { keys, period } = isRecord(unique) ? unique : {};
  const by = Array.isArray(keys) ? keys.join(', ') : 'type, arguments';
  return <Foreign>{period === undefined ? by : `${by} for ${span(String(period))}`}</Foreign>;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
