import type { TocsinClient } from '../../client/client';
import type { QueueGroupDetail, QueueGroupsSeen, QueueOverview } from '../../client/queue-config';
import { pathTo } from '../../client/requests';
import { didYouMean } from '../../job/near-miss';
import { NotFoundError } from '../../producer/errors';
import { action, integer, limitOf, type Result, resource, type Session } from '../command';
import { CliError } from '../failure';
import { shellWord } from '../output';
import { bodyOf, listed, shown, tableOf } from '../resource';
import { type Column, columns, since } from '../views';

const COUNTS = ['available', 'active', 'scheduled', 'retryable', 'pending', 'completed', 'discarded'] as const;

const QUEUES = [
  ...columns<QueueOverview>({ QUEUE: 'name', STATUS: 'status' }),
  ...COUNTS.map((state): Column<QueueOverview> => [state.toUpperCase(), ({ counts }) => counts[state]]),
];

const NONE = 'No queues yet. A queue is created by its first job.';

const set = (name: 'pause' | 'resume', summary: string) =>
  action(name, summary, {}, async ({ tocsin }, queue) => {
    const state = await tocsin.queues[name](queue).catch(async (error: unknown) => {
      throw error instanceof NotFoundError ? await unknownQueue(tocsin, queue) : error;
    });
    return { value: { queue: state }, text: `${state.name}  ${state.status}` };
  });

export const queues = resource(
  action('queues', 'list queues and how many jobs they have', {}, (opened) =>
    listed(opened, 'queues', opened.tocsin.queues.overview(), QUEUES, NONE),
  ),
  [['<queue>', 'name of the queue']],
  [
    set('pause', 'pause a queue: it accepts jobs but hands none out'),
    set('resume', 'resume a queue'),
    action('create', 'create a queue before its first job, for example to pause it', {}, async ({ tocsin }, name) => {
      const config = await tocsin.queues.create(name);
      return { value: { queue: { name, config } }, text: `${name}  created` };
    }),
  ],
);

/** The failure for a queue that does not exist, with the name that was probably meant. */
async function unknownQueue(tocsin: TocsinClient, queue: string): Promise<CliError> {
  const names: string[] = [];
  try {
    for await (const { name } of tocsin.queues.list()) names.push(name);
  } catch {
    // A key need not be able to list them.
  }
  const hint = didYouMean(queue, names).trim() || `Create it with: tocsin queues create ${shellWord(queue)}`;
  return new CliError(`There is no queue ${queue}.`, hint, 'not_found');
}

const COLUMNS = columns<QueueGroupsSeen['groups'][number]>({
  GROUP: 'group',
  '': ({ noisy, paused }) => [noisy ? 'noisy' : '', paused ? 'paused' : ''].filter(Boolean).join(', '),
  ...{ WAITING: 'waiting', LIMITED: 'limited', RUNNING: 'running', WEIGHT: 'weight' },
  ...{ OLDEST: since('oldestWaitingAt'), 'BLOCKED BY': 'blockedBy' },
});

const QUEUE = ['<queue>', 'name of the queue'] as const;

const LIMITS = {
  concurrency: ['--concurrency <n>', 'maximum number of attempts running at once', integer(1, 10_000)],
  rate: ['--rate <n>', 'maximum number of starts in a period', integer(1, 1_000_000)],
  period: ['--period <period>', 'second, minute, hour, day, or a duration; with --rate'],
  max_waiting: ['--max-waiting <n>', 'maximum number of waiting jobs', integer(1, 10_000_000)],
  weight: ['--weight <n>', 'share of starts relative to other groups', integer(1, 100)],
} as const;

const RESTORES = 'remove the limits, weight and pause of a group; the settings of its queue apply again';

const calling = (name: string, summary: string, call: 'group' | 'restoreGroup' | 'pauseGroup' | 'resumeGroup') =>
  action(name, summary, {}, async (opened, queue, group) =>
    one(opened, await opened.tocsin.queues[call](queue, group)),
  );

export const groups = resource(
  action(
    'groups',
    'list the groups of a queue, noisy groups first',
    { takes: [QUEUE], flags: { limit: limitOf('groups', 100) } },
    async ({ tocsin, members, terminal }, queue) => {
      const seen = await tocsin.queues.groups(queue, members);
      return { value: seen, text: groupTable(seen, terminal.now()) };
    },
  ),
  [QUEUE, ['<group>', 'name of the group']],
  [
    calling('show', 'show a group, its limits, and why its jobs wait', 'group'),
    action('limit', 'set limits or the weight of a group', { flags: LIMITS }, async (opened, queue, group) => {
      const { rate: limit, period, ...members } = opened.members;
      const rate = limit === undefined && period === undefined ? undefined : { limit, period };
      const body = bodyOf({ ...members, rate });
      const changed: unknown = await opened.write('PUT', pathTo`/queues/${queue}/groups/${group}`, body);
      return one(opened, changed as QueueGroupDetail);
    }),
    calling('restore', RESTORES, 'restoreGroup'),
    calling('pause', 'pause a group; jobs of other groups keep running', 'pauseGroup'),
    calling('resume', 'resume a paused group', 'resumeGroup'),
  ],
);

function one(opened: Session, { waitingFor, ...detail }: QueueGroupDetail): Result {
  const { text } = shown(opened, 'group', detail, { queue: '' });
  const why = waitingFor === null ? '' : `\n\n${waitingFor.detail}`;
  return { value: { group: { ...detail, waitingFor } }, text: text + why };
}

function groupTable({ groups, total, countsAreExact }: QueueGroupsSeen, now: number): string {
  if (groups.length === 0) return 'No groups: no job with a group waits or runs.';
  const more = total > groups.length ? `\n${total - groups.length} more groups.` : '';
  const rest = countsAreExact === false ? '\nMore jobs wait than were counted.' : '';
  return tableOf(groups, COLUMNS, '', now) + more + rest;
}
