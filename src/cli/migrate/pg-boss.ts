/** Reads pg-boss out of PostgreSQL: the tables of versions 7 to 12, whose columns differ little. */
import { type Finding, type ForeignQueues, type FoundLeft, left, type Opening, readJson, readOne } from './found';
import { jobOf, REMARKS, type Row, scheduleOf } from './pg-boss-job';
import { Postgres } from './postgres';

/** A row as JSON text, so that no number in it is rounded. */
interface Named {
  name: string;
  job: string;
}

/** Stands for a job of a flow, which stays. */
const OF_FLOW: FoundLeft = { kind: 'left', what: 'jobs of flows', count: 1, todo: '' };

/** Its own queues, for schedules and the like. */
const NOT_OWN = "name NOT LIKE '\\_\\_pgboss\\_\\_%'";

export async function openPgBoss({ url, within, now }: Opening): Promise<ForeignQueues> {
  const db = await Postgres.open(url, within);
  const { schema } = db;

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
    const sql = `SELECT id::text, name, row_to_json(job)::text AS job FROM ${schema}.job
      WHERE state < 'active' AND ${where} ORDER BY job.created_on, id`;
    // Older columns have no underscores.
    const isOld = !(await hasColumn('job', 'created_on'));
    const rows = db.all<Named & { id: string }>(isOld ? sql.replace('created_on', 'createdon') : sql, values);
    for await (const { id, name, job } of rows) {
      const found = readOne('job', { id, queue: name, name }, () => {
        const row = readJson(job) as Row;
        return row.blocked === true || row.blocking === true ? OF_FLOW : jobOf(row, now);
      });
      if (found === OF_FLOW) ofFlows++;
      else yield found;
    }
    const known = (await db.has('queue'))
      ? await db.rows<{ queue: Row }>(`SELECT to_jsonb(queue) AS queue FROM ${schema}.queue WHERE ${where}`, values)
      : [];
    const byName = new Map(known.map(({ queue }) => [queue.name, queue]));
    const planned = `SELECT name, row_to_json(schedule)::text AS job FROM ${schema}.schedule WHERE ${where} ORDER BY name`;
    for (const { name, job } of await db.rows<Named>(planned, values)) {
      const read = () => scheduleOf(readJson(job) as Row, byName.get(name) ?? {});
      yield readOne('schedule', { id: name, queue: name, name }, read);
    }
    yield* left('jobs of flows', ofFlows);
    const counted = `SELECT state::text, count(*)::int AS count FROM ${schema}.job
      WHERE state >= 'active' AND ${where} GROUP BY state ORDER BY state`;
    for (const { state, count } of await db.rows<{ state: string; count: number }>(counted, values)) {
      yield* left(`${state} jobs`, count);
    }
  }

  async function hasColumn(table: string, name: string): Promise<boolean> {
    const sql = 'SELECT 1 AS one FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2';
    return (await db.rows(sql, [`${schema}.${table}`, name])).length > 0;
  }

  return { remarks: REMARKS, queues, read, close: () => db.close() };
}
