import { describe, expect, it } from 'vitest';
import { until } from '../../../support/clock';
import { handler, runsOf } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

const announce = (types: Json[], status = 200) =>
  handler<{ asked: number }>('FICKLE', `/announce?status=${status}`, JSON.stringify({ types, payload: 'batch' }));

/** What every job without a handler ends as. */
const NO_HANDLER = {
  state: 'discarded',
  attempt: 1,
  error: { code: 'handler_not_found', message: 'no handler registered' },
  errors: [{ reason: 'no_handler' }],
};

describe('the settings that a handler announces', () => {
  it('are a layer of the retry policy: shown, and decided by', async () => {
    const id = await server.add('work.patient', [{ do: 'throw' }], { queue: 'layers' });
    expect(await server.jobIn(id, 'retryable')).toMatchObject({
      max_attempts: 9,
      retry_delay_ms: 7_000,
      retry_effective: { max_attempts: 9, backoff_strategy: 'constant', initial_interval: 'PT7S', jitter: false },
    });
  });

  it('give way to those of the job and outrank those of the queue', async () => {
    await server.configure('layers-order', {
      default_retry: { max_attempts: 2, initial_interval: 'PT3S', on_exhaustion: 'dead_letter' },
    });
    const options = { queue: 'layers-order', retry: { initial_interval: 'PT5S' } };
    const id = await server.add('work.patient', [{ do: 'throw' }], options);
    expect(await server.jobIn(id, 'retryable')).toMatchObject({
      retry_delay_ms: 5_000,
      retry_effective: { max_attempts: 9, initial_interval: 'PT5S', on_exhaustion: 'dead_letter' },
    });
  });

  it('bound how long a run may take', async () => {
    const id = await server.add('work.patient', [{}], { queue: 'layers' });
    await server.jobIn(id, 'completed');
    expect(await server.job(id)).not.toHaveProperty('timeout_ms');
    expect(await runsOf('WORK', id)).toHaveLength(1);
  });

  it('survive a restart, also when the Worker cannot be asked afterwards', async () => {
    const types = [{ type: 'fickle.kept', max_attempts: 7, retry: { initial_interval: 'PT9S' } }];
    await announce(types);
    const first = await server.add('fickle.kept', [], { queue: 'kept' });
    await server.jobIn(first, 'completed');
    await announce(types, 0);
    await new TestQueue('kept').evict();
    const second = await server.add('fickle.kept', [], { queue: 'kept' });
    expect(await server.jobIn(second, 'completed')).toMatchObject({
      max_attempts: 7,
      retry_effective: { initial_interval: 'PT9S' },
    });
  });
});

describe('a job of a type that the announcement does not list', () => {
  it('makes the target be asked again, and runs when the type is there now', async () => {
    await announce([{ type: 'fickle.old' }]);
    await server.jobIn(await server.add('fickle.old', [], { queue: 'deployed' }), 'completed');
    await announce([{ type: 'fickle.old' }, { type: 'fickle.new', max_attempts: 5 }]);
    expect(await server.jobIn(await server.add('fickle.new', [], { queue: 'deployed' }), 'completed')).toMatchObject({
      attempt: 1,
      max_attempts: 5,
    });
  });

  it('is a dead letter when it is not, and the next one after a deploy runs', async () => {
    await announce([{ type: 'fickle.some' }]);
    const id = await server.add('fickle.none', [], { queue: 'unlisted', retry: { on_exhaustion: 'discard' } });
    expect(await server.jobIn(id, 'discarded')).toMatchObject(NO_HANDLER);
    expect(await server.events({ queue: 'unlisted', types: 'job.discarded' })).toMatchObject([
      { data: { job_id: id, reason: 'no_handler', dead_letter: true } },
    ]);
    expect((await server.ok(200, 'GET', '/ojs/v1/dead-letter?queue=unlisted')).jobs).toMatchObject([{ id }]);
    await announce([{ type: 'fickle.none' }]);
    await server.ok(200, 'POST', `/ojs/v1/dead-letter/${id}/retry`);
    await server.jobIn(id, 'completed');
  });

  it('is a dead letter when the Worker was deployed without it in the meantime', async () => {
    await announce([{ type: 'fickle.going' }]);
    await server.jobIn(await server.add('fickle.going', [], { queue: 'removed' }), 'completed');
    await announce([{ type: 'fickle.other' }]);
    const id = await server.add('fickle.going', [], { queue: 'removed' });
    expect(await server.jobIn(id, 'discarded')).toMatchObject(NO_HANDLER);
    await server.jobIn(await server.add('fickle.other', [], { queue: 'removed' }), 'completed');
  });

  it('is a dead letter in a queue that belongs to handlers', async () => {
    const id = await server.add('nobody.knows', [], { queue: 'handled' });
    expect(await server.jobIn(id, 'discarded')).toMatchObject(NO_HANDLER);
    await server.jobIn(await server.add('work.do', [{}], { queue: 'handled' }), 'completed');
  });

  it('waits for a worker that pulls in a queue that belongs to no one', async () => {
    const id = await server.add('nobody.knows', [], { queue: 'unowned' });
    await server.jobIn(await server.add('work.do', [{}], { queue: 'unowned' }), 'completed');
    expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 0 });
  });
});

describe('a Worker that does not announce anything', () => {
  it('is given single deliveries of whatever is mapped to it', async () => {
    const id = await server.add('plain.anything.at.all', [{}], { queue: 'silent' });
    await server.jobIn(id, 'completed');
    expect(await runsOf('PLAIN', id)).toMatchObject([{ body: { job: { id } } }]);
  });

  it.each([
    ['fails', 500],
    ['throws', 0],
  ])('because it %s when asked is given its jobs anyway', async (what, status) => {
    await announce([{ type: 'fickle.hidden' }], status);
    await server.jobIn(await server.add('fickle.hidden', [], { queue: `asked-${what}` }), 'completed');
  });

  it('because it hangs holds up no other target of the queue', async () => {
    await announce([], 1);
    await server.add('fickle.slow', [], { queue: 'asked-slow' });
    await until(async () => (await announce([], 1)).asked > 0, 'the target to be asked');
    await server.jobIn(await server.add('work.do', [{}], { queue: 'asked-slow' }), 'completed', 3_000);
  });
});
