/** All pages, in the order of the tabs. Their keys are those of the dashboard. */

import type { FailureGroup, FailureGroups } from '../../../client/failures';
import type { QueueEvent } from '../../../client/follow';
import { pathTo } from '../../../client/requests';
import type { TargetStatus } from '../../../client/targets';
import type { WorkerList } from '../../../contract/workers';
import type { WorkflowStatus } from '../../../contract/workflows';
import { type Named, wireName } from '../../../producer/names';
import { ago, type Column, FAILURES, JOB_STATES } from '../../views';
import {
  ageText,
  countsText,
  definePage,
  listOf,
  numberText,
  type Page,
  type PageId,
  pageQuery,
  stateCell,
  type Thing,
  warn,
} from '../page';
import { toneOf } from '../style';
import { foreign, membersText, valueText } from '../text';
import { job } from './job';
import { askJobs, type JobAnswer, loadJobs, receiveJobs, showJobs } from './job-list';
import { audit, limits, schedules, webhooks, workflows } from './lists';
import { askQueues, listQueues, loadQueues, overview, type QueuesAnswer, receiveQueues } from './overview';
import { queue } from './queue';

interface WorkersAnswer extends Named<WorkerList> {
  targets: readonly TargetStatus[];
}

const workers = definePage<WorkersAnswer>({
  ...{ id: 'workers', title: 'Workers', key: 'k', scope: 'admin:read' },
  load: async (api, place) => {
    const [found, { targets }] = await Promise.all([
      api.get<Omit<WorkersAnswer, 'targets'>>(`/admin/workers?${pageQuery(place)}`),
      api.get<Pick<WorkersAnswer, 'targets'>>('/targets'),
    ]);
    return { ...found, targets };
  },
  show: ({ items, pagination, targets, summary }, _, now) => ({
    facts: [
      [
        'workers',
        Object.entries(summary)
          .map(([state, count]) => `${state} ${count}`)
          .join(' · '),
      ],
    ],
    ...listOf<Shown>([...targets.map(targetRow), ...items.map(workerRow)], WORKERS, now, ({ thing }) => ({
      ...{ id: `${thing.kind} ${thing.id}`, thing },
    })),
    total: pagination.total + targets.length,
    empty: 'No workers and no handlers.',
  }),
  receive: (_, events) =>
    events.some(({ type }) => /^worker\.(started|stopped|quiet)|^queue\.push_/.test(type)) ? { reload: true } : {},
});

interface Shown {
  thing: Thing & { state: string };
  takes: readonly string[];
  running?: number | string;
  seen: string | null | undefined;
  about: string | undefined;
}

const WORKERS: readonly Column<Shown>[] = [
  ['WORKER', ({ thing }) => thing.id, { most: 40 }],
  ['STATE', ({ thing }) => thing.state, { is: 'state' }],
  ['TAKES', ({ takes }) => takes.join(','), { rank: 2, most: 30 }],
  ['RUNNING', ({ running }) => running, { rank: 1, end: true }],
  ['LAST SEEN', ({ seen }, now) => ago(seen, now), { rank: 1, end: true }],
  ['TELLS', ({ about }) => about, { rank: 3 }],
];

const workerRow = (worker: WorkersAnswer['items'][number]): Shown => ({
  thing: { kind: 'worker', id: worker.id, state: worker.state },
  takes: worker.queues,
  running: worker.concurrency === null ? worker.activeJobs : `${worker.activeJobs}/${worker.concurrency}`,
  seen: worker.lastHeartbeatAt,
  about: [worker.hostname, worker.pid, worker.version].filter((part) => part !== null).join(' '),
});

const targetRow = ({ name, state, patterns, lastError, since }: TargetStatus): Shown => ({
  thing: { kind: 'target', id: name, state },
  ...{ takes: patterns, seen: since, about: lastError },
});

const KEPT = 200;

const events = definePage<{ events: readonly QueueEvent[] }>({
  ...{ id: 'events', title: 'Events', key: 'e', scope: 'data:read' },
  load: (api) => api.get('/events?page=1&per_page=50'),
  show: (answer, _, now) => ({
    ...{ facts: [], empty: 'No recent events.' },
    ...listOf(answer.events, EVENTS, now, ({ id, data: { job_id: job } }) => ({
      id,
      ...(typeof job === 'string' && { opens: { page: 'job', name: job } }),
    })),
  }),
  receive: (answer, received) => {
    const known = new Set(answer.events.map(({ id }) => id));
    const fresh = received.filter(({ id }) => !known.has(id)).reverse();
    return { answer: { events: [...fresh, ...answer.events].slice(0, KEPT) } };
  },
});

const SHOWN = new Set(['job_id', 'queue', 'job_type', 'worker_id', 'event']);

const EVENTS: readonly Column<QueueEvent>[] = [
  ['WHEN', ({ time }, now) => ago(time, now, '–'), { end: true, rank: 1 }],
  ['EVENT', ({ type }) => ({ text: foreign(type), tone: toneOf(type.slice(type.indexOf('.') + 1)) })],
  ['TYPE', ({ data }) => valueText(data.job_type ?? ''), { rank: 2, most: 28 }],
  ['QUEUE', ({ data }) => valueText(data.queue ?? ''), { rank: 3, most: 20 }],
  ['SUBJECT', ({ subject }) => subject, { rank: 4 }],
  ['WHAT', ({ data }) => membersText(Object.fromEntries(Object.entries(data).filter(([name]) => !SHOWN.has(name))))],
];

