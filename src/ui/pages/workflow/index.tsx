/** One workflow: its graph, how far it is, which way through it takes longest. */
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { WorkflowStatus, WorkflowStep } from '../../../contract/workflows';
import { Json, JsonSection } from '../../components/json';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, LiveRefused, Loaded, openTab, PageHead, Section, Stat, Tabs } from '../../components/page';
import { type Column, column, DataTable } from '../../components/table';
import { Button, Duration, Foreign, Id, JobLink, Link, QueueLink, Time } from '../../components/text';
import { api, can, type Resource, useGet, useResource } from '../../core/api';
import { useNow } from '../../core/clock';
import { counted } from '../../core/format';
import { useKeys } from '../../core/keyboard';
import { type LiveEvent, useLive } from '../../core/live';
import { aside, href, query, segment, withQuery } from '../../core/router';
import { cancelWorkflow, retryJobs } from './actions';
import { Drawing } from './drawing';
import { criticalPath, graphOf, MOST_NODES, tookOf } from './graph';
import { Done, endOf, lastedOf, WorkflowState } from './state';
import './page.css';

interface Progress {
  steps: readonly { job_id: string | null; progress: number }[];
}

interface Shown {
  workflow: WorkflowStatus;
  /** Of jobs that run, in percent. */
  progress: ReadonlyMap<string, number>;
}

export default function WorkflowPage({ params: { id = '' } }: { params: Readonly<Record<string, string>> }) {
  const path = `workflows/${segment(id)}`;
  const one = useResource<Shown>(
    async (signal) => {
      const workflow = await api.get<WorkflowStatus>(path, undefined, signal);
      if (workflow.state !== 'running') return { workflow, progress: new Map() };
      const { steps } = await api.get<Progress>(`${path}/progress`, undefined, signal);
      return { workflow, progress: new Map(steps.map(({ job_id, progress }) => [job_id ?? '', progress * 100])) };
    },
    [id],
  );
  const leaves = useMemo(() => (one.data ? leavesOf(one.data.workflow) : []), [one.data]);
  useUpdates(one, leaves, id);
  const failed = leaves.flatMap(({ step }) => (step.state === 'failed' && step.job_id ? [step.job_id] : []));
  const { workflow } = one.data ?? {};
  const cancel = async () => workflow && (await cancelWorkflow(workflow)) && one.reload();
  const retry = async () => (await retryJobs(failed)) && one.reload();
  const mayCancel = can('data:write') && workflow?.state === 'running';
  const mayRetry = can('data:write') && workflow?.state === 'failed' && failed.length > 0;
  useKeys('Workflow', {
    ...(mayCancel && { c: { label: 'Cancel', run: cancel } }),
    ...(mayRetry && { r: { label: 'Retry failed steps', run: retry } }),
  });
  return (
    <div class="workflow-page">
      <PageHead
        title={workflow?.name ? <bdi>{workflow.name}</bdi> : 'Workflow'}
        name={workflow?.name ?? 'Workflow'}
        up={{ href: href('workflows'), text: 'Workflows' }}
        sub={<Id text={id} />}
      >
        {mayCancel && <Button label="Cancel" class="danger" onClick={cancel} />}
        {mayRetry && <Button label="Retry failed steps" onClick={retry} />}
      </PageHead>
      <LiveRefused />
      <Loaded of={one}>{(shown) => <Body of={shown} leaves={leaves} />}</Loaded>
    </div>
  );
}

const TABS = [
  { id: 'graph', label: 'Graph' },
  { id: 'steps', label: 'Steps' },
];

function Body({ of: { workflow, progress }, leaves }: { of: Shown; leaves: readonly Leaf[] }) {
  const now = useNow();
  const nodes = useMemo(() => graphOf(workflow), [workflow]);
  const end = endOf(workflow);
  const at = end ? Date.parse(end) : now;
  const { keys, ms } = criticalPath(nodes, at);
  const { metadata: counts, created_at } = workflow;
  const jobs = keys.filter((key) => !key.endsWith('/')).length;
  const tab = openTab(TABS);
  return (
    <>
      <div class="stats">
        <Stat label="State" value={<WorkflowState state={workflow.state} />} />
        <Stat
          label="Jobs completed"
          value={<Done done={counts.completed_count} failed={counts.failed_count} total={counts.job_count} />}
        />
        <Stat label="Started" value={<Time at={created_at} />} />
        <Stat label={end ? 'Took' : 'Duration'} value={<Duration ms={lastedOf(workflow, now)} />} />
        <Stat
          label="Critical path"
          value={<Duration ms={ms > 0 ? ms : null} />}
          sub={ms > 0 && counted(jobs, 'step')}
        />
      </div>
      <div class="after-stats">
        <Tabs tabs={TABS.map((one) => (one.id === 'steps' ? { ...one, count: leaves.length } : one))} />
        {tab === 'steps' ? (
          <Steps of={leaves} now={at} />
        ) : nodes.length > MOST_NODES ? (
          <Empty icon="workflows" title={`${nodes.length} nodes are too many to draw`}>
            <a href={withQuery({ tab: 'steps' })}>Show them as a list</a>
          </Empty>
        ) : (
          <>
            <Drawing nodes={nodes} critical={new Set(keys)} progress={progress} now={at} />
            {keys.length > 1 && (
              <p class="faint legend">
                <i class="critical" /> critical path: the longest chain of steps
              </p>
            )}
          </>
        )}
      </div>
    </>
  );
}

/** The workflow is notified of a job's end a moment after its queue. */
const SETTLE_MS = 1_000;

