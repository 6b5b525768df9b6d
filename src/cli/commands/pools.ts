import { InvalidArgumentError } from 'commander';
import type { QueuePool, SchedulingStats } from '../../client/pools';
import type { RateLimitStatus } from '../../client/rate-limits';
import { pathTo } from '../../client/requests';
import { own } from '../../job/own';
import { action, integer, list, type Result, resource, type Session } from '../command';
import { bodyOf, FILE, listed, removal, shown, tableOf } from '../resource';
import { columns, LIMITS, limitsText } from '../views';

const QUEUES = columns<RateLimitStatus['queues'][number]>({
  ...{ QUEUE: 'queue', LIMITS: limitsText, RUNNING: 'active', STARTS: 'currentCount', WAITING: 'waiting' },
});

const BOUNDS = {
  concurrency: ['--concurrency <n>', 'maximum number of attempts running at once', integer(0, 10_000)],
  limit: ['--rate <n>', 'maximum number of starts in a period', integer(0, 1_000_000)],
  period: ['--period <period>', "second, minute, hour, day, or a duration; default: the key's own"],
  after: ['--for <duration>', 'end the override after this time: PT15M'],
  until: ['--until <time>', 'end the override at this time: RFC 3339'],
  ...FILE,
} as const;

export const limits = resource(
  action('limits', 'list limit keys and the jobs that wait for them', {}, (opened) =>
    listed(opened, 'rate_limits', opened.tocsin.rateLimits.list(), LIMITS, 'No limit keys.'),
  ),
  [['<key>', 'limit key']],
  [
    action('show', 'show a key and its use in each queue', {}, async (opened, key) =>
      one(opened, await opened.tocsin.rateLimits.get(key)),
    ),
    action(
      'override',
      'override the limits of a key in every queue; 0 stops its jobs',
      { flags: BOUNDS },
      async (opened, key) => {
        const { after, until, ...members } = opened.members;
        const body = bodyOf({ ...members, expires_at: after === undefined ? until : `+${after}` });
        const overridden: unknown = await opened.write('PUT', pathTo`/rate-limits/${key}/override`, body);
        return one(opened, overridden as RateLimitStatus);
      },
    ),
    action('restore', "remove the override; the key's own limits apply again", {}, async ({ tocsin }, key) => {
      await tocsin.rateLimits.removeOverride(key);
      return { value: { restored: key }, text: `${key}  restored` };
    }),
  ],
);

function one(opened: Session, limit: RateLimitStatus): Result {
  const queues = tableOf(limit.queues, QUEUES, 'No queue uses this key.', opened.terminal.now());
  return shown(opened, 'rate_limit', limit, { waitingCount: '', queues });
}

const COLUMNS = columns<QueuePool>({
  ...{ POOL: 'name', STRATEGY: 'strategy' },
  QUEUES: ({ queues, weights }) => queues.map((name) => queueText(name, own(weights, name))).join(', '),
  ...{ CONCURRENCY: 'concurrency', WORKERS: 'workers', RUNNING: 'activeJobs' },
});

const GIVEN = columns<SchedulingStats['queues'][number]>({
  ...{ POOL: 'pool', QUEUE: 'name', WEIGHT: 'weight', GIVEN: 'dispatched' },
  '': ({ starved }) => (starved ? 'starved' : ''),
});

const queueText = (name: string, weight = 1) => (weight === 1 ? name : `${name}=${weight}`);

/** Reads `urgent=3`. */
function weight(text: string, before: Record<string, number> = {}): Record<string, number> {
  const [, queue, number] = /^([^=]+)=(\d+)$/.exec(text) ?? [];
  if (queue === undefined) throw new InvalidArgumentError('It must be a queue and a number, such as urgent=3.');
  return { ...before, [queue]: Number(number) };
}

const MEMBERS = {
  queues: ['--queue <name>', 'queue of the pool; a list, or several times', list],
  weights: ['--weight <queue=n>', 'weight of a queue; may be given several times', weight],
  strategy: ['--strategy <strategy>', 'strict, round-robin, weighted'],
  concurrency: ['--concurrency <n>', 'maximum number of jobs running at once', integer(1, 1_000_000)],
  ...FILE,
} as const;

export const pools = resource(
  action('pools', 'list pools: queues that share workers', {}, (opened) =>
    listed(opened, 'pools', opened.tocsin.pools.list(), COLUMNS, 'No pools.'),
  ),
  [['<name>', 'name of the pool']],
  [
    action('show', 'show a pool', {}, async (opened, name) =>
      shown(opened, 'pool', await opened.tocsin.pools.get(name), { id: '' }),
    ),
    action('set', 'create or replace a pool', { flags: MEMBERS }, async (opened, name) => {
      const { pool } = await opened.write('PUT', pathTo`/admin/pools/${name}`, bodyOf(opened.members));
      return shown(opened, 'pool', pool as QueuePool, { id: '' });
    }),
    action(
      'stats',
      'show the jobs that pools handed out, queue by queue',
      { takes: [['[name]', 'name of the pool; default: all']] },
      async ({ tocsin, terminal: { now } }, name) => {
        const { queues, stats } = await tocsin.pools.stats(name);
        return { value: { queues, stats }, text: tableOf(queues, GIVEN, 'No pools.', now()) };
      },
    ),
    removal('the pool', ({ tocsin }, name = '') => tocsin.pools.delete(name), {
      summary: 'delete a pool; its queues are kept',
    }),
  ],
);
