import type { Command } from 'commander';
import type { RateLimitStatus } from '../../client/rate-limits';
import { pathTo } from '../../client/transport';
import { integer, type Session } from '../command';
import type { Terminal } from '../output';
import { bodyOf, fromFile, listed, resourceCommand, type Said, shown, tableOf, verb } from '../resource';
import { type Column, LIMITS, limitsText } from '../views';

interface Members {
  concurrency?: number;
  rate?: number;
  period?: string;
  for?: string;
  until?: string;
  file?: string;
}

const QUEUES: readonly Column<RateLimitStatus['queues'][number]>[] = [
  ['QUEUE', ({ queue }) => queue],
  ['LIMITS', limitsText],
  ['RUNNING', ({ active }) => active],
  ['STARTS', ({ currentCount }) => currentCount],
  ['WAITING', ({ waiting }) => waiting],
];

export function limitsCommand(terminal: Terminal): Command {
  return resourceCommand(terminal, {
    name: 'limits',
    summary: 'list limit keys and the jobs that wait for them',
    list: (opened) => listed(opened, 'rate_limits', opened.tocsin.rateLimits.list(), LIMITS, 'No limit keys.'),
    one: [['<key>', 'limit key']],
    verbs: [
      verb({
        name: 'show',
        summary: 'show a key and its use in each queue',
        run: async (opened, key = '') => one(opened, await opened.tocsin.rateLimits.get(key)),
      }),
      verb<Members>({
        name: 'override',
        summary: 'override the limits of a key in every queue; 0 stops its jobs',
        options: (command) =>
          fromFile(
            command
              .option('--concurrency <n>', 'maximum number of attempts running at once', integer(0, 10_000))
              .option('--rate <n>', 'maximum number of starts in a period', integer(0, 1_000_000))
              .option('--period <period>', "second, minute, hour, day, or a duration; default: the key's own")
              .option('--for <duration>', 'end the override after this time: PT15M')
              .option('--until <time>', 'end the override at this time: RFC 3339'),
          ),
        async run(opened, key = '') {
          const { concurrency, rate: limit, period, for: after, until, file } = opened.options;
          const expires_at = after === undefined ? until : `+${after}`;
          const body = bodyOf(file, { concurrency, limit, period, expires_at });
          const overridden: unknown = await opened.write('PUT', pathTo`/rate-limits/${key}/override`, body);
          return one(opened, overridden as RateLimitStatus);
        },
      }),
      verb({
        name: 'restore',
        summary: "remove the override; the key's own limits apply again",
        async run({ tocsin }, key = '') {
          await tocsin.rateLimits.removeOverride(key);
          return { value: { restored: key }, text: `${key}  restored` };
        },
      }),
    ],
  });
}

function one(opened: Session<object>, limit: RateLimitStatus): Said {
  const queues = tableOf(limit.queues, QUEUES, 'No queue uses this key.', opened.terminal.now());
  return shown(opened, 'rate_limit', limit, { waitingCount: '', queues });
}
