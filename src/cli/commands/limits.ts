import type { RateLimitStatus } from '../../client/rate-limits';
import { pathTo } from '../../client/transport';
import { action, integer, type Result, resource, type Session } from '../command';
import { bodyOf, FILE, listed, shown, tableOf } from '../resource';
import { type Column, LIMITS, limitsText } from '../views';

const QUEUES: readonly Column<RateLimitStatus['queues'][number]>[] = [
  ['QUEUE', ({ queue }) => queue],
  ['LIMITS', limitsText],
  ['RUNNING', ({ active }) => active],
  ['STARTS', ({ currentCount }) => currentCount],
  ['WAITING', ({ waiting }) => waiting],
];

const MEMBERS = {
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
      { flags: MEMBERS },
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
