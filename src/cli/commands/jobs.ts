import type { Command } from 'commander';
import type { TocsinClient } from '../../client/client';
import type { JobPatch } from '../../client/patch';
import type { JobQuery } from '../../client/queries';
import type { JobState } from '../../job/states';
import type { Duration, JobEnvelope } from '../../producer/envelope';
import { TocsinError } from '../../producer/errors';
import { integer, list, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError, failureOf, usageError } from '../failure';
import { type Terminal, table } from '../output';
import { tableOf } from '../resource';
import { JOB_STATES } from '../states';
import { JOBS } from '../views';

interface ListOptions extends ConnectionOptions {
  queue?: string[];
  state?: string[];
  type?: string[];
  tag?: string[];
  group?: string;
  parent?: string;
  q?: string;
  fingerprint?: string[];
  limit: number;
}

export function jobsCommand(terminal: Terminal): Command {
  return remote('jobs', 'list jobs, newest first')
    .option('--queue <name>', 'only this queue; a list, or several times', list)
    .option('--state <state>', `only jobs in this state: ${JOB_STATES.join(', ')}`, list)
    .option('--type <type>', 'only this type; * matches anything', list)
    .option('--tag <tag>', 'only jobs with this tag', list)
    .option('--group <name>', 'only jobs of this group')
    .option('--parent <id>', 'only jobs enqueued by the handler of this job')
    .option('--q <words>', 'only jobs that contain all of these words')
    .option('--fingerprint <name>', 'only jobs of this failure group', list)
    .option('--limit <n>', 'maximum number of jobs', integer(1, 10_000), 20)
    .action(async (options: ListOptions) => {
      const { tocsin, answer } = session(terminal, options);
      const wrong = options.state?.find((state) => !JOB_STATES.some((known) => known === state));
      if (wrong !== undefined) throw usageError(`${wrong} is not a state.`, `States are ${JOB_STATES.join(', ')}.`);
      const jobs: JobEnvelope[] = [];
      for await (const job of tocsin.list(queryOf(options), { limit: options.limit })) jobs.push(job);
      answer({ jobs }, () => tableOf(jobs, JOBS, 'No jobs match.', terminal.now()));
    });
}

function queryOf({ queue, state, type, tag, group, parent, q, fingerprint }: ListOptions): JobQuery {
  return {
    ...(queue && { queue }),
    ...(state && { state: state as JobState[] }),
    ...(type && { type }),
    ...(tag && { tags: tag }),
    ...(group && { group }),
    ...(parent && { parent }),
    ...(q && { q }),
    ...(fingerprint && { fingerprint }),
  };
}

export function changeCommands(terminal: Terminal): Command[] {
  return [
    remote('retry', 'retry jobs: discarded, cancelled, or waiting for a retry')
      .argument('<id...>', 'ids of the jobs')
      .action((ids: string[], options: ConnectionOptions) => each(ids, options, (tocsin, id) => tocsin.jobs.retry(id))),
    remote('cancel', 'cancel jobs that have not ended')
      .argument('<id...>', 'ids of the jobs')
      .action((ids: string[], options: ConnectionOptions) => each(ids, options, (tocsin, id) => tocsin.cancel(id))),
    remote('activate', 'activate jobs that were enqueued as pending')
      .argument('<id...>', 'ids of the jobs')
      .action((ids: string[], options: ConnectionOptions) =>
        each(ids, options, (tocsin, id) => tocsin.jobs.activate(id)),
      ),
    remote('reschedule', 'change when a waiting job starts')
      .argument('<id>', 'id of the job')
      .argument('[when]', 'delay (30s, PT1H) or time (RFC 3339); default: now')
      .action((id: string, when: string | undefined, options: ConnectionOptions) =>
        each([id], options, (tocsin) => tocsin.patch(id, startOf(when))),
      ),
  ];

  /** One job after the other; those that can be changed are, whatever becomes of the others. */
  async function each(
    ids: string[],
    options: ConnectionOptions,
    change: (tocsin: TocsinClient, id: string) => Promise<JobEnvelope>,
  ): Promise<void> {
    const { tocsin, endpoint, answer } = session(terminal, options);
    const jobs: JobEnvelope[] = [];
    const failed: { id: string; code: string; message: string }[] = [];
    for (const id of ids) {
      try {
        jobs.push(await change(tocsin, id));
      } catch (error) {
        // No one answers, or this key may not: the others would fail alike.
        if (ids.length === 1 || !(error instanceof TocsinError) || error.status === 0 || error.status === 401)
          throw error;
        const { code, message } = failureOf(error, endpoint);
        failed.push({ id, code, message });
      }
    }
    answer({ jobs, failed }, () =>
      table(
        ['ID', 'STATE', 'QUEUE', 'TYPE'],
        jobs.map((job) => [job.id, job.state, job.queue, job.type]),
      ),
    );
    if (failed.length === 0) return;
    const first = failed.map(({ message }) => message)[0] ?? '';
    throw new CliError(`${failed.length} of ${ids.length} jobs could not be changed: ${first}`, undefined, 'partial');
  }
}

function startOf(when: string | undefined): JobPatch {
  if (when === undefined) return { delayUntil: null };
  return /^\d{4}-/.test(when) ? { delayUntil: when } : { delay: when as Duration };
}
