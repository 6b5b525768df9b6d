// How `tocsin migrate` sends: in batches that are bounded, again what could not be taken just now, and not what is wrong.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load } from '../cli/cli.mjs';

const { Sender, Tally, TocsinError } = await load('migrate/send.ts', 'migrate/tally.ts', '../producer/errors.ts');

const found = (id, other = {}) => ({
  ...{ kind: 'job', id: String(id), queue: 'mail', name: 'send', createdAt: 1, args: [id], options: {}, remarks: [] },
  ...other,
});
const full = { status: 'failed', error: { code: 'QUEUE_FULL', type: 'QUEUE_FULL', message: 'full', retryable: true } };

/** A sender, and what it did. @param answer what the server says to a batch */
function sending(answer) {
  const [batches, pauses] = [[], []];
  const tocsin = {
    async enqueueEach(jobs) {
      batches.push(jobs);
      return { items: answer(jobs, batches.length) };
    },
  };
  const tally = new Tally({});
  const pause = async (ms) => void pauses.push(ms);
  const sender = new Sender({
    ...{ tocsin, system: 'bullmq', within: 'bull', renamed: new Map(), tally, now: () => 2, pause },
  });
  return { sender, tally, batches, pauses };
}

const created = (jobs) => jobs.map((_, index) => ({ index, status: 'created' }));

describe('jobs that move', () => {
  it('go in batches of a thousand, and of four megabytes', async () => {
    const many = sending(created);
    for (let id = 0; id < 2500; id++) await many.sender.job(found(id));
    await many.sender.flush();
    assert.deepEqual(
      many.batches.map(({ length }) => length),
      [1000, 1000, 500],
    );
    const large = sending(created);
    for (let id = 0; id < 5; id++) await large.sender.job(found(id, { args: ['x'.repeat(1_000_000)] }));
    await large.sender.flush();
    assert.deepEqual(
      large.batches.map(({ length }) => length),
      [4, 1],
    );
  });

  it('are sent again where there was no room, without those that were taken', async () => {
    const { sender, tally, batches, pauses } = sending((jobs, time) =>
      jobs.map((job, index) => (time < 3 && job.args[0] === 1 ? { ...full, index } : { index, status: 'created' })),
    );
    for (let id = 0; id < 3; id++) await sender.job(found(id));
    await sender.flush();
    assert.deepEqual(
      batches.map(({ length }) => length),
      [3, 1, 1],
    );
    assert.deepEqual(pauses, [1000, 2000]);
    assert.deepEqual([tally.jobs.moved, tally.jobs.refused], [3, 0]);
  });

  it('do not wait for each batch, once a queue has stayed full', async () => {
    const { sender, tally, pauses } = sending((jobs) => jobs.map((_, index) => ({ ...full, index })));
    for (let id = 0; id < 3000; id++) await sender.job(found(id));
    await sender.flush();
    assert.equal(pauses.length, 4);
    assert.deepEqual([tally.jobs.refused, tally.refused.length], [3000, 100]);
  });

  it('are kept apart from others that have their unique key', async () => {
    const { sender, tally } = sending((jobs) =>
      jobs.map(({ options }, index) => {
        const details = { existingJobId: options.id };
        if (index === 0) return { index, status: 'duplicate', error: { ...full.error, details } };
        return { index, status: 'duplicate', job: { id: 'another' } };
      }),
    );
    for (let id = 0; id < 2; id++) await sender.job(found(id));
    await sender.flush();
    assert.deepEqual([tally.jobs.there, tally.jobs.superseded], [1, 1]);
  });

  it('end the migration where nothing can be sent at all', async () => {
    const refusal = new TocsinError('no', { status: 401, code: 'unauthorized', retryable: false });
    const { sender, pauses } = sending(() => {
      throw refusal;
    });
    await sender.job(found(1));
    await assert.rejects(sender.flush(), refusal);
    assert.deepEqual(pauses, []);
    const away = sending(() => {
      throw new TocsinError('away', { status: 503, code: 'unavailable', retryable: true });
    });
    await away.sender.job(found(1));
    await assert.rejects(away.sender.flush(), /away/);
    assert.deepEqual(away.pauses, [1000, 2000, 4000, 8000]);
  });

  it('are not sent where they cannot be jobs here', async () => {
    const { sender, tally, batches } = sending(created);
    await sender.job(found(1, { name: '日' }));
    await sender.job(found(2, { args: [1n] }));
    await sender.job(found(3, { options: { unique: { key: 'x'.repeat(300), onConflict: 'ignore' } } }));
    await sender.flush();
    assert.deepEqual([batches.length, tally.jobs.refused], [0, 3]);
    assert.deepEqual(
      tally.refused.map(({ id }) => id),
      ['1', '2', '3'],
    );
  });
});
