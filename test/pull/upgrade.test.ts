import { expect, it } from 'vitest';
import { enqueue, ok, startEmpty } from '../http/client';
import { ack, evictQueue, insideQueue, job, takeOne, V1 } from './support';

startEmpty();

const tables = (queue: string) =>
  insideQueue(queue, (sql) =>
    sql
      .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .toArray()
      .map(({ name }) => name),
  );

it('a queue of the first version gains progress and checkpoints at its next use and loses nothing', async () => {
  const done = await enqueue('old');
  await takeOne('old');
  await ack(done, { result: 'kept' });
  const running = await enqueue('old', { args: ['running'] });
  await takeOne('old', { worker_id: 'w1' });
  const waiting = await enqueue('old', { args: ['waiting'] });
  await insideQueue('old', (sql) => {
    for (const statement of [
      'DROP TABLE progress',
      'DROP TABLE checkpoints',
      "UPDATE meta SET value = '1' WHERE key = 'schema'",
    ]) {
      sql.exec(statement).toArray();
    }
  });
  await evictQueue('old');

  await ok(200, 'PUT', `${V1}/jobs/${running}/progress`, { progress: 0.5, checkpoint: { at: 1 } });
  expect(await tables('old')).toEqual(expect.arrayContaining(['jobs', 'progress', 'checkpoints']));
  expect(await job(done)).toMatchObject({ state: 'completed', result: 'kept' });
  expect(await job(running)).toMatchObject({ state: 'active', worker_id: 'w1', args: ['running'], progress: 0.5 });
  expect(await takeOne('old')).toMatchObject({ id: waiting, args: ['waiting'] });
  await evictQueue('old');
  expect(await job(running)).toMatchObject({ state: 'active', progress: 0.5 });
});
