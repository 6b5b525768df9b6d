/** `tocsin dead` and `tocsin dead retry` */
import type { Command } from 'commander';
import type { DeadLetterSelection } from '../../client/dead-letters';
import type { JobEnvelope } from '../../producer/envelope';
import { integer, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError, usageError } from '../failure';
import type { Terminal } from '../output';
import { tableOf } from '../resource';
import { ago, type Column } from '../views';

const COLUMNS: readonly Column<JobEnvelope>[] = [
  ['ID', ({ id }) => id],
  ['QUEUE', ({ queue }) => queue],
  ['TYPE', ({ type }) => type],
  ['ATTEMPT', ({ attempt, maxAttempts }) => `${attempt}/${maxAttempts}`],
  ['DISCARDED', ({ discardedAt }, now) => ago(discardedAt, now)],
  ['LAST ERROR', ({ error }) => (error ? `${error.type}: ${error.message}` : '')],
];

interface Options extends ConnectionOptions {
  queue?: string;
  type?: string;
  errorType?: string;
  group?: string;
}

/** Longest wait for many dead letters to be redriven, in ms. */
const LONGEST_WAIT_MS = 600_000;

export function deadCommand(terminal: Terminal): Command {
  const dead = filters(remote('dead', 'list dead letters: discarded jobs kept for review'))
    .option('--limit <n>', 'maximum number of dead letters', integer(1, 10_000), 20)
    .action(async (options: Options & { limit: number }) => {
      const { tocsin, answer } = session(terminal, options);
      const { limit } = options;
      const query = conditionsOf(options);
      const jobs: JobEnvelope[] = [];
      for await (const job of tocsin.deadLetters.list(query, { limit })) jobs.push(job);
      answer({ jobs }, () => tableOf(jobs, COLUMNS, 'No dead letters.', terminal.now()));
    });
  dead.addCommand(retryCommand(terminal));
  return dead;
}

function filters(command: Command): Command {
  return command
    .option('--queue <name>', 'only this queue')
    .option('--type <type>', 'only this job type')
    .option('--error-type <type>', 'only jobs whose last error has this type')
    .option('--group <name>', 'only jobs of this group');
}

function conditionsOf({ queue, type, errorType, group }: Options) {
  return {
    ...(queue && { queue }),
    ...(type && { type }),
    ...(errorType && { errorType }),
    ...(group && { group }),
  };
}

function retryCommand(terminal: Terminal): Command {
  // Its options stand on both sides: commander reads what comes before `retry` as those of `dead`.
  return filters(remote('retry', 'retry dead letters: one, or all that match'))
    .argument('[id]', 'id of one dead letter')
    .option('--all', 'all dead letters of all queues')
    .action(async (id: string | undefined, _: Options, command: Command) => {
      const options = command.optsWithGlobals<Options & { all?: boolean }>();
      const { tocsin, answer } = session(terminal, options);
      const which = selectionOf(options);
      if (id !== undefined) {
        if (which !== undefined) throw usageError('Give an id or a selection, not both.');
        const job = await tocsin.deadLetters.retry(id);
        return answer({ succeeded: 1, failed: 0, jobs: [job] }, () => `${job.id}  ${job.state}  ${job.queue}`);
      }
      if (which === undefined) {
        throw usageError('Which dead letters?', 'Give an id, --type, --queue, --group, --error-type or --all.');
      }
      const begun = await tocsin.deadLetters.retryMany(which);
      const done = await tocsin.bulk.wait(begun, { timeoutMs: LONGEST_WAIT_MS });
      const { matched, succeeded, skipped, failed } = done;
      answer({ matched, succeeded, skipped, failed, items: done.items }, () => `${succeeded} of ${matched} retried.`);
      if (failed > 0) throw new CliError(`${failed} remain dead letters.`, 'tocsin dead', 'partial');
    });
}

/** @returns undefined when nothing is selected */
function selectionOf(options: Options & { all?: boolean }): DeadLetterSelection | undefined {
  const { all } = options;
  const query = conditionsOf(options);
  if (Object.keys(query).length > 0) {
    if (all) throw usageError('--all cannot be combined with other conditions.');
    return query;
  }
  return all ? 'all' : undefined;
}
