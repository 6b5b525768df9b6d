import type { AuditEntry } from '../../client/audit';
import { action, condition, limitOf, list } from '../command';
import { textOf } from '../output';
import { listed } from '../resource';
import type { Column } from '../views';

const COLUMNS: readonly Column<AuditEntry>[] = [
  ['AT', ({ at }) => at],
  ['WHO', ({ actor }) => actor.name ?? actor.keyHint ?? 'anybody'],
  ['ACTION', ({ action }) => action],
  ['TARGET', ({ target }) => target],
  ['JOBS', ({ count }) => (count === null ? '' : String(count))],
  ['STATUS', ({ status }) => String(status)],
  ['FILTER, REASON', ({ filter, reason }) => [filter && textOf(filter), reason].filter(Boolean).join('  ')],
];

const FLAGS = {
  actor: ['--actor <name>', 'only changes made with the key of this name', condition],
  action: ['--action <action>', 'only this action, such as queue.pause or queue.*', list],
  queue: ['--queue <name>', 'only changes to this queue', condition],
  job: ['--job <id>', 'only changes to this job', condition],
  since: ['--since <when>', 'only after this time (RFC 3339), or in the last such as 24h', condition],
  limit: limitOf('entries'),
} as const;

export const audit = action('audit', 'list changes made by operators, newest first', { flags: FLAGS }, (opened) => {
  const { limit, ...query } = opened.members;
  return listed(opened, 'entries', opened.tocsin.audit.list(query, { limit }), COLUMNS, 'No entries.');
});
