/** The actions on each kind of item, their keys and requests. A user without its scope does not see an action. */
import type { Scope } from '../../access/access';
import { pathTo } from '../../client/requests';
import type { Write } from './api';
import type { Thing } from './page';
import { foreign } from './text';

export interface Action {
  key: string;
  kind: Thing['kind'];
  scope: Scope;
  /** What it does to this; undefined: nothing. */
  verb(thing: Thing): string | undefined;
  /** One is done without a question. */
  atOnce?: boolean;
  means?: string;
  request(thing: Thing): Write;
  /** All of a filter in one request. @param filter in the wire's names */
  many?(filter: Readonly<Record<string, unknown>>): Write;
  /** The server counts beforehand how many jobs it would act on. */
  counts?: boolean;
  /** States of jobs that it acts on, where no filter says which. */
  states?: readonly string[];
}

const post = (path: string, body?: Write['body']): Write => ({ method: 'POST', path, ...(body && { body }) });

const isPaused = ({ state }: Thing): boolean => state !== 'active';

export const ACTIONS: readonly Action[] = [
  {
    ...{ key: 'r', kind: 'job', scope: 'admin:write', atOnce: true, counts: true },
    verb: ({ state }) => (state === undefined || /retryable|discarded|cancelled/.test(state) ? 'retry' : undefined),
    request: ({ id }) => post(pathTo`/admin/jobs/${id}/retry`),
    many: (filter) => post('/admin/jobs/bulk/retry', { filter, confirm: true }),
    states: ['retryable', 'discarded', 'cancelled'],
  },
  {
    ...{ key: 'c', kind: 'job', scope: 'admin:write', counts: true },
    verb: ({ state }) => (/completed|cancelled|discarded/.test(state ?? '') ? undefined : 'cancel'),
    request: ({ id }) => post(pathTo`/admin/jobs/${id}/cancel`),
    many: (filter) => post('/admin/jobs/bulk/cancel', { filter, confirm: true }),
    states: ['scheduled', 'available', 'pending', 'active', 'retryable'],
  },
  {
    ...{ key: 'p', kind: 'queue', scope: 'admin:write', means: 'Running jobs continue; no other job starts.' },
    verb: (thing) => (isPaused(thing) ? 'resume' : 'pause'),
    request: (thing) => post(`${pathTo`/admin/queues/${thing.id}`}/${isPaused(thing) ? 'resume' : 'pause'}`),
  },
  {
    ...{ key: 'r', kind: 'group', scope: 'admin:write', counts: true },
    verb: () => 'redrive',
    request: ({ id }) => post(pathTo`/admin/failures/${id}/redrive`, { confirm: true }),
  },
  {
    ...{ key: 'd', kind: 'group', scope: 'admin:purge', counts: true, means: 'This cannot be undone.' },
    verb: () => 'discard',
    request: ({ id }) => post(pathTo`/admin/failures/${id}/discard`, { confirm: true }),
  },
  {
    ...{ key: 'r', kind: 'schedule', scope: 'data:write' },
    verb: () => 'run now',
    request: ({ id }) => post(pathTo`/cron/${id}/trigger`),
  },
  {
    ...{ key: 'p', kind: 'schedule', scope: 'data:write', atOnce: true },
    verb: ({ state }) => (state === 'completed' ? undefined : state === 'paused' ? 'resume' : 'pause'),
    request: ({ id, state }) => post(`${pathTo`/cron/${id}`}/${state === 'paused' ? 'resume' : 'pause'}`),
  },
  {
    ...{ key: 'c', kind: 'workflow', scope: 'data:write', means: 'Its waiting and running steps are cancelled.' },
    verb: ({ state }) => (state === 'running' || state === 'pending' ? 'cancel' : undefined),
    request: ({ id }) => post(pathTo`/workflows/${id}/cancel`),
  },
  {
    ...{ key: 'p', kind: 'worker', scope: 'admin:write', means: 'It finishes its jobs and gets no new ones.' },
    verb: ({ state }) => (state === 'running' ? 'quiet' : state === 'quiet' ? 'resume' : undefined),
    request: ({ id, state }) =>
      post('/admin/workers/directive', { worker_id: id, directive: state === 'quiet' ? 'running' : 'quiet' }),
  },
  {
    ...{ key: 'r', kind: 'target', scope: 'admin:write', atOnce: true },
    verb: ({ state }) => (state === 'up' ? undefined : 'try'),
    request: ({ id }) => post(pathTo`/targets/${id}/resume`),
  },
  {
    ...{ key: 'p', kind: 'webhook', scope: 'admin:write', means: 'No events are sent to it until it is resumed.' },
    verb: ({ state }) => (state === 'off' ? 'resume' : 'pause'),
    request: ({ id, state }) => ({
      method: 'PATCH',
      path: pathTo`/webhooks/subscriptions/${id}`,
      body: { active: state === 'off' },
    }),
  },
  {
    ...{ key: 'm', kind: 'deployment', scope: 'admin:write', means: 'No job starts, and no schedule fires.' },
    verb: ({ state }) => (state === 'maintenance' ? 'end maintenance' : 'start maintenance'),
    request: ({ state }) => post('/admin/maintenance', { enabled: state !== 'maintenance' }),
  },
];

