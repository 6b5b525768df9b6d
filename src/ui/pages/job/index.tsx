/** One job: what it is, why it waits, each attempt, what it said, what it carries, and what can be done with it. */
import type { ComponentChildren } from 'preact';
import type { JobLogLine } from '../../../job/wire';
import { StateBadge } from '../../components/badge';
import { Empty, Failure, Loaded, PageHead, Section, Skeleton } from '../../components/page';
import { Bar } from '../../components/progress';
import { Copy, Foreign, JobLink, QueueLink, Time } from '../../components/text';
import { api, type Resource, useGet, useResource } from '../../core/api';
import { number, percent } from '../../core/format';
import { type LiveEvent, useLive } from '../../core/live';
import { API, href, query, segment } from '../../core/router';
import { can, session } from '../../core/session';
import { Actions } from './actions';
import { EditDrawer } from './edit';
import { JobFacts } from './facts';
import { Log } from './log';
import { Trace } from './trace';
import type { Job } from './types';
import { Waiting } from './waiting';
import './page.css';
import type { RetryPreview } from '../../../contract/system';
import { Json, JsonSection } from '../../components/json';
import { RetryCurve } from '../../components/retry-curve';

/** Attempts that are foreseen at most. */
const MOST = 25;

function RetryPolicy({ of: job }: { of: Job }) {
  const { retry_policy: policy = {} } = job;
  const attempts = Math.min(MOST, Math.max(1, job.max_attempts - 1));
  const given = { ...(job.retry as object | undefined), max_attempts: job.max_attempts };
  const preview = useResource(
    (signal) =>
      api.post<RetryPreview>('admin/retry/preview', { policy: policyOf(policy, given), attempts }, { signal }),
    [JSON.stringify(policy), attempts],
  );
  return (
    <>
      {job.max_attempts > 1 ? (
        <Loaded of={preview}>{({ delays }) => <RetryCurve delays={delays} done={job.attempt} />}</Loaded>
      ) : (
        <p class="faint">It has one attempt.</p>
      )}
      <Json value={policy} label="retry policy" open={1} />
    </>
  );
}

/** The effective policy if the server accepts it back, else the job's own as an approximation. */
function policyOf(policy: object, given: object): object {
  return Object.keys(policy).length > 0 ? policy : given;
}

function Payload({ of: job }: { of: Job }) {
  const { args, meta, result, checkpoint, progress_data: data } = job;
  return (
    <>
      <JsonSection title="Arguments" value={args} open={3} />
      <JsonSection title="Result" value={result} />
      {Object.keys(meta).length > 0 && <JsonSection title="Meta" value={meta} />}
      <JsonSection title="Progress data" value={data} />
      {checkpoint && (
        <Section title="Checkpoint" actions={<Saved sequence={checkpoint.sequence} at={checkpoint.created_at} />}>
          <Json value={checkpoint.state ?? checkpoint} label="checkpoint" open={2} />
        </Section>
      )}
    </>
  );
}

function Saved({ sequence, at }: { sequence: number; at: string }) {
  return (
    <span class="faint">
      no. {number(sequence)}, <Time at={at} />
    </span>
  );
}

export default function JobPage({ params: { id = '' } }: { params: { id?: string } }) {
  const job = useGet<Job>(`admin/jobs/${segment(id)}`, { timeline: true });
  useLive(`job:${id}`, { onEvents: (events) => follow(id, job, events), onGap: job.reload });
  if (job.error?.status === 404 && job.error.code === 'not_found')
    return <Gone id={id} wasHere={job.data !== undefined} />;
  if (job.error && !job.data) {
    return (
      <>
        <PageHead title="Job" up={{ href: href('jobs'), text: 'Jobs' }} />
        <Failure error={job.error} retry={job.reload} />
      </>
    );
  }
  return (
    <Loaded of={job} loading={<Skeleton rows={8} height={60} />}>
      {(found) => <Shown job={found} reload={job.reload} />}
    </Loaded>
  );
}

/** What a handler says while it runs. */
const SAID: readonly string[] = ['job.progress', 'job.log'];

