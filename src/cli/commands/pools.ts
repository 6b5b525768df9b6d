/** `tocsin pools`, with `show`, `set`, `stats` and `remove` */
import { type Command, InvalidArgumentError } from 'commander';
import type { QueuePool, SchedulingStats } from '../../client/pools';
import { pathTo } from '../../client/transport';
import { integer, list } from '../command';
import type { Terminal } from '../output';
import { bodyOf, fromFile, listed, removal, resourceCommand, shown, tableOf, verb } from '../resource';
import type { Column } from '../views';

interface Members {
  queue?: string[];
  weight?: Record<string, number>;
  strategy?: string;
  concurrency?: number;
  file?: string;
}

const COLUMNS: readonly Column<QueuePool>[] = [
  ['POOL', ({ name }) => name],
  ['STRATEGY', ({ strategy }) => strategy],
  [
    'QUEUES',
    ({ queues, weights }) =>
      queues.map((name) => queueText(name, Object.hasOwn(weights, name) ? weights[name] : undefined)).join(', '),
  ],
  ['CONCURRENCY', ({ concurrency }) => concurrency],
  ['WORKERS', ({ workers }) => workers],
  ['RUNNING', ({ activeJobs }) => activeJobs],
];

const GIVEN: readonly Column<SchedulingStats['queues'][number]>[] = [
  ['POOL', ({ pool }) => pool],
  ['QUEUE', ({ name }) => name],
  ['WEIGHT', ({ weight }) => weight],
  ['GIVEN', ({ dispatched }) => dispatched],
  ['', ({ starved }) => (starved ? 'starved' : '')],
];

const queueText = (name: string, weight = 1) => (weight === 1 ? name : `${name}=${weight}`);

export function poolsCommand(terminal: Terminal): Command {
  return resourceCommand(terminal, {
    name: 'pools',
    summary: 'list pools: queues that share workers',
    list: (opened) => listed(opened, 'pools', opened.tocsin.pools.list(), COLUMNS, 'No pools.'),
    one: [['<name>', 'name of the pool']],
    verbs: [
      verb({
        name: 'show',
        summary: 'show a pool',
        run: async (opened, name = '') => shown(opened, 'pool', await opened.tocsin.pools.get(name), { id: '' }),
      }),
      verb<Members>({
        name: 'set',
        summary: 'create or replace a pool',
        options: (command) =>
          fromFile(
            command
              .option('--queue <name>', 'queue of the pool; a list, or several times', list)
              .option('--weight <queue=n>', 'weight of a queue; may be given several times', weight)
              .option('--strategy <strategy>', 'strict, round-robin, weighted')
              .option('--concurrency <n>', 'maximum number of jobs running at once', integer(1, 1_000_000)),
          ),
        async run(opened, name = '') {
          const { queue: queues, weight: weights, strategy, concurrency, file } = opened.options;
          const body = bodyOf(file, { queues, weights, strategy, concurrency });
          const { pool } = await opened.write('PUT', pathTo`/admin/pools/${name}`, body);
          return shown(opened, 'pool', pool as QueuePool, { id: '' });
        },
      }),
      verb({
        name: 'stats',
        summary: 'show the jobs that pools handed out, queue by queue',
        takes: [['[name]', 'name of the pool; default: all']],
        async run({ tocsin, terminal: { now } }, name) {
          const { queues, stats } = await tocsin.pools.stats(name);
          return { value: { queues, stats }, text: tableOf(queues, GIVEN, 'No pools.', now()) };
        },
      }),
      removal('the pool', ({ tocsin }, name = '') => tocsin.pools.delete(name), {
        summary: 'delete a pool; its queues are kept',
      }),
    ],
  });
}

/** Reads `urgent=3`. */
function weight(text: string, before: Record<string, number> = {}): Record<string, number> {
  const [, queue, number] = /^([^=]+)=(\d+)$/.exec(text) ?? [];
  if (queue === undefined) throw new InvalidArgumentError('It must be a queue and a number, such as urgent=3.');
  return { ...before, [queue]: Number(number) };
}
