/** A warning about a job whose key has no limit, with the answer to the enqueue. */
import { expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

const job = (queue: string, rate_limit: Json) => ({ type: 'a.b', args: [], options: { queue, rate_limit } });
const warningsOf = async (queue: string, rate_limit: Json) =>
  (await server.call('POST', `${V1}/jobs`, job(queue, rate_limit))).body.warnings;
const WARNING = [expect.stringMatching(/^rate_limit\.key alone limits nothing.* PUT \/rate-limits\/:key\.$/)];

it('a key alone is warned of until a job or an operator has set a limit of it', async () => {
  const [queue, key] = [freshName('limits'), freshName('key')];
  expect(await warningsOf(queue, { key })).toEqual(WARNING);
  expect(await warningsOf(queue, { key, concurrency: 2 })).toBeUndefined();
  expect(await warningsOf(queue, { key })).toBeUndefined();

  const other = freshName('key');
  await server.ok(200, 'PUT', `${V1}/rate-limits/${other}`, { limit: 5, period: 'minute' });
  expect(await warningsOf(queue, { key: other })).toBeUndefined();
});

it('one warning stands for all jobs of a batch, also where they go to several queues', async () => {
  const jobs = [1, 2, 3].map((n) => job(freshName(`several-${n % 2}`), { key: 'nothing-limits-me' }));
  expect((await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs })).warnings).toEqual(WARNING);
  expect((await server.ok(201, 'POST', `${V1}/jobs/bulk`, { jobs })).warnings).toEqual(WARNING);
});
