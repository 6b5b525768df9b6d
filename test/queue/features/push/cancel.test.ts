/** Stopping what runs: the cancellation of a pushed job reaches its handler. */
import { describe, expect, it } from 'vitest';
import { until } from '../../../support/clock';
import { Gate, runsOf } from '../../../support/handlers';
import { type Json, server } from '../../../support/server';

async function together(queue: string, jobs: unknown[][]): Promise<string[]> {
  await server.setMode(queue, 'pause');
  const ids = await server.addAll(jobs.map((args) => ({ type: 'work.do', args, options: { queue } })));
  await server.ok(200, 'POST', `/ojs/v1/queues/${queue}/resume`);
  return ids;
}

const aborted = (worker: 'WORK' | 'PLAIN', id: string) =>
  until(async () => {
    const [run] = await runsOf(worker, id);
    return run?.aborted && run;
  }, `the run of ${id} to be aborted`);

const started = (id: string) => until(async () => (await runsOf('WORK', id)).length > 0, `${id} to start`);

describe('cancelling a job that its handler runs', () => {
  it('aborts its signal with the reason, and no one else: its siblings in the call continue', async () => {
    const gate = new Gate('WORK');
    const ids = (await together('one-of-three', [gate.args, [{ do: 'hang' }], gate.args])) as [string, string, string];
    await gate.waiting(2);
    await started(ids[1]);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${ids[1]}`);
    expect(await aborted('WORK', ids[1])).toMatchObject({ reason: 'CancelledError' });
    for (const id of [ids[0], ids[2]]) expect(await runsOf('WORK', id)).toMatchObject([{ aborted: false }]);
    await gate.open();
    for (const id of [ids[0], ids[2]]) {
      expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1, result: gate.name });
    }
    expect(await server.job(ids[1])).toMatchObject({ state: 'cancelled' });
  });

  it('that does not react to its signal holds up no answer of its siblings', async () => {
    const ids = (await together('deaf', [[{ value: 7 }], [{ do: 'deaf' }]])) as [string, string];
    await started(ids[1]);
    expect(await server.state(ids[0])).toBe('active');
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${ids[1]}`);
    expect(await server.jobIn(ids[0], 'completed')).toMatchObject({ attempt: 1, result: 7 });
    expect(await server.job(ids[1])).toMatchObject({ state: 'cancelled' });
  });

  it('reaches it also when another job takes its place', async () => {
    const unique = { keys: ['type', 'args'], on_conflict: 'replace' };
    const args = [{ do: 'hang' }];
    const old = await server.add('work.do', args, { queue: 'replaced', unique });
    await started(old);
    const next = await server.add('work.do', args, { queue: 'replaced', unique });
    expect(await aborted('WORK', old)).toMatchObject({ reason: 'CancelledError' });
    expect(await server.job(old)).toMatchObject({ state: 'cancelled' });
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${next}`);
  });

  it('reaches it on a type of quick jobs when this one may run for minutes', async () => {
    for (let n = 0; n < 10; n++) await server.jobIn(await server.add('work.do', [{}], { queue: 'quick' }), 'completed');
    const id = await server.add('work.do', [{ do: 'hang' }], { queue: 'quick', timeout_ms: 60_000 });
    await started(id);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${id}`);
    expect(await aborted('WORK', id)).toMatchObject({ reason: 'CancelledError' });
  });

  it('gives its place to one that waits', async () => {
    await server.configure('place', { concurrency: 1 });
    const id = await server.add('work.do', [{ do: 'deaf' }], { queue: 'place' });
    await started(id);
    const next = await server.add('work.do', [{ value: 'next' }], { queue: 'place' });
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${id}`);
    expect(await server.jobIn(next, 'completed')).toMatchObject({ result: 'next' });
  });

  it('aborts the call to a Worker without the library, which carries only this job', async () => {
    const gate = new Gate('PLAIN');
    const id = await server.add('wide.gate', [gate.args[0] as Json], { queue: 'plain-cancel' });
    await gate.waiting(1);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${id}`);
    await aborted('PLAIN', id);
    expect(await server.job(id)).toMatchObject({ state: 'cancelled' });
    await gate.open();
  });
});
