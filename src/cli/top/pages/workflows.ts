/** Workflows, and the steps of one. */
import { pathTo } from '../../../client/transport';
import type { WorkflowList, WorkflowStatus } from '../../../contract/workflows';
import type { Named } from '../../../producer/names';
import { ageText, definePage, pageQuery, stateCell } from '../page';
import { foreign } from '../text';

const STATES = ['running', 'completed', 'failed', 'cancelled'];

export const workflows = definePage<Named<WorkflowList>>({
  id: 'workflows',
  title: 'Workflows',
  key: 'w',
  scope: 'data:read',
  states: STATES,
  load: (api, place) => api.get(`/workflows?${pageQuery(place, { state: place.state })}`),
  show: ({ items, total }, _, now) => ({
    facts: [],
    columns: [
      { label: 'ID', rank: 2 },
      { label: 'NAME', rank: 0, most: 36 },
      { label: 'KIND', rank: 3 },
      { label: 'STATE', rank: 0 },
      { label: 'STEPS', end: true, rank: 0 },
      { label: 'CREATED', end: true, rank: 1 },
    ],
    rows: items.map(({ id, name = '', type, state, stepsCompleted, stepsTotal, createdAt }) => ({
      id,
      thing: { kind: 'workflow', id, called: name || id, state },
      opens: { page: 'workflow', name: id },
      cells: [
        foreign(id),
        foreign(name),
        foreign(type),
        stateCell(state),
        `${stepsCompleted}/${stepsTotal}`,
        ageText(createdAt, now),
      ],
    })),
    total,
    empty: 'No workflows.',
  }),
  hear: (_, events) => (events.some(({ type }) => type.startsWith('workflow.')) ? { reload: true } : {}),
});

export const workflow = definePage<Named<WorkflowStatus>>({
  id: 'workflow',
  title: 'Workflow',
  scope: 'data:read',
  load: (api, { name = '' }) => api.get(pathTo`/workflows/${name}`),
  show: ({ id, name = '', type, state, createdAt, stepsCompleted, stepsTotal, steps }, _, now) => ({
    facts: [
      { name: 'workflow', value: foreign(`${id}  ${name}`) },
      { name: 'kind', value: foreign(type) },
      { name: 'state', value: stateCell(state) },
      { name: 'steps', value: `${stepsCompleted} of ${stepsTotal} completed` },
      { name: 'created', value: ageText(createdAt, now) },
    ],
    columns: [
      { label: 'STEP', rank: 0, most: 24 },
      { label: 'STATE', rank: 0 },
      { label: 'TYPE', rank: 1, most: 32 },
      { label: 'QUEUE', rank: 4, most: 20 },
      { label: 'AFTER', rank: 2, most: 24 },
      { label: 'JOB', rank: 3 },
    ],
    rows: steps.map((step) => ({
      id: step.id,
      ...(step.jobId !== null && { opens: { page: 'job' as const, name: step.jobId } }),
      cells: [
        foreign(step.id),
        stateCell(step.state),
        foreign(step.type),
        foreign(step.queue ?? ''),
        foreign(step.dependsOn?.join(',') ?? ''),
        foreign(step.jobId ?? ''),
      ],
    })),
    empty: 'No steps.',
    subject: { kind: 'workflow', id, called: name || id, state },
  }),
  hear: ({ id }, events) => (events.some(({ data }) => data.workflow_id === id) ? { reload: true } : {}),
});
