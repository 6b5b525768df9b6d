/** One job: what it is, why it waits, each attempt, what it said, what it carries, and what can be done with it. */
import type { ComponentChildren } from 'preact';
import { Empty, Facts, Failure, Loaded, PageHead, Section, Skeleton } from '../../components/page';
import { Badge, Bar, Copy, Foreign, JobLink, QueueLink, StateBadge, Time, type Tone } from '../../components/text';
import { api, can, curlKey, type Resource, session, useGet, useResource } from '../../core/api';
import { number, percent, span, timeOfDay } from '../../core/format';
import { type LiveEvent, useLive } from '../../core/live';
import { API, href, openAside, query, segment } from '../../core/router';
import { Actions } from './actions';
import { JobFacts, labelOf, textOf } from './facts';
import { Output } from './output';
import { Trace } from './trace';
import { Waiting } from './waiting';
import './page.css';
import type { RetryPreview } from '../../../contract/system';
import type { JobLogLine } from '../../../job/wire';
import { FormDialog, JsonField, PriorityField, TextField, textIn } from '../../components/form';
import { Json, JsonBrief, JsonSection } from '../../components/json';
import { SelectFilter } from '../../components/list';
import { RetryCurve } from '../../components/retry-curve';
import { parseExact, stringifyExact } from '../../core/exact';
import type { Job } from './types';

const LEVELS: Readonly<Record<JobLogLine['level'], Tone>> = {
  debug: 'neutral',
  info: 'blue',
  warn: 'amber',
  error: 'red',
};

/** Log lines; `?level=` leaves out those below. */
function Log({ of: lines }: { of: readonly JobLogLine[] }) {
  const names = Object.keys(LEVELS) as JobLogLine['level'][];
  const least = names.indexOf(query('level') as JobLogLine['level']);
  const shown = lines.filter(({ level }) => names.indexOf(level) >= least);
  if (lines.length === 0) return <p class="faint">No log lines.</p>;
  return (
    <>
      <div class="log-head">
        <SelectFilter
          name="level"
          label="Minimum level"
          all="All levels"
          options={Object.fromEntries(names.slice(1).map((name) => [name, `${name} and above`]))}
          replace
        />
        <Copy text={shown.map(lineText).join('\n')} label="log" />
      </div>
      <ol class="log" aria-live="polite">
        {shown.map((line, index) => (
          <Line key={`${line.at} ${index}`} of={line} />
        ))}
        {shown.length === 0 && <li class="faint">No line has this level.</li>}
      </ol>
    </>
  );
}

const Line = ({ of: { at, level, message, fields } }: { of: JobLogLine }) => (
  <li class={level}>
    <time dateTime={new Date(at).toISOString()}>{timeOfDay(at)}</time>
    <Badge look={[LEVELS[level] ?? 'neutral']} text={level} />
    <span>
      <Foreign>{message}</Foreign>
      {fields && (
        <>
          {' '}
          <JsonBrief value={fields} label="fields" />
        </>
      )}
    </span>
  </li>
);

const lineText = ({ at, level, message, fields }: JobLogLine): string =>
  `${new Date(at).toISOString()} ${level} ${message}${fields ? ` ${JSON.stringify(fields)}` : ''}`;

/** Stands where the server shows this key nothing. */
const HIDDEN = '"[redacted]"';

