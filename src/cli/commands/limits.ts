/** `tocsin limits`, with `show`, `override` and `restore` */
import type { Command } from 'commander';
import type { LimitsInForce, RateLimitStatus } from '../../client/rate-limits';
import { pathTo } from '../../client/transport';
import { integer, type Session } from '../command';
import type { Terminal } from '../output';
import {
  ago,
  bodyOf,
  type Column,
  fromFile,
  listed,
  resourceCommand,
  type Said,
  shown,
  tableOf,
  verb,
} from '../resource';

interface Members {
  concurrency?: number;
  rate?: number;
  period?: string;
  for?: string;
  until?: string;
  file?: string;
}

const COLUMNS: readonly Column<RateLimitStatus>[] = [
  ['KEY', ({ key }) => key],
  ['LIMITS', limitsText],
  ['OVERRIDDEN', ({ override }, now) => override && (override.expiresAt ? ago(override.expiresAt, now) : 'yes')],
  ['RUNNING', ({ active }) => active],
  ['STARTS', ({ currentCount }) => currentCount],
  ['WAITING', ({ waiting }) => waiting],
];

const QUEUES: readonly Column<RateLimitStatus['queues'][number]>[] = [
  ['QUEUE', ({ queue }) => queue],
  ['LIMITS', limitsText],
  ['RUNNING', ({ active }) => active],
  ['STARTS', ({ currentCount }) => currentCount],
  ['WAITING', ({ waiting }) => waiting],
];

/** Lists the keys that limit jobs, and puts other limits in the place of theirs. */
export function limitsCommand(terminal: Terminal): Command {
  return resourceCommand(terminal, {
    name: 'limits',
    summary: 'list the keys that limit jobs, and who waits for them',
    list: (opened) => listed(opened, 'rate_limits', opened.tocsin.rateLimits.list(), COLUMNS, 'No key limits any job.'),
    one: [['<key>', 'that jobs count under']],
    verbs: [
      verb({
        name: 'show',
        summary: 'show a key, and how it stands in each queue',
        run: async (opened, key = '') => one(opened, await opened.tocsin.rateLimits.get(key)),
      }),
      verb<Members>({
        name: 'override',
        summary: 'put other limits in the place of its own, in every queue; 0 stops it',
        options: (command) =>
          fromFile(
            command
              .option('--concurrency <n>', 'attempts at once', integer(0, 10_000))
              .option('--rate <n>', 'starts in a period', integer(0, 1_000_000))
              .option('--period <period>', 'second, minute, hour, day, or a duration; default: its own')
              .option('--for <duration>', 'end by itself after this time: PT15M')
              .option('--until <time>', 'end by itself at this time: RFC 3339'),
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
        summary: 'end the override: its own limits hold again',
        async run({ tocsin }, key = '') {
          await tocsin.rateLimits.removeOverride(key);
          return { value: { restored: key }, text: `${key}  restored` };
        },
      }),
    ],
  });
}

function one(opened: Session<object>, limit: RateLimitStatus): Said {
  const queues = tableOf(limit.queues, QUEUES, 'No queue knows it.', opened.terminal.now());
  return shown(opened, 'rate_limit', limit, { waitingCount: '', queues });
}

function limitsText({ concurrency, limit, period, throttled }: LimitsInForce): string {
  const rate = limit === undefined ? undefined : `${limit} in ${period ?? 'a period'}${throttled ? ', spread' : ''}`;
  return [concurrency === undefined ? undefined : `${concurrency} at once`, rate].filter(Boolean).join(', ');
}
