import {
  type WorkflowProgress,
  type WorkflowState,
  type WorkflowStatus,
  type WorkflowStep,
  workflowOf,
} from '../../client/workflows';
import { action, limitOf, type Result, resource, type Session, stateOf } from '../command';
import { listed, readObject, shown, tableOf } from '../resource';
import { type Column, columns, since, WORKFLOWS } from '../views';

const STATES = ['running', 'completed', 'failed', 'cancelled'] as const satisfies WorkflowState[];

const OF_BOTH = columns<{ id: string; type?: string; state: string; jobId?: string | null }>({
  ...{ STEP: 'id', TYPE: 'type', STATE: 'state', JOB: 'jobId' },
});

const STEPS: readonly Column<WorkflowStep>[] = [
  ...OF_BOTH,
  ...columns<WorkflowStep>({
    ...{ AFTER: ({ dependsOn }) => dependsOn?.join(','), STARTED: since('startedAt') },
    ERROR: ({ error }) => error && `${error.type}: ${error.message}`,
  }),
];

const percent = (part: number) => `${Math.round(100 * part)} %`;

const PROGRESS: readonly Column<WorkflowProgress['steps'][number]>[] = [
  ...OF_BOTH,
  ['DONE', ({ progress }) => percent(progress)],
];

const FLAGS = {
  state: stateOf(STATES, 'workflows', 'a state of a workflow'),
  limit: limitOf('workflows'),
} as const;

export const workflows = resource(
  action('workflows', 'list workflows, newest first', { flags: FLAGS }, (opened) => {
    const { limit, ...query } = opened.members;
    const found = opened.tocsin.workflows.list(query, { limit });
    return listed(opened, 'workflows', found, WORKFLOWS, 'No workflows match.');
  }),
  [['<id>', 'id of the workflow']],
  [
    action('show', 'show a workflow and its steps', {}, async (opened, id) =>
      one(opened, await opened.tocsin.workflows.get(id)),
    ),
    action(
      'start',
      'start a workflow',
      { takes: [['<file>', 'JSON of the workflow, as over HTTP; - reads it from standard input']] },
      async (opened, file) => one(opened, workflowOf(await opened.write('POST', '/workflows', readObject(file)))),
    ),
    action('progress', 'show the progress of each job', {}, async ({ tocsin, terminal }, id) => {
      const progress = await tocsin.workflows.progress(id);
      const steps = tableOf(progress.steps, PROGRESS, 'No steps.', terminal.now());
      return { value: { progress }, text: `${progress.state}  ${percent(progress.progress)}\n\n${steps}` };
    }),
    action(
      'cancel',
      'cancel a workflow that has not ended, and its jobs',
      { asks: (id) => `Cancel the workflow ${id} and its jobs?` },
      async ({ tocsin }, id) => {
        const workflow = await tocsin.workflows.cancel(id);
        return { value: { workflow }, text: `${workflow.id}  ${workflow.state}` };
      },
    ),
  ],
);

function one(opened: Session, workflow: WorkflowStatus): Result {
  const { steps: _, callbacks: __, metadata: ___, ...known } = workflow;
  const steps = stepsIn(workflow);
  const text = tableOf(steps, STEPS, '', opened.terminal.now());
  return { ...shown(opened, 'workflow', { ...known, steps: steps.length }, { steps: text }), value: { workflow } };
}

/** All steps, those inside of another below it: their names begin with its own. */
function stepsIn({ steps = [], callbacks = {} }: Pick<WorkflowStep, 'steps' | 'callbacks'>): WorkflowStep[] {
  const named = [...steps, ...Object.entries(callbacks).map(([id, one]) => ({ ...one, id }))];
  return named.flatMap((step) => [step, ...stepsIn(step).map((one) => ({ ...one, id: `${step.id}.${one.id}` }))]);
}
