/** `tocsin groups`, with `show`, `limit`, `restore`, `pause` and `resume` */
import type { Command } from 'commander';
import type { QueueGroupDetail, QueueGroupsSeen } from '../../client/queue-config';
import { pathTo } from '../../client/transport';
import { integer, type Session } from '../command';
import { type Terminal, whenText } from '../output';
import { bodyOf, resourceCommand, type Said, shown, tableOf, verb } from '../resource';
import type { Column } from '../views';

interface Limits {
  concurrency?: number;
  rate?: number;
  period?: string;
  maxWaiting?: number;
  weight?: number;
}

const COLUMNS: readonly Column<QueueGroupsSeen['groups'][number]>[] = [
  ['GROUP', ({ group }) => group],
  ['', ({ noisy, paused }) => [noisy ? 'noisy' : '', paused ? 'paused' : ''].filter(Boolean).join(', ')],
  ['WAITING', ({ waiting }) => waiting],
  ['LIMITED', ({ limited }) => limited],
  ['RUNNING', ({ running }) => running],
  ['WEIGHT', ({ weight }) => weight],
  ['OLDEST', ({ oldestWaitingAt }, now) => whenText(oldestWaitingAt ?? undefined, now) ?? ''],
  ['BLOCKED BY', ({ blockedBy }) => blockedBy ?? ''],
];

export function groupsCommand(terminal: Terminal): Command {
  return resourceCommand<{ limit: number }>(terminal, {
    name: 'groups',
    summary: 'list the groups of a queue, noisy groups first',
    takes: [['<queue>', 'name of the queue']],
    options: (command) => command.option('--limit <n>', 'maximum number of groups', integer(1, 100), 20),
    async list({ tocsin, options: { limit } }, queue = '') {
      const seen = await tocsin.queues.groups(queue, { limit });
      return { value: seen, text: groupTable(seen, terminal.now()) };
    },
    one: [
      ['<queue>', 'name of the queue'],
      ['<group>', 'name of the group'],
    ],
    verbs: [
      verb({
        name: 'show',
        summary: 'show a group, its limits, and why its jobs wait',
        run: async (opened, queue = '', group = '') => one(opened, await opened.tocsin.queues.group(queue, group)),
      }),
      verb<Limits>({
        name: 'limit',
        summary: 'set limits or the weight of a group',
        options: (command) =>
          command
            .option('--concurrency <n>', 'maximum number of attempts running at once', integer(1, 10_000))
            .option('--rate <n>', 'maximum number of starts in a period', integer(1, 1_000_000))
            .option('--period <period>', 'second, minute, hour, day, or a duration; with --rate')
            .option('--max-waiting <n>', 'maximum number of waiting jobs', integer(1, 10_000_000))
            .option('--weight <n>', 'share of starts relative to other groups', integer(1, 100)),
        async run(opened, queue = '', group = '') {
          const { concurrency, rate, period, maxWaiting, weight } = opened.options;
          const starts = rate === undefined && period === undefined ? undefined : { limit: rate, period };
          const body = bodyOf(undefined, { concurrency, rate: starts, max_waiting: maxWaiting, weight });
          const changed: unknown = await opened.write('PUT', pathTo`/queues/${queue}/groups/${group}`, body);
          return one(opened, changed as QueueGroupDetail);
        },
      }),
      verb({
        name: 'restore',
        summary: 'remove the limits, weight and pause of a group; the settings of its queue apply again',
        run: async (opened, queue = '', group = '') =>
          one(opened, await opened.tocsin.queues.restoreGroup(queue, group)),
      }),
      verb({
        name: 'pause',
        summary: 'pause a group; jobs of other groups keep running',
        run: async (opened, queue = '', group = '') => one(opened, await opened.tocsin.queues.pauseGroup(queue, group)),
      }),
      verb({
        name: 'resume',
        summary: 'resume a paused group',
        run: async (opened, queue = '', group = '') =>
          one(opened, await opened.tocsin.queues.resumeGroup(queue, group)),
      }),
    ],
  });
}

function one(opened: Session<object>, { waitingFor, ...detail }: QueueGroupDetail): Said {
  const said = shown(opened, 'group', detail, { queue: '' });
  const why = waitingFor === null ? '' : `\n\n${waitingFor.detail}`;
  return { value: { group: { ...detail, waitingFor } }, text: said.text + why };
}

function groupTable({ groups, total, countsAreExact }: QueueGroupsSeen, now: number): string {
  if (groups.length === 0) return 'No groups: no job with a group waits or runs.';
  const more = total > groups.length ? `\n${total - groups.length} more groups.` : '';
  const rest = countsAreExact === false ? '\nMore jobs wait than were counted.' : '';
  return tableOf(groups, COLUMNS, '', now) + more + rest;
}
