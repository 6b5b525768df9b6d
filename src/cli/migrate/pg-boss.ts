/** Reads pg-boss out of PostgreSQL: the tables of versions 7 to 12, whose columns differ little. */
import { type Finding, type ForeignQueues, left, type Opening } from './found';
import { jobOf, REMARKS, type Row, scheduleOf } from './pg-boss-job';
import { Postgres } from './postgres';

/** The usual schema. */
export const SCHEMA = 'pgboss';

/** Its own queues, for schedules and the like. */
const NOT_OWN = "name NOT LIKE '\\_\\_pgboss\\_\\_%'";

/** Opens pg-boss. */
export async function openPgBoss({ url, within = SCHEMA, now }: Opening): Promise<ForeignQueues> {
  const db = await Postgres.open(url, within);
  const { schema } = db;

  /** The names of queues, of a condition on them. */
  const wantedOf = (queues: readonly string[] | undefined) =>
    [queues ? `${NOT_OWN} AND name = ANY($1)` : NOT_OWN, queues ? [queues] : []] as const;

  async function queues(): Promise<string[]> {
    const tables = ['job', 'schedule', 'queue'];
    const there = [];
    for (const table of tables) if (await db.has(table)) there.push(table);
    const names = there.map((table) => `SELECT name FROM ${schema}.${table} WHERE ${NOT_OWN}`);
    if (names.length === 0) return [];
    const found = await db.rows<{ name: string }>(`${names.join(' UNION ')} ORDER BY name`);
    return found.map(({ name }) => name);
  }

  async function* read(wanted: readonly string[] | undefined): AsyncGenerator<Finding> {
    const [where, values] = wantedOf(wanted);
    let ofFlows = 0;
    const sql = `SELECT to_jsonb(job) AS job FROM ${schema}.job
      WHERE state < 'active' AND ${where} ORDER BY job.created_on, id`;
    // Older columns have no underscores.
    const isOld = !(await hasColumn('job', 'created_on'));
    for await (const { job } of db.all<{ job: Row }>(isOld ? sql.replace('created_on', 'createdon') : sql, values)) {
      if (job.blocked === true || job.blocking === true) ofFlows++;
      else yield jobOf(job, now);
    }
    const known = (await db.has('queue'))
      ? await db.rows<{ queue: Row }>(`SELECT to_jsonb(queue) AS queue FROM ${schema}.queue WHERE ${where}`, values)
      : [];
    const byName = new Map(known.map(({ queue }) => [queue.name, queue]));
    const planned = `SELECT to_jsonb(schedule) AS schedule FROM ${schema}.schedule WHERE ${where} ORDER BY name`;
    for (const { schedule } of await db.rows<{ schedule: Row }>(planned, values)) {
      yield scheduleOf(schedule, byName.get(schedule.name) ?? {});
    }
    yield* left('jobs of flows', ofFlows, 'Let the old workers finish them, or enqueue them as a workflow.');
    const counted = `SELECT state::text, count(*)::int AS count FROM ${schema}.job
      WHERE state >= 'active' AND ${where} GROUP BY state ORDER BY state`;
    for (const { state, count } of await db.rows<{ state: string; count: number }>(counted, values)) {
      yield* left(`${state} jobs`, count, TODO[state] ?? ENDED);
    }
  }

  async function hasColumn(table: string, name: string): Promise<boolean> {
    const sql = 'SELECT 1 AS one FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2';
    return (await db.rows(sql, [`${schema}.${table}`, name])).length > 0;
  }

  return { remarks: REMARKS, queues, read, close: () => db.close() };
}

const ENDED = 'They have ended: nothing to do.';

/** What to do about jobs in this state. */
const TODO: Readonly<Record<string, string>> = {
  active: 'Stop the old workers once these have ended, and migrate again: what failed waits then.',
  failed: 'Retry them there before you migrate, if they are to run.',
};
