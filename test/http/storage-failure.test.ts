/** Storage that cannot be written for a while: callers are told to wait, and probes say so until it is over. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { errorDataOf } from '../../src/durable/platform-errors';
import { storageFailure } from '../../src/job/storage-failure';
import { clock, T0 } from '../support/clock';
import { failAlways } from '../support/faults';
import { freshName } from '../support/queue';
import { server, V1 } from '../support/server';

const FULL = 'database or disk is full: SQLITE_FULL';
const WRITES = /^\s*(INSERT|UPDATE|REPLACE|DELETE)/i;

/** Nothing can be written in this object. @returns ends that */
async function fill(stub: DurableObjectStub): Promise<() => Promise<void>> {
  let end: () => void = () => undefined;
  await runInDurableObject(stub, (_, { storage }) => {
    end = failAlways(storage.sql, WRITES, undefined, FULL);
  });
  return () => runInDurableObject(stub, () => end());
}

describe('storage without room', () => {
  server.emptyBeforeEach();
  clock.restoreAfterEach();
  beforeEach(() => clock.set(T0));

  it('is 503 with its reason and Retry-After, for one job and for many, and nothing is lost', async () => {
    const queue = freshName('full');
    const id = await server.add('a.b', [1], { queue });
    const free = await fill(env.QUEUES.getByName(queue));
    const job = { type: 'a.b', args: [2], options: { queue } };
    const requests: [string, unknown][] = [
      ['/jobs', job],
      ['/jobs/batch', { jobs: [job, job] }],
      ['/workers/fetch', { queues: [queue] }],
    ];
    for (const [path, body] of requests) {
      const answer = await server.call('POST', V1 + path, body);
      expect(answer, `${path} ${JSON.stringify(answer.body)}`).toMatchObject({
        status: 503,
        body: { error: { code: 'unavailable', type: 'disk_full', retryable: true } },
      });
      expect(answer.headers.get('Retry-After')).toBe('30');
    }
    await free();
    expect((await server.take(queue)).map((taken) => taken.id)).toEqual([id]);
  });

  it('makes the probes unhealthy, with the reason, until something is written again', async () => {
    const queue = freshName('full');
    await server.add('a.b', [], { queue });
    const probe = async () => (await server.call('GET', '/ready')).status;
    expect(await probe()).toBe(200);
    const stubs = [env.QUEUES.getByName(queue), env.DIRECTORY.getByName('directory')];
    const freed = await Promise.all(stubs.map(fill));
    expect(await probe()).toBe(200);
    await server.call('POST', `${V1}/jobs`, { type: 'a.b', args: [], options: { queue } });
    const { status, body } = await server.call('GET', `${V1}/health`);
    expect([status, body.status, body.backend]).toEqual([
      503,
      'unhealthy',
      {
        type: 'durable-objects',
        status: 'unreachable',
        reason: { code: 'unavailable', message: 'The storage of this server is full.' },
      },
    ]);
    clock.set(T0 + 6_000);
    expect(await probe()).toBe(503);
    await Promise.all(freed.map((free) => free()));
    clock.set(T0 + 12_000);
    expect(await probe()).toBe(200);
  });

  it('is distinguished from a defect', () => {
    for (const text of [FULL, 'disk I/O error: SQLITE_IOERR', 'internal error; reference = abc123'])
      expect(storageFailure(new Error(text))).toMatchObject({ status: 503, headers: { 'Retry-After': '30' } });
    for (const other of [new Error('no such table: SQLITE_ERROR'), 'SQLITE_FULL', undefined])
      expect(storageFailure(other)).toBeUndefined();
    const reset = Object.assign(new Error(FULL), { durableObjectReset: true, retryable: true });
    expect(errorDataOf(reset)).toMatchObject({ status: 503, type: 'disk_full' });
  });
});
