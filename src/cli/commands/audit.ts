/** `tocsin audit` */
import type { Command } from 'commander';
import type { AuditEntry } from '../../client/audit';
import { integer, list, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { type Terminal, textOf } from '../output';
import { tableOf } from '../resource';
import type { Column } from '../views';

interface Options extends ConnectionOptions {
  actor?: string;
  action?: string[];
  queue?: string;
  job?: string;
  since?: string;
  limit: number;
}

export function auditCommand(terminal: Terminal): Command {
  return remote('audit', 'list changes made by operators, newest first')
    .option('--actor <name>', 'only changes made with the key of this name')
    .option('--action <action>', 'only this action, such as queue.pause or queue.*', list)
    .option('--queue <name>', 'only changes to this queue')
    .option('--job <id>', 'only changes to this job')
    .option('--since <when>', 'only after this time (RFC 3339), or in the last such as 24h')
    .option('--limit <n>', 'maximum number of entries', integer(1, 10_000), 20)
    .action(async ({ actor, action, queue, job, since, limit, ...options }: Options) => {
      const { tocsin, answer } = session(terminal, options);
      const query = {
        ...{ ...(actor && { actor }), ...(action && { action }), ...(queue && { queue }) },
        ...{ ...(job && { job }), ...(since && { since }) },
      };
      const entries: AuditEntry[] = [];
      for await (const entry of tocsin.audit.list(query, { limit })) entries.push(entry);
      answer({ entries }, () => tableOf(entries, COLUMNS, 'No entries.', terminal.now()));
    });
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  ['AT', ({ at }) => at],
  ['WHO', ({ actor }) => actor.name ?? actor.keyHint ?? 'anybody'],
  ['ACTION', ({ action }) => action],
  ['TARGET', ({ target }) => target],
  ['JOBS', ({ count }) => (count === null ? '' : String(count))],
  ['STATUS', ({ status }) => String(status)],
  ['FILTER, REASON', ({ filter, reason }) => [filter && textOf(filter), reason].filter(Boolean).join('  ')],
];
