/** Reads graphile-worker out of PostgreSQL: the tables of 0.14 and newer, or of 0.13 under their older names. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CliError, usageError } from '../failure';
import { installed, pathFrom } from '../installed';
import { type Finding, type ForeignQueues, left, messageOf, type Opening } from './found';
import { crontabOf, jobOf, QUEUE, REMARKS, type Row } from './graphile-worker-job';
import { Postgres } from './postgres';

/** The usual schema. */
export const SCHEMA = 'graphile_worker';

/** Opens graphile-worker. */
export async function openGraphileWorker({ url, within = SCHEMA, now, crontab }: Opening): Promise<ForeignQueues> {
  const lines = crontab === undefined ? undefined : textOf(crontab);
  const db = await Postgres.open(url, within);
  const prefix = (await db.has('_private_jobs')) ? '_private_' : '';
  if (prefix === '' && !(await db.has('tasks'))) {
    await db.close();
    const message = `There is no graphile-worker of version 0.13 or newer in the schema ${within}.`;
    throw new CliError(message, 'Is it another database, or another --schema?', 'source_failed');
  }
  const table = (name: string) => `${db.schema}.${prefix}${name}`;

  async function* read(): AsyncGenerator<Finding> {
    const sql = `SELECT to_jsonb(jobs) - 'payload' || jsonb_build_object(
        'id', jobs.id::text, 'task', tasks.identifier, 'named_queue', queues.queue_name) AS job, jobs.payload
      FROM ${table('jobs')} jobs JOIN ${table('tasks')} tasks ON tasks.id = jobs.task_id
      LEFT JOIN ${table('job_queues')} queues ON queues.id = jobs.job_queue_id
      WHERE jobs.locked_at IS NULL AND jobs.attempts < jobs.max_attempts ORDER BY jobs.id`;
    for await (const { job, payload } of db.all<{ job: Row; payload: unknown }>(sql)) {
      yield jobOf({ ...job, payload }, now);
    }
    if (lines !== undefined) yield* crontabOf(lines, parsePayload);
    const [counts] = await db.rows<{ running: number; failed: number; crontab: number }>(`SELECT
      (SELECT count(*)::int FROM ${table('jobs')} WHERE locked_at IS NOT NULL) AS running,
      (SELECT count(*)::int FROM ${table('jobs')} WHERE locked_at IS NULL AND attempts >= max_attempts) AS failed,
      (SELECT count(*)::int FROM ${table('known_crontabs')}) AS crontab`);
    const { running = 0, failed = 0, crontab: known = 0 } = counts ?? {};
    const again = 'Stop the old workers once these have ended, and migrate again: what failed waits then.';
    yield* left('jobs that run', running, again);
    yield* left('failed jobs', failed, 'Retry them there before you migrate, if they are to run.');
    const todo =
      'Their times are not in the database: name the file with --crontab, or write them with tocsin crons set.';
    if (lines === undefined) yield* left('crontab entries', known, todo);
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
  return (json5 ?? JSON).parse(payload);
}