function EditDrawer({ of: job, kind, reload }: { of: Job; kind: 'edit' | 'clone'; reload: () => void }) {
  const before = { args: stringifyExact(job.args), meta: stringifyExact(job.meta) };
  const isHidden = session.value?.redacts === true && `${before.args}${before.meta}`.includes(HIDDEN);
  const isEdit = kind === 'edit';

  const submit = async (form: FormData) => {
    const priority = textIn(form, 'priority');
    const queue = textIn(form, 'queue');
    // What was not touched is left out: the server has it, also where this key may not see it.
    const touched = Object.entries(before).filter(([name, held]) => textIn(form, name) !== held);
    const changed = Object.fromEntries(touched.map(([name]) => [name, parseExact(textIn(form, name))]));
    const other = priority !== '' && Number(priority) !== job.priority && { priority: Number(priority) };
    const path = `admin/jobs/${segment(job.id)}`;
    if (isEdit) {
      await api.post(`${path}/retry`, { ...changed, ...other });
      return 'It runs again.';
    }
    const { job: made } = await api.post<{ job: { id: string } }>(`${path}/clone`, {
      ...changed,
      ...(queue !== job.queue && { queue }),
      ...(other && { options: other }),
    });
    return { text: 'A copy of the job was enqueued.', to: href(`jobs/${made.id}`) };
  };
  const intro = (
    <>
      <p class="faint">
        {isEdit
          ? 'It keeps its id and its history; attempts restart at 1.'
          : 'A new job with its own id. This one does not change.'}
      </p>
      {isHidden && <p class="note amber">Parts are hidden from your key. What you do not edit here does not change.</p>}
    </>
  );
  return (
    <FormDialog
      {...{ drawer: true, title: isEdit ? 'Edit and retry' : 'Clone', intro, values: { ...before, queue: job.queue } }}
      action={isEdit ? 'Retry' : 'Enqueue'}
      onSubmit={submit}
      onDone={isEdit ? reload : undefined}
      onClose={() => openAside({ open: null })}
    >
      <JsonField name="args" label="Arguments" rows={10} />
      <JsonField name="meta" label="Meta" rows={5} />
      {!isEdit && <TextField name="queue" label="Queue" class="mono" required />}
      <PriorityField at={['priority', 'options.priority']} value={job.priority} />
    </FormDialog>
  );
}

const MOST = 25;

function RetryPolicy({ of: job }: { of: Job }) {
  // The job's own approximates the effective policy where that is too large to be sent.
  const { retry_policy: policy = { ...(job.retry as object | undefined), max_attempts: job.max_attempts } } = job;
  const attempts = Math.min(MOST, Math.max(1, job.max_attempts - 1));
  const preview = useResource(
    (signal) => api.post<RetryPreview>('admin/retry/preview', { policy, attempts }, { signal }),
    [JSON.stringify(policy), attempts],
  );
  return (
    <>
      {job.max_attempts > 1 && (
        <Loaded of={preview}>{({ delays }) => <RetryCurve delays={delays} done={job.attempt} />}</Loaded>
      )}
      <div class="card">
        <Facts of={Object.entries(policy).map(([name, value]) => [labelOf(name), span(textOf(value)) || undefined])} />
      </div>
    </>
  );
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
        <Section
          title="Checkpoint"
          actions={
            <span class="faint">
              no. {number(checkpoint.sequence)}, <Time at={checkpoint.created_at} />
            </span>
          }
        >
          <Json value={checkpoint.state ?? checkpoint} label="checkpoint" open={2} />
        </Section>
      )}
    </>
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

const Gone = ({ id, wasHere }: { id: string; wasHere: boolean }) => (
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
          <Output of={job} />
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

const Identity = ({ of: { id, state, queue, dead_letter: dead } }: { of: Job }) => (
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

const curlOf = (id: string) => `curl -s '${new URL(`admin/jobs/${id}?timeline=true`, API)}'${curlKey()}`;

const Progress = ({ of: { progress = 0, progress_message: message } }: { of: Job }) => (
  <div class="progress-of" role="status">
    <Bar value={progress} label="Progress" />
    <strong>{percent(progress)}</strong>
    {message && <Foreign>{message}</Foreign>}
  </div>
);

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

const Relative = ({ word, of: job }: { word: ComponentChildren; of: NonNullable<Job['parent']> }) => (
  <li>
    <span class="faint">{word}</span>
    {job.state ? <StateBadge state={job.state} /> : <span class="faint">gone</span>}
    {job.type && <Foreign>{job.type}</Foreign>}
    <JobLink id={job.id} />
  </li>
);