/** Progress is sent whole, and a log is read alone; anything else that happens changes more than its event says. */
function follow(id: string, job: Resource<Job>, events: readonly LiveEvent[]): void {
  if (events.some(({ event }) => !SAID.includes(event))) {
    job.reload();
    return;
  }
  const { progress, message, data } = events.findLast(({ event }) => event === 'job.progress')?.data ?? {};
  job.update((held) => ({
    ...held,
    ...(typeof progress === 'number' && { progress: progress / 100 }),
    ...(typeof message === 'string' && { progress_message: message }),
    ...(data !== undefined && { progress_data: data }),
  }));
  if (events.every(({ event }) => event !== 'job.log')) return;
  api
    .get<{ lines: JobLogLine[] }>(`jobs/${segment(id)}/log`)
    .then(({ lines }) => job.update((held) => ({ ...held, log: lines })), job.reload);
}

function Gone({ id, wasHere }: { id: string; wasHere: boolean }) {
  return (
    <>
      <PageHead title="Job" up={{ href: href('jobs'), text: 'Jobs' }} />
      <Empty icon="search" title={wasHere ? 'This job no longer exists' : 'Job not found'}>
        <p>
          <span class="mono">
            <Foreign>{id}</Foreign>
          </span>
        </p>
        <p>Ended jobs are kept for the retention of their queue, unless they are deleted.</p>
        <a href={href('jobs', { q: `"${id}"` })}>Jobs that mention it</a>
      </Empty>
    </>
  );
}

function Shown({ job, reload }: { job: Job; reload: () => void }) {
  const open = query('open');
  return (
    <div class="job">
      <PageHead
        title={<Foreign>{job.type}</Foreign>}
        name={job.type}
        up={{ href: href('jobs'), text: 'Jobs' }}
        sub={<Identity of={job} />}
      >
        <Actions of={job} reload={reload} />
      </PageHead>
      {session.value?.redacts && <p class="note faint">Values that are hidden from your key appear as [redacted].</p>}
      <Waiting of={job} reload={reload} />
      {job.state === 'active' && job.progress !== undefined && <Progress of={job} />}
      <JobFacts of={job} />
      <div class="columns">
        <div>
          <Section title="Trace">
            <div class="card">
              <Trace of={job} reload={reload} />
            </div>
          </Section>
          <Section title="Log">
            <div class="card">
              <Log of={job.log} />
            </div>
          </Section>
        </div>
        <div>
          <Payload of={job} />
          <Relatives of={job} />
          <Section title="Retries">
            <RetryPolicy of={job} />
          </Section>
        </div>
      </div>
      {(open === 'edit' || open === 'clone') && can('admin:write') && (
        <EditDrawer key={open} of={job} kind={open} reload={reload} />
      )}
    </div>
  );
}

function Identity({ of: { id, state, queue, dead_letter: dead } }: { of: Job }) {
  return (
    <span class="identity">
      <StateBadge state={state} />
      {dead && <span class="faint">dead letter</span>}
      <span>
        in <QueueLink name={queue} />
      </span>
      <span class="id mono">
        {id}
        <Copy text={id} label="id" />
      </span>
      <span class="id faint">
        curl
        <Copy text={curlOf(id)} label="curl command" />
      </span>
    </span>
  );
}

function curlOf(id: string): string {
  const key = session.value?.open ? '' : ` -H "Authorization: Bearer $TOCSIN_API_KEY"`;
  return `curl -s '${new URL(`admin/jobs/${id}?timeline=true`, API)}'${key}`;
}

function Progress({ of: { progress = 0, progress_message: message } }: { of: Job }) {
  return (
    <div class="progress-of" role="status">
      <Bar value={progress} label="Progress" />
      <strong>{percent(progress)}</strong>
      {message && <Foreign>{message}</Foreign>}
    </div>
  );
}

/** The jobs around this one. */
function Relatives({ of: { id, parent, children } }: { of: Job }) {
  if (!parent && children.items.length === 0) return null;
  return (
    <Section title="Related jobs">
      <ul class="card relatives">
        {parent && <Relative word="Parent" of={parent} />}
        {children.items.map((child) => (
          <Relative key={child.id} word="Child" of={child} />
        ))}
        {children.more && (
          <li>
            <a href={href('jobs', { parent: id })}>All children</a>
          </li>
        )}
      </ul>
    </Section>
  );
}

function Relative({ word, of: job }: { word: ComponentChildren; of: NonNullable<Job['parent']> }) {
  return (
    <li>
      <span class="faint">{word}</span>
      {job.state ? <StateBadge state={job.state} /> : <span class="faint">gone</span>}
      {job.type && <Foreign>{job.type}</Foreign>}
      <JobLink id={job.id} />
    </li>
  );
}