const STEPS: readonly Column<Named<WorkflowStatus>['steps'][number]>[] = [
  ['STEP', ({ id }) => id, { most: 24 }],
  ['STATE', ({ state }) => state, { is: 'state' }],
  ['TYPE', ({ type }) => type, { rank: 1, most: 32 }],
  ['QUEUE', ({ queue }) => queue, { rank: 4, most: 20 }],
  ['AFTER', ({ dependsOn }) => dependsOn?.join(','), { rank: 2, most: 24 }],
  ['JOB', ({ jobId }) => jobId, { rank: 3 }],
];

const workflow = definePage<Named<WorkflowStatus>>({
  ...{ id: 'workflow', title: 'Workflow', scope: 'data:read' },
  load: (api, { name = '' }) => api.get(pathTo`/workflows/${name}`),
  show: ({ id, name = '', type, state, createdAt, stepsCompleted, stepsTotal, steps }, _, now) => ({
    facts: [
      ['workflow', foreign(`${id}  ${name}`)],
      ['kind', foreign(type)],
      ['state', stateCell(state)],
      ['steps', `${stepsCompleted} of ${stepsTotal} completed`],
      ['created', ageText(createdAt, now)],
    ],
    ...listOf(steps, STEPS, now, ({ id: step, jobId }) => ({
      id: step,
      ...(jobId !== null && { opens: { page: 'job', name: jobId } }),
    })),
    empty: 'No steps.',
    subject: { kind: 'workflow', id, called: name || id, state },
  }),
  receive: ({ id }, events) => (events.some(({ data }) => data.workflow_id === id) ? { reload: true } : {}),
});

/** Events after which there are more failures, or fewer. */
const FAILED = /^job\.(failed|discarded|retrying|expired)$/;

const [counted, ...others] = FAILURES as readonly [Column<FailureGroup>, ...Column<FailureGroup>[]];

const GROUPS: readonly Column<FailureGroup>[] = [
  counted,
  ['DEAD', ({ dead }) => dead, { rank: 3, end: true }],
  ['RETRYING', ({ retrying }) => retrying, { rank: 4, end: true }],
  ['FIRST', ({ firstSeenAt }, now) => ago(firstSeenAt, now), { rank: 6, end: true }],
  ...others,
];

const failures = definePage<FailureGroups>({
  ...{ id: 'failures', title: 'Failures', key: 'f', scope: 'admin:read' },
  states: ['dead', 'discarded', 'retrying'],
  load: (api, { state }) => api.get(`/admin/failures?limit=200${state ? `&state=${state}` : ''}`),
  show: ({ items, total, searched, more }, _, now) => ({
    facts: [['searched', more ? warn(`the newest ${numberText(searched)} jobs; there are more`) : undefined]],
    ...listOf(items, GROUPS, now, ({ fingerprint, count, error: { type, message } }) => ({
      id: fingerprint,
      thing: { kind: 'group', id: fingerprint, called: `${count} × ${type}: ${message}` },
      opens: { page: 'jobs', fingerprint },
    })),
    ...{ total, empty: 'No failures.' },
  }),
  // To search every queue again at each failure would wake those that sleep.
  receive: (_, events) => ({ newer: events.filter(({ type }) => FAILED.test(type)).length }),
});

const settings = definePage<Readonly<Record<string, unknown>>>({
  ...{ id: 'settings', title: 'Settings', key: 't', scope: 'admin:read' },
  load: (api) => api.get('/admin/system/config'),
  show: (answer, _, now) => ({
    ...{ facts: [], empty: 'No settings.' },
    ...listOf(Object.entries(answer).flatMap(settingsIn), SETTINGS, now, ([id]) => ({ id })),
  }),
});

type Setting = readonly [path: string, value: unknown];

const SETTINGS: readonly Column<Setting>[] = [
  ['SETTING', ([path]) => path, { most: 50 }],
  ['VALUE', ([, value]) => valueText(value)],
];

/** Variables keep their names; members have those of the wire. */
function settingsIn([name, value]: Setting): Setting[] {
  const path = /^variables\./.test(name) ? name : wireName(name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, value]];
  const { set, value: content } = value as { set?: unknown; value?: unknown };
  if (typeof set === 'boolean') return set ? [[path, content ?? '(set)']] : [];
  return Object.entries(value).flatMap(([member, inner]) => settingsIn([`${name}.${member}`, inner]));
}

const jobs = definePage<JobAnswer>({
  ...{ id: 'jobs', title: 'Jobs', key: 'j', scope: 'admin:read' },
  states: JOB_STATES,
  searches: true,
  load: (api, place) => loadJobs(api, place),
  show: (answer, { q, fingerprint }, now) => ({
    facts: [
      ['failures', fingerprint || undefined],
      [
        'in each state',
        answer.counts && `${countsText(answer.counts)}${answer.countsExact === false ? ' (at least)' : ''}`,
      ],
      ['searched', q && answer.more ? warn(`the newest ${answer.searched} jobs; there are more`) : undefined],
    ],
    ...showJobs(answer, now),
  }),
  receive: (answer, events) => receiveJobs(answer, events),
  ask: askJobs,
});

const queues = definePage<QueuesAnswer>({
  ...{ id: 'queues', title: 'Queues', key: 'q', scope: 'admin:read' },
  load: loadQueues,
  show: ({ items, total }, _, now) => ({
    ...{ facts: [], total, empty: 'No queues yet. A queue is created by its first job.' },
    ...listQueues(items, now),
  }),
  receive: receiveQueues,
  ask: askQueues,
});

export const PAGES: readonly Page<unknown>[] = [
  ...[overview, queues, queue, jobs, job, failures, schedules, workflows, workflow],
  ...[workers, limits, events, webhooks, audit, settings],
];

export const pageOf = (id: PageId): Page<unknown> => PAGES.find((page) => page.id === id) ?? overview;
