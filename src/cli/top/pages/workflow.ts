import { pathTo } from '../../../client/transport';
import type { WorkflowStatus } from '../../../contract/workflows';
import type { Named } from '../../../producer/names';
import type { Column } from '../../views';
import { ageText, definePage, listOf, stateCell } from '../page';
import { foreign } from '../text';

const STEPS: readonly Column<Named<WorkflowStatus>['steps'][number]>[] = [
  ['STEP', ({ id }) => id, { most: 24 }],
  ['STATE', ({ state }) => state, { is: 'state' }],
  ['TYPE', ({ type }) => type, { rank: 1, most: 32 }],
  ['QUEUE', ({ queue }) => queue, { rank: 4, most: 20 }],
  ['AFTER', ({ dependsOn }) => dependsOn?.join(','), { rank: 2, most: 24 }],
  ['JOB', ({ jobId }) => jobId, { rank: 3 }],
];

export const workflow = definePage<Named<WorkflowStatus>>({
  ...{ id: 'workflow', title: 'Workflow', scope: 'data:read' },
  load: (api, { name = '' }) => api.get(pathTo`/workflows/${name}`),
  show: ({ id, name = '', type, state, createdAt, stepsCompleted, stepsTotal, steps }, _, now) => ({
    facts: [
      { name: 'workflow', value: foreign(`${id}  ${name}`) },
      { name: 'kind', value: foreign(type) },
      { name: 'state', value: stateCell(state) },
      { name: 'steps', value: `${stepsCompleted} of ${stepsTotal} completed` },
      { name: 'created', value: ageText(createdAt, now) },
    ],
    ...listOf(steps, STEPS, now, ({ id: step, jobId }) => ({
      id: step,
      ...(jobId !== null && { opens: { page: 'job', name: jobId } }),
    })),
    empty: 'No steps.',
    subject: { kind: 'workflow', id, called: name || id, state },
  }),
  hear: ({ id }, events) => (events.some(({ data }) => data.workflow_id === id) ? { reload: true } : {}),
});
