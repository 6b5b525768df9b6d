/** The steps of a workflow as a list, and one of them in a drawer, with its result. */
import type { WorkflowStatus, WorkflowStep } from '../../../contract/workflows';
import { Json, JsonSection } from '../../components/json';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, Loaded, Section } from '../../components/page';
import { type Column, column, DataTable } from '../../components/table';
import { Duration, Foreign, JobLink, Link, QueueLink, Time } from '../../components/text';
import { useGet } from '../../core/api';
import { aside, query, segment } from '../../core/router';
import { tookOf } from './graph';
import { WorkflowState } from './state';

/** A job of the workflow, with the ids of the steps around it. */
export interface Leaf {
  path: string;
  step: WorkflowStep;
  called?: string;
}

/** All jobs, also those of callbacks, in the order in which they are written. */
export function leavesOf({ steps, callbacks }: Pick<WorkflowStatus, 'steps' | 'callbacks'>, within = ''): Leaf[] {
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

export function Steps({ of: leaves, now }: { of: readonly Leaf[]; now: number }) {
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
