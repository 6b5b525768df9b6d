/** `tocsin workflows`, with `show`, `start`, `progress` and `cancel` */
import type { Command } from 'commander';
import { type WorkflowState, type WorkflowStatus, type WorkflowStep, workflowOf } from '../../client/workflow-status';
import { integer, list, type Session } from '../command';
import { usageError } from '../failure';
import type { Terminal } from '../output';
import { listed, readObject, resourceCommand, type Said, shown, tableOf, verb } from '../resource';
import { ago, type Column, WORKFLOWS } from '../views';

const STATES: readonly WorkflowState[] = ['running', 'completed', 'failed', 'cancelled'];

const STEPS: readonly Column<WorkflowStep>[] = [
  ['STEP', ({ id }) => id],
  ['TYPE', ({ type }) => type],
  ['STATE', ({ state }) => state],
  ['JOB', ({ jobId }) => jobId],
  ['AFTER', ({ dependsOn }) => dependsOn?.join(',')],
  ['STARTED', ({ startedAt }, now) => ago(startedAt, now)],
  ['ERROR', ({ error }) => error && `${error.type}: ${error.message}`],
];

interface Options {
  state?: string[];
  limit: number;
}

export function workflowsCommand(terminal: Terminal): Command {
  return resourceCommand<Options>(terminal, {
    name: 'workflows',
    summary: 'list workflows, newest first',
    options: (command) =>
      command
        .option('--state <state>', `only workflows in this state: ${STATES.join(', ')}`, list)
        .option('--limit <n>', 'maximum number of workflows', integer(1, 10_000), 20),
    list: (opened) => {
      const { state, limit } = opened.options;
      const wrong = state?.find((one) => !STATES.some((known) => known === one));
      if (wrong !== undefined) {
        throw usageError(`${wrong} is not a state of a workflow.`, `States are ${STATES.join(', ')}.`);
      }
      const query = state ? { state: state as WorkflowState[] } : {};
      return listed(
        opened,
        'workflows',
        opened.tocsin.workflows.list(query, { limit }),
        WORKFLOWS,
        'No workflows match.',
      );
    },
    one: [['<id>', 'id of the workflow']],
    verbs: [
      verb({
        name: 'show',
        summary: 'show a workflow and its steps',
        run: async (opened, id = '') => one(opened, await opened.tocsin.workflows.get(id)),
      }),
      verb({
        name: 'start',
        summary: 'start a workflow',
        takes: [['<file>', 'JSON of the workflow, as over HTTP; - reads it from standard input']],
        run: async (opened, file = '') =>
          one(opened, workflowOf(await opened.write('POST', '/workflows', readObject(file)))),
      }),
      verb({
        name: 'progress',
        summary: 'show the progress of each job',
        async run(opened, id = '') {
          const progress = await opened.tocsin.workflows.progress(id);
          const rows = progress.steps.map((step) => [
            ...[step.id, step.type, step.state, step.jobId ?? ''],
            `${Math.round(100 * step.progress)} %`,
          ]);
          const columns = ['STEP', 'TYPE', 'STATE', 'JOB', 'DONE'].map(
            (head, index): Column<string[]> => [head, (row) => row[index]],
          );
          const text = tableOf(rows, columns, 'No steps.', opened.terminal.now());
          return {
            value: { progress },
            text: `${progress.state}  ${Math.round(100 * progress.progress)} %\n\n${text}`,
          };
        },
      }),
      verb({
        name: 'cancel',
        summary: 'cancel a workflow that has not ended, and its jobs',
        asks: (id) => `Cancel the workflow ${id} and its jobs?`,
        async run({ tocsin }, id = '') {
          const workflow = await tocsin.workflows.cancel(id);
          return { value: { workflow }, text: `${workflow.id}  ${workflow.state}` };
        },
      }),
    ],
  });
}

function one(opened: Session<object>, workflow: WorkflowStatus): Said {
  const { steps, callbacks = {}, metadata: _, ...told } = workflow;
  const all = [...steps, ...Object.entries(callbacks).map(([name, step]) => ({ ...step, id: name }))];
  const flat = all.flatMap((step) => inside(step));
  const text = tableOf(flat, STEPS, '', opened.terminal.now());
  return { ...shown(opened, 'workflow', { ...told, steps: flat.length }, { steps: text }), value: { workflow } };
}

/** A step with those inside it, whose names begin with its own. */
function inside(step: WorkflowStep): WorkflowStep[] {
  const { steps = [], callbacks = {} } = step;
  const named = [...steps, ...Object.entries(callbacks).map(([id, one]) => ({ ...one, id }))];
  return [step, ...named.flatMap((one) => inside({ ...one, id: `${step.id}.${one.id}` }))];
}
