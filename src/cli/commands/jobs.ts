import type { TocsinClient } from '../../client/client';
import type { JobPatch } from '../../client/patch';
import type { Duration, JobEnvelope } from '../../producer/envelope';
import { TocsinError } from '../../producer/errors';
import { type Action, action, condition, limitOf, list, type Result, type Session, stateOf } from '../command';
import { CliError, failureOf } from '../failure';
import { table } from '../output';
import { listed } from '../resource';
import { JOB_STATES, JOBS } from '../views';

const FLAGS = {
  queue: ['--queue <name>', 'only this queue; a list, or several times', list],
  state: stateOf(JOB_STATES, 'jobs', 'a state'),
  type: ['--type <type>', 'only this type; * matches anything', list],
  tags: ['--tag <tag>', 'only jobs with this tag', list],
  group: ['--group <name>', 'only jobs of this group', condition],
  parent: ['--parent <id>', 'only jobs enqueued by the handler of this job', condition],
  q: ['--q <words>', 'only jobs that contain all of these words', condition],
  fingerprint: ['--fingerprint <name>', 'only jobs of this failure group', list],
  limit: limitOf('jobs'),
} as const;

export const jobs = action('jobs', 'list jobs, newest first', { flags: FLAGS }, (opened) => {
  const { limit, ...query } = opened.members;
  return listed(opened, 'jobs', opened.tocsin.list(query, { limit }), JOBS, 'No jobs match.');
});

type Change = (tocsin: TocsinClient, id: string) => Promise<JobEnvelope>;

const JOB_IDS = [['<id...>', 'ids of the jobs']] as const;
const FROM = 'forget this recorded step and all that began after it, and run them again';

const changing = (name: string, summary: string, change: Change) =>
  action(name, summary, { takes: JOB_IDS }, (opened, ids) => each(opened, ids, change));

export const changes: readonly Action[] = [
  action(
    'retry',
    'retry jobs: discarded, cancelled, or waiting for a retry',
    { takes: JOB_IDS, flags: { from: ['--from <step>', FROM] } },
    (opened, ids) => each(opened, ids, ({ jobs }, id) => jobs.retry(id, opened.members)),
  ),
  action(
    'fork',
    'enqueue a copy of a job that starts from one of its steps',
    { takes: [['<id>', 'id of the job']], needs: { from: ['--from <step>', 'first step that the copy runs itself'] } },
    (opened, id) => each(opened, [id], ({ jobs }) => jobs.fork(id, opened.members)),
  ),
  changing('cancel', 'cancel jobs that have not ended', (tocsin, id) => tocsin.cancel(id)),
  changing('activate', 'activate jobs that were enqueued as pending', ({ jobs }, id) => jobs.activate(id)),
  action(
    'reschedule',
    'change when a waiting job starts',
    {
      takes: [
        ['<id>', 'id of the job'],
        ['[when]', 'delay (30s, PT1H) or time (RFC 3339); default: now'],
      ],
    },
    (opened, id, when) => each(opened, [id], (tocsin) => tocsin.patch(id, startOf(when))),
  ),
];

/** One job after the other; those that can be changed are, whatever becomes of the others. */
async function each({ tocsin, endpoint }: Session, ids: readonly string[], change: Change): Promise<Result> {
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
  const rows = jobs.map((job) => [job.id, job.state, job.queue, job.type]);
  const text = table(['ID', 'STATE', 'QUEUE', 'TYPE'], rows);
  const [first] = failed;
  if (!first) return { value: { jobs, failed }, text };
  const why = `${failed.length} of ${ids.length} jobs could not be changed: ${first.message}`;
  return { value: { jobs, failed }, text, failure: new CliError(why, undefined, 'partial') };
}

function startOf(when: string | undefined): JobPatch {
  if (when === undefined) return { delayUntil: null };
  return /^\d{4}-/.test(when) ? { delayUntil: when } : { delay: when as Duration };
}