/** Starts and progress come with the events; what follows from an end is asked of the workflow. */
function useUpdates(one: Resource<Shown>, leaves: readonly Leaf[], id: string): void {
  const ids = new Set(leaves.flatMap(({ step }) => step.job_id ?? []));
  const queues = new Set(leaves.flatMap(({ step }) => step.queue ?? []));
  const [queue] = queues;
  const later = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(later.current), []);
  const isOver = one.data !== undefined && one.data.workflow.state !== 'running';
  const channel = one.data === undefined || isOver ? undefined : queues.size === 1 ? `queue:${queue}` : 'all';
  useLive(channel, {
    onEvents: (events) => {
      const own = events.filter(({ data }) => data.workflow_id === id || ids.has(String(data.job_id)));
      if (own.length === 0) return;
      one.update((shown) => own.reduce(changed, shown));
      if (!own.some(({ event }) => /^workflow\.|completed|discarded|cancelled|expired/.test(event))) return;
      one.reload();
      clearTimeout(later.current);
      later.current = setTimeout(one.reload, SETTLE_MS);
    },
    onGap: one.reload,
  });
}

const STATES_AFTER: Readonly<Record<string, WorkflowStep['state']>> = {
  'job.started': 'active',
  'job.retrying': 'pending',
};

function changed(shown: Shown, { event, data }: LiveEvent): Shown {
  const job = String(data.job_id);
  if (event === 'job.progress') {
    return { ...shown, progress: new Map(shown.progress).set(job, Number(data.progress)) };
  }
  const state = STATES_AFTER[event];
  if (!state) return shown;
  const change = (step: WorkflowStep): WorkflowStep => ({
    ...step,
    ...(step.job_id === job && { state }),
    ...(step.steps && { steps: step.steps.map(change) }),
  });
  return { ...shown, workflow: { ...shown.workflow, steps: shown.workflow.steps.map(change) } };
}

/** A job of the workflow, with the ids of the steps around it. */
interface Leaf {
  path: string;
  step: WorkflowStep;
  called?: string;
}

/** All jobs, also those of callbacks, in the order in which they are written. */
function leavesOf({ steps, callbacks }: Pick<WorkflowStatus, 'steps' | 'callbacks'>, within = ''): Leaf[] {
  const inner = (step: WorkflowStep): Leaf[] => {
    const path = within + step.id;
    if (!step.steps) return [{ path, step }];
    return leavesOf({ steps: step.steps, ...(step.callbacks && { callbacks: step.callbacks }) }, `${path} / `);
  };
  const called = Object.entries(callbacks ?? {}).map(([name, step]) => {
    return { path: `${within}${name}`, step, called: name.replace('_', ' ') };
  });
  return [...steps.flatMap(inner), ...called];
}

function Steps({ of: leaves, now }: { of: readonly Leaf[]; now: number }) {
  const open = leaves.find(({ path }) => path === query('open'));
  return (
    <>
      <DataTable
        label="Steps"
        rows={leaves}
        columns={columns(now)}
        rowKey={({ path }) => path}
        rowHref={({ path }) => aside({ open: path })}
        empty={<Empty icon="workflows" title="No steps" />}
      />
      {open && <StepDrawer of={open} />}
    </>
  );
}

const columns = (now: number): Column<Leaf>[] => [
  column('step', 'Step', { sort: ({ path }) => path, under: (leaf) => leaf.called && 'callback' }, ({ path }) => (
    <Link to={aside({ open: path })} text={path} />
  )),
  column('type', 'Type', { sort: ({ step }) => step.type }, ({ step }) => <Foreign>{step.type}</Foreign>),
  column('state', 'State', { sort: ({ step }) => step.state }, ({ step }) => <WorkflowState state={step.state} />),
  column('queue', 'Queue', { wide: true }, ({ step: { queue } }) => queue && <QueueLink name={queue} />),
  column('after', 'After', { wide: true }, ({ step }) => <Foreign>{step.depends_on?.join(', ') ?? ''}</Foreign>),
  column('started', 'Enqueued', { end: true }, ({ step }) => <Time at={step.started_at} />),
  column('took', 'Took', { end: true, sort: ({ step }) => tookOf(step, now) }, ({ step }) => (
    <Duration ms={step.started_at ? tookOf(step, now) : null} />
  )),
  column('job', 'Job', ({ step: { job_id: id } }) => (id ? <JobLink id={id} /> : <span class="faint">not yet</span>)),
];

function StepDrawer({ of: { path, step, called } }: { of: Leaf }) {
  const { job_id: id, queue } = step;
  return (
    <Drawer title={path}>
      <Facts
        of={[
          ['State', <WorkflowState state={step.state} />],
          ['Type', <Foreign>{step.type}</Foreign>],
          ['Queue', queue && <QueueLink name={queue} />],
          ['Job', id && <JobLink id={id} />],
          ['Called', called],
          ['After', step.depends_on?.length ? <Foreign>{step.depends_on.join(', ')}</Foreign> : false],
          ['Enqueued', step.started_at && <Time at={step.started_at} />],
          ['Ended', step.completed_at && <Time at={step.completed_at} />],
        ]}
      />
      <JsonSection title="Error" value={step.error} />
      {id && step.state === 'completed' && <Result of={id} />}
    </Drawer>
  );
}

function Result({ of: id }: { of: string }) {
  const result = useGet<{ result?: unknown }>(`jobs/${segment(id)}/result`);
  return (
    <Section title="Result">
      <Loaded of={result}>{({ result: value = null }) => <Json value={value} label="result" open={2} />}</Loaded>
    </Section>
  );
}
