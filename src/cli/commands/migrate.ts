import { own } from '../../job/own';
import { action, list, type Members } from '../command';
import { CliError, usageError } from '../failure';
import { migrate, SYSTEM_NAMES, SYSTEMS, type SystemName } from '../migrate/migrate';
import { readAs } from '../migrate/names';
import type { Moved, Remark, Tally } from '../migrate/tally';
import { type Terminal, table } from '../output';
import { ProgressLine } from '../transfer/progress';

/** The report. @param isDry nothing was sent */
function reportText(tally: Tally, isDry: boolean): string {
  const { jobs, schedules, places, remarks, left, refused } = tally.report();
  const rows = places.map((place) => Object.values(place));
  const more = tally.failures - refused.length;
  const parts = [
    rows.length > 0 ? table(['THEIR QUEUE', 'NAME', 'QUEUE', 'TYPE', 'JOBS', 'SCHEDULES'], rows) : '',
    [countText('jobs', jobs, isDry), countText('schedules', schedules, isDry)].join('\n'),
    section('Not quite the same here:', remarks.map(remarkText)),
    section('Not moved:', left.map(remarkText)),
    section('Refused:', [
      ...refused.map(({ kind, queue, id, name, message }) => `  ${kind} ${id} of ${queue} (${name}): ${message}`),
      ...(more > 0 ? [`  and ${more} more`] : []),
    ]),
    isDry ? 'This was a dry run: nothing was sent.' : '',
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function countText(what: string, outcome: Moved, isDry: boolean): string {
  const { found, moved, there, superseded, refused } = outcome;
  const counts = [
    `${moved} ${isDry ? 'to move' : 'moved'}`,
    ...(there > 0 ? [`${there} moved before`] : []),
    ...(superseded > 0 ? [`${superseded} not needed: another job has their unique key`] : []),
    ...(refused > 0 ? [`${refused} refused`] : []),
  ];
  return `${what}: ${[`${found} found`, ...counts].join(', ')}`;
}

const section = (title: string, lines: readonly string[]): string =>
  lines.length > 0 ? [title, ...lines].join('\n') : '';

const remarkText = ({ what, count, todo }: Remark): string => `  ${what}: ${count}. ${todo}`;

const FLAGS = {
  fromEnv: ['--from-env <name>', 'environment variable with the address, which may contain a password'],
  queue: ['--queue <name>', 'only this queue of the other system; repeatable (default: all)', list],
  prefix: ['--prefix <text>', 'prefix of the keys in Redis (default: bull for BullMQ)'],
  schema: ['--schema <name>', 'schema in PostgreSQL (default: graphile_worker or pgboss)'],
  crontab: ['--crontab <file>', 'crontab of graphile-worker, whose entries become schedules'],
  as: [
    '--as <name=[queue][:type]>',
    'new name for a queue or job of the other system; repeatable',
    (text: string, before: string[] = []): string[] => [...before, text],
  ],
  dryRun: ['--dry-run', 'check everything and report, but send nothing'],
} as const;

export const migrating = action(
  'migrate',
  'move waiting jobs and schedules from another queue, which is only read',
  {
    takes: [
      ['<system>', 'system to move from', SYSTEM_NAMES],
      ['[address]', 'address of its data: redis://… or postgres://…; or use --from-env'],
    ],
    flags: FLAGS,
  },
  async ({ tocsin, terminal, members }, system, address) => {
    const url = addressOf(address, members.fromEnv, terminal.env);
    const { dryRun = false, as = [], crontab, queue: queues } = members;
    const progress = new ProgressLine(terminal, system, undefined);
    const tally = await migrate({
      ...{ system, url, within: withinOf(system, members), crontab, queues },
      ...{ renamed: readAs(as), tocsin: dryRun ? undefined : tocsin, now: terminal.now },
      progress: ({ jobs }) => progress.at(jobs.found),
    }).finally(() => progress.end());
    const { failures } = tally;
    return {
      value: { system, dryRun, ...tally.report() },
      text: reportText(tally, dryRun),
      failure: failures > 0 ? new CliError(`${failures} could not be moved.`, undefined, 'refused') : undefined,
    };
  },
);

function addressOf(address: string | undefined, fromEnv: string | undefined, env: Terminal['env']): string {
  if (address !== undefined && fromEnv !== undefined) throw usageError('Give the address or --from-env, not both.');
  if (fromEnv === undefined && address !== undefined) return address;
  if (fromEnv === undefined) throw usageError('Where is its data?', 'Give an address such as redis://localhost:6379.');
  const found = own(env, fromEnv);
  if (found) return found;
  throw usageError(`The environment has no ${fromEnv}.`);
}

function withinOf(system: SystemName, members: Members<typeof FLAGS>): string | undefined {
  const { option } = SYSTEMS[system];
  const other = option === 'prefix' ? 'schema' : 'prefix';
  if (members[other] !== undefined) throw usageError(`${system} has no ${other}.`, `Use --${option}.`);
  if (members.crontab !== undefined && !('hasCrontab' in SYSTEMS[system]))
    throw usageError(`${system} has no crontab.`);
  return members[option];
}
