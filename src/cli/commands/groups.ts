/** `tocsin groups` */
import type { Command } from 'commander';
import type { QueueGroupsSeen } from '../../client/queue-config';
import { integer, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { type Terminal, table, whenText } from '../output';

/** Lists the groups of a queue, those with most waiting jobs first. */
export function groupsCommand(terminal: Terminal): Command {
  return remote('groups', 'list the groups of a queue, noisy ones first')
    .argument('<queue>', 'name of the queue')
    .option('--limit <n>', 'maximum number of groups', integer(1, 100), 20)
    .action(async (queue: string, options: ConnectionOptions & { limit: number }) => {
      const { tocsin, answer } = session(terminal, options);
      const seen = await tocsin.queues.groups(queue, { limit: options.limit });
      answer(seen, () => groupTable(seen, terminal.now()));
    });
}

function groupTable({ groups, total, countsAreExact }: QueueGroupsSeen, now: number): string {
  if (groups.length === 0) return 'No groups: no job with a group waits or runs.';
  const rows = groups.map(({ group, noisy, waiting, limited, running, weight, oldestWaitingAt, blockedBy }) => [
    group,
    noisy ? 'noisy' : '',
    ...[waiting, limited, running, weight],
    whenText(oldestWaitingAt ?? undefined, now) ?? '',
    blockedBy ?? '',
  ]);
  const head = ['GROUP', '', 'WAITING', 'LIMITED', 'RUNNING', 'WEIGHT', 'OLDEST', 'BLOCKED BY'];
  const more = total > groups.length ? `\n${total - groups.length} more groups.` : '';
  const rest = countsAreExact === false ? '\nMore jobs wait than were counted.' : '';
  return `${table(head, rows)}${more}${rest}`;
}