/** An action that the user asks for: on each of these jobs, or on all that a filter matches. */
export interface Wish {
  action: Action;
  things: readonly Thing[];
  filter?: Readonly<Record<string, unknown>>;
}

const MOST_IDS = 50;

export function requestsOf({ action, things, filter }: Wish): Write[] {
  const { many } = action;
  if (filter && many) return [many(filter)];
  if (!many || things.length === 1) return things.map((thing) => action.request(thing));
  const ids = things.map(({ id }) => id);
  return Array.from({ length: Math.ceil(ids.length / MOST_IDS) }, (_, part) =>
    many({ ids: ids.slice(part * MOST_IDS, (part + 1) * MOST_IDS) }),
  );
}

/** {@link requestsOf} a wish, as dry runs that only count. */
export const previewsOf = (wish: Wish): Write[] =>
  requestsOf(wish).map((write) => ({ ...write, body: { ...write.body, dry_run: true } }));

/** Must the server be asked how many it would be? One job that is named is one. */
export const isCounted = ({ action, things, filter }: Wish): boolean =>
  action.counts === true && (filter !== undefined || things.length > 1 || action.many === undefined);

/** Is it done without a question? What ends a pause takes nothing from anybody. */
export function isAtOnce({ action, things, filter }: Wish): boolean {
  const [only, ...more] = things;
  if (filter !== undefined || only === undefined || more.length > 0) return false;
  return action.atOnce === true || /^(resume|end maintenance)$/.test(action.verb(only) ?? '');
}

/** What it is about, in words. @param jobs as counted by the server */
export function wishText({ action, things, filter }: Wish, jobs?: string): string {
  const [first] = things;
  const verb = action.verb(first ?? { kind: action.kind, id: '' });
  if (jobs !== undefined) return `${verb} ${jobs} ${jobs === '1' ? 'job' : 'jobs'}`;
  if (filter !== undefined) return `${verb} all that match`;
  if (first?.kind === 'deployment') return `${verb}`;
  return things.length === 1 ? `${verb} ${first?.called ?? first?.id}` : `${verb} ${things.length} ${first?.kind}s`;
}

/** The question before it is done. @param jobs as the server counted them */
export function questionOf(wish: Wish, jobs?: string): string {
  const text = wishText(wish, jobs);
  const { means } = wish.action;
  const isEnd = /^(resume|end)/.test(text);
  return foreign(`${text.charAt(0).toUpperCase()}${text.slice(1)}?${means && !isEnd ? ` ${means}` : ''}`);
}
