import { expect, it } from 'vitest';
import firstSchema from '../../../migrations/0001_queue.sql';
import { TestQueue } from '../../support/queue';
import { server, V1 } from '../../support/server';

server.emptyBeforeEach();

const tables = (queue: string) =>
  new TestQueue(queue).inside(({ sql }) =>
    sql
      .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .toArray()
      .map(({ name }) => name),
  );

type Row = Record<string, SqlStorageValue>;

/** Rebuilds the database as the first version would have written it: its tables and columns, with the same rows. */
function toFirstVersion(sql: SqlStorage): void {
  const named = () =>
    sql
      .exec<{ name: string }>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
      )
      .toArray()
      .map(({ name }) => name);
  const rows = new Map(named().map((table) => [table, sql.exec<Row>(`SELECT * FROM ${table}`).toArray()]));
  for (const table of rows.keys()) sql.exec(`DROP TABLE ${table}`).toArray();
  sql.exec(firstSchema).toArray();
  for (const table of named()) {
    const columns = sql.exec<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`).toArray();
    const names = columns.map(({ name }) => name);
    const insert = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
    for (const row of rows.get(table) ?? []) sql.exec(insert, ...names.map((name) => row[name] ?? null)).toArray();
  }
  sql.exec("UPDATE meta SET value = '1' WHERE key = 'schema'").toArray();
}

it('a queue of the first version gains progress and checkpoints at its next use and loses nothing', async () => {
  const done = await server.enqueue('old');
  await server.takeOne('old');
  await server.ack(done, { result: 'kept' });
  const running = await server.enqueue('old', { args: ['running'] });
  await server.takeOne('old', { worker_id: 'w1' });
  const waiting = await server.enqueue('old', { args: ['waiting'] });
  await new TestQueue('old').inside(({ sql }) => toFirstVersion(sql));
  await new TestQueue('old').evict();

  await server.ok(200, 'PUT', `${V1}/jobs/${running}/progress`, { progress: 0.5, checkpoint: { at: 1 } });
  expect(await tables('old')).toEqual(expect.arrayContaining(['jobs', 'progress', 'checkpoints']));
  expect(await server.job(done)).toMatchObject({ state: 'completed', result: 'kept' });
  expect(await server.job(running)).toMatchObject({
    state: 'active',
    worker_id: 'w1',
    args: ['running'],
    progress: 0.5,
  });
  expect(await server.takeOne('old')).toMatchObject({ id: waiting, args: ['waiting'] });
  await new TestQueue('old').evict();
  expect(await server.job(running)).toMatchObject({ state: 'active', progress: 0.5 });
});
