/** `tocsin audit` */
import type { Command } from 'commander';
import type { AuditEntry } from '../../client/audit';
import { integer, list, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { type Terminal, table, textOf } from '../output';

interface Options extends ConnectionOptions {
  actor?: string;
  action?: string[];
  queue?: string;
  job?: string;
  since?: string;
  limit: number;
}

/** Lists what operators have changed. */
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
      answer({ entries }, () => auditTable(entries));
    });
}

function auditTable(entries: readonly AuditEntry[]): string {
  if (entries.length === 0) return 'No entries.';
  const rows = entries.map(({ at, actor, action, target, count, status, filter, reason }) => [
    at,
    actor.name ?? actor.keyHint ?? 'anybody',
    action,
    target ?? '',
    count === null ? '' : String(count),
    String(status),
    [filter === null ? '' : textOf(filter), reason ?? ''].filter(Boolean).join('  '),
  ]);
  return table(['AT', 'WHO', 'ACTION', 'TARGET', 'JOBS', 'STATUS', 'FILTER, REASON'], rows);
}
