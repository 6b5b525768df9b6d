import { Argument, type Command } from 'commander';
import { own } from '../../job/own';
import { list, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError, usageError } from '../failure';
import { migrate, SYSTEMS } from '../migrate/migrate';
import { readAs } from '../migrate/names';
import { reportText } from '../migrate/report';
import type { Terminal } from '../output';
import { ProgressLine } from '../transfer/progress';

interface Options extends ConnectionOptions {
  fromEnv?: string;
  queue?: string[];
  prefix?: string;
  schema?: string;
  crontab?: string;
  as?: string[];
  dryRun?: boolean;
}

const each = (text: string, before: string[] = []): string[] => [...before, text];

export function migrateCommand(terminal: Terminal): Command {
  return remote('migrate', 'move waiting jobs and schedules from another queue, which is only read')
    .addArgument(new Argument('<system>', 'system to move from').choices(Object.keys(SYSTEMS)))
    .argument('[address]', 'address of its data: redis://… or postgres://…; or use --from-env')
    .option('--from-env <name>', 'environment variable with the address, which may contain a password')
    .option('--queue <name>', 'only this queue of the other system; repeatable (default: all)', list)
    .option('--prefix <text>', 'prefix of the keys in Redis (default: bull for BullMQ)')
    .option('--schema <name>', 'schema in PostgreSQL (default: graphile_worker or pgboss)')
    .option('--crontab <file>', 'crontab of graphile-worker, whose entries become schedules')
    .option('--as <name=[queue][:type]>', 'new name for a queue or job of the other system; repeatable', each)
    .option('--dry-run', 'check everything and report, but send nothing')
    .action(async (system: string, address: string | undefined, options: Options) => {
      const { tocsin, answer } = session(terminal, options);
      const url = addressOf(address, options, terminal.env);
      const isDry = options.dryRun === true;
      const progress = new ProgressLine(terminal, system, undefined);
      const tally = await migrate({
        ...{ system, url, within: withinOf(system, options), crontab: options.crontab, queues: options.queue },
        ...{ renamed: readAs(options.as ?? []), tocsin: isDry ? undefined : tocsin, now: terminal.now },
        progress: ({ jobs }) => progress.at(jobs.found),
      }).finally(() => progress.end());
      const { jobs, schedules, places, remarks, leftBehind, refused, failures } = tally;
      answer({ system, dryRun: isDry, jobs, schedules, places, remarks, left: leftBehind, refused }, () =>
        reportText(tally, isDry),
      );
      if (failures > 0) throw new CliError(`${failures} could not be moved.`, undefined, 'refused');
    });
}

function addressOf(address: string | undefined, { fromEnv }: Options, env: Terminal['env']): string {
  if (address !== undefined && fromEnv !== undefined) throw usageError('Give the address or --from-env, not both.');
  if (fromEnv === undefined && address !== undefined) return address;
  if (fromEnv === undefined) throw usageError('Where is its data?', 'Give an address such as redis://localhost:6379.');
  const found = own(env, fromEnv);
  if (found) return found;
  throw usageError(`The environment has no ${fromEnv}.`);
}

function withinOf(system: string, options: Options): string | undefined {
  const taken = own(SYSTEMS, system)?.option;
  const other = taken === 'prefix' ? 'schema' : 'prefix';
  if (options[other] !== undefined) throw usageError(`${system} has no ${other}.`, `Use --${taken}.`);
  if (options.crontab !== undefined && !own(SYSTEMS, system)?.hasCrontab) throw usageError(`${system} has no crontab.`);
  return taken && options[taken];
}
