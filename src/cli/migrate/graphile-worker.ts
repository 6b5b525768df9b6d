/** Reads graphile-worker out of PostgreSQL: its tables as they are now, or as they were called and cut before. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasDigits } from '../../job/envelope/json-text';
import { messageOf } from '../../job/thrown';
import { CliError, usageError } from '../failure';
import { installed, pathFrom } from '../installed';
import { type Finding, type ForeignQueues, left, type Opening, readJson, readOne } from './found';
import { crontabOf, jobOf, QUEUE, REMARKS, type Row } from './graphile-worker-job';
import { Postgres } from './postgres';

export async function openGraphileWorker({ url, within, now, crontab }: Opening): Promise<ForeignQueues> {
  const lines = crontab === undefined ? undefined : textOf(crontab);
  const db = await Postgres.open(url, within);
  const prefix = (await db.has('_private_jobs')) ? '_private_' : '';
  const table = (name: string) => `${db.schema}.${prefix}${name}`;
  if (prefix === '' && !(await db.has('jobs'))) {
    await db.close();
    const message = `There is no graphile-worker in the schema ${within}.`;
    throw new CliError(message, 'Is it another database, or another --schema?', 'source_failed');
  }
  // The names of tasks and queues were columns once.
  const hasTasks = await db.has(`${prefix}tasks`);
  const named = hasTasks ? ['tasks.identifier', 'queues.queue_name'] : ['jobs.task_identifier', 'jobs.queue_name'];
  const joined = `JOIN ${table('tasks')} tasks ON tasks.id = jobs.task_id
    LEFT JOIN ${table('job_queues')} queues ON queues.id = jobs.job_queue_id`;

  async function* read(): AsyncGenerator<Finding> {
    // As text: jsonb cannot hold each payload that json can, and a number not each integer.
    const sql = `SELECT jobs.id::text AS id, ${named[0]} AS task, ${named[1]} AS named_queue, row_to_json(jobs)::text AS job
      FROM ${table('jobs')} jobs ${hasTasks ? joined : ''}
      WHERE jobs.locked_at IS NULL AND jobs.attempts < jobs.max_attempts ORDER BY jobs.id`;
    for await (const { job, ...own } of db.all<Pick<Row, 'id' | 'task' | 'named_queue'> & { job: string }>(sql)) {
      const origin = { id: own.id, queue: QUEUE, name: own.task };
      yield readOne('job', origin, () => jobOf({ ...(readJson(job) as Row), ...own }, now));
    }
    if (lines !== undefined) yield* crontabOf(lines, parsePayload);
    const [counts] = await db.rows<{ running: number; failed: number }>(`SELECT
        count(*) FILTER (WHERE locked_at IS NOT NULL)::int AS running,
        count(*) FILTER (WHERE locked_at IS NULL AND attempts >= max_attempts)::int AS failed
      FROM ${table('jobs')}`);
    const { running = 0, failed = 0 } = counts ?? {};
    yield* left('jobs that run', running);
    yield* left('failed jobs', failed);
    if (lines !== undefined || !(await db.has(`${prefix}known_crontabs`))) return;
    const count = `SELECT count(*)::int AS known FROM ${table('known_crontabs')}`;
    const [{ known } = { known: 0 }] = await db.rows<{ known: number }>(count);
    yield* left('crontab entries', known);
  }

  return { remarks: REMARKS, queues: async () => [QUEUE], read, close: () => db.close() };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw usageError(`The crontab cannot be read: ${messageOf(error)}`);
  }
}

/** A payload may be JSON5: graphile-worker brings what reads it. */
function parsePayload(payload: string): unknown {
  const worker = pathFrom(join(process.cwd(), 'package.json'), 'graphile-worker');
  const json5 = installed<{ parse(text: string): unknown }>('json5', worker === undefined ? [] : [worker]);
  try {
    return readJson(payload);
  } catch (error) {
    if (!json5 || !(error instanceof SyntaxError)) throw error;
  }
  if (hasDigits(payload, 16)) throw new Error('JSON5 rounds its long integers: write it as JSON');
  return json5.parse(payload);
}
