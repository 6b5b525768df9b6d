import type { AuditEntry } from '../../client/audit';
import type { MaintenanceState } from '../../client/maintenance';
import type { TokenOptions } from '../../client/tokens';
import type { Duration } from '../../producer/envelope';
import { type Action, action, condition, limitOf, list, type Result, resource, type Session } from '../command';
import { type Check, projectChecks, serverChecks } from '../doctor';
import { CliError } from '../failure';
import { facts, textOf, timeText } from '../output';
import { listed } from '../resource';
import { columns } from '../views';

/** Prints a token alone, for scripts. */
export const token = action(
  'token',
  'make a token for a browser',
  {
    flags: {
      job: ['--job <id>', 'job that may be read, or signalled'],
      read: ['--read', 'allow reading state, progress and result of the job'],
      signals: ['--signal <name>', 'signal that may be sent to the job; a list, or several times', list],
      type: ['--enqueue <type>', 'allow enqueuing one job of this type'],
      queue: ['--queue <name>', 'queue of that job'],
      group: ['--group <name>', 'group of that job'],
      expiresIn: ['--expires <duration>', 'lifetime, at most 24h; default 15m'],
    },
  },
  async ({ tocsin, members: { type, queue, group, ...rights } }) => {
    const enqueue = type === undefined ? {} : { enqueue: { type, queue, group } };
    const made = await tocsin.tokens.create({ ...rights, ...enqueue } as TokenOptions);
    return { value: made, text: made.token };
  },
);

const NOTICE = {
  reason: ['--reason <text>', 'reason, shown where jobs wait', condition],
  duration: ['--for <duration>', 'end maintenance after this time: 20m, PT1H', condition],
} as const;

export const maintenance = resource(
  action('maintenance', 'show whether maintenance is on', {}, async (opened) =>
    stateOf(opened, await opened.tocsin.maintenance.get()),
  ),
  [],
  [
    action(
      'on',
      'start maintenance: no job starts, no schedule fires; jobs are still accepted',
      { flags: NOTICE },
      async (opened) =>
        stateOf(opened, await opened.tocsin.maintenance.begin(opened.members as { duration?: Duration })),
    ),
    action('off', 'end maintenance', {}, async (opened) => stateOf(opened, await opened.tocsin.maintenance.end())),
  ],
);

const stateOf = ({ terminal }: Session, state: MaintenanceState): Result => {
  return { value: { maintenance: state }, text: stateText(state, terminal.now()) };
};

function stateText({ enabled, reason, startedAt, endsAt, pendingQueues }: MaintenanceState, now: number): string {
  const pending = pendingQueues ? `\n${pendingQueues} queues could not be reached yet; they are retried.` : '';
  if (!enabled) return `off${pending}`;
  const end = endsAt === null ? '' : `, ends ${timeText(endsAt, now)}`;
  const why = reason === null ? '' : `: ${reason.replace(/\s+/g, ' ')}`;
  return `on since ${timeText(startedAt ?? undefined, now)}${end}${why}${pending}`;
}

const COLUMNS = columns<AuditEntry>({
  ...{ AT: 'at', WHO: ({ actor }) => actor.name ?? actor.keyHint ?? 'anybody', ACTION: 'action', TARGET: 'target' },
  JOBS: ({ count }) => (count === null ? '' : String(count)),
  STATUS: ({ status }) => String(status),
  'FILTER, REASON': ({ filter, reason }) => [filter && textOf(filter), reason].filter(Boolean).join('  '),
});

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

const SUMMARY = 'check the project in this folder and the queue: configuration, key, versions, settings';

/** @param version of this program */
export const doctor = (version: string): Action =>
  action('doctor', SUMMARY, {}, async ({ tocsin, endpoint }) => {
    const checks = [...projectChecks(process.cwd()), ...(await serverChecks(tocsin, endpoint, version))];
    const bad = checks.filter(({ status }) => status === 'fail').length;
    const failed = `${bad} of ${checks.length} checks failed.`;
    const failure = bad > 0 ? new CliError(failed, undefined, 'unhealthy') : undefined;
    return { value: { ok: bad === 0, checks }, text: checksText(checks), failure };
  });

function checksText(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  return facts(
    checks.map(({ name, status, message, hint }) => [
      status.toUpperCase(),
      `${name.padEnd(width)}  ${message}${hint ? `\n${' '.repeat(width + 8)}→ ${hint}` : ''}`,
    ]),
  );
}
