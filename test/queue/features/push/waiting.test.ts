/** Why a job that is pushed does not run. */
import { beforeEach, describe, expect, it } from 'vitest';
import { clock, until } from '../../../support/clock';
import { Gate, handler } from '../../../support/handlers';
import { freshName, TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

clock.restoreAfterEach();

async function why(id: unknown): Promise<Json | undefined> {
  return (await server.job(id)).waiting_for as Json | undefined;
}

const announce = (types: Json[], status = 200) =>
  handler<{ asked: number }>('FICKLE', `/announce?status=${status}`, JSON.stringify({ types, payload: 'batch' }));

describe('a job whose handler is not running', () => {
  beforeEach(async () => {
    await handler('DOWN', '/down');
  });

  it('waits for it, and says when it was tried last, when next, and what happened', async () => {
    const queue = freshName('why-down');
    const id = await server.add('down.order', [], { queue });
    await until(async () => String((await why(id))?.detail).includes('is stopped'), 'the target to be stopped');
    const events = await server.events({ queue, types: 'queue.push_suspended' });
    const waits = (await why(id)) as Json;
    expect(waits).toMatchObject({ reason: 'handler_down', target: 'DOWN' });
    expect(waits.detail).toMatch(/The handler DOWN is stopped .*not running.* POST \/targets\/DOWN\/resume/);
    const stoppedAt = Date.parse(events[0]?.time as string);
    expect(Date.parse(waits.until as string)).toBe(stoppedAt + 60_000);
    expect(Date.parse(waits.since as string)).toBeLessThan(stoppedAt);
    await new TestQueue(queue).evict();
    expect(await why(id)).toEqual(waits);
    await handler('DOWN', '/up');
    clock.advance(61_000);
    await new TestQueue(queue).alarm();
    await server.jobIn(id, 'completed');
    expect(await why(id)).toBeUndefined();
  });
});

describe('a job for which there is no place', () => {
  it('waits for the concurrency of the queue; the next one is behind it', async () => {
    const queue = freshName('why-full');
    const gate = new Gate('PLAIN');
    await server.configure(queue, { concurrency: 1 });
    const [first, second, third] = [
      await server.add('wide.gate', gate.args, { queue }),
      await server.add('wide.gate', gate.args, { queue }),
      await server.add('wide.gate', gate.args, { queue }),
    ];
    await gate.waiting(1);
    expect(await why(first)).toBeUndefined();
    const used = `The concurrency of queue ${queue} is reached: 1 of 1 jobs run.`;
    expect(await why(second)).toMatchObject({ reason: 'concurrency', detail: expect.stringContaining(used) });
    expect(await why(third)).toMatchObject({ reason: 'behind' });
    expect((await why(third))?.detail).toMatch(new RegExp(`behind 1 job .* ${used}`));
    await server.configure(queue, { concurrency: 2 });
    await gate.waiting(2);
    expect(await why(second)).toBeUndefined();
    expect(await why(third)).toMatchObject({ reason: 'concurrency', detail: expect.stringContaining('2 of 2') });
    await gate.open();
    await server.jobIn(third, 'completed');
  });

  it('waits for the concurrency of its handler', async () => {
    const queue = freshName('why-narrow');
    const gate = new Gate('PLAIN');
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push(await server.add('patient.gate', gate.args, { queue }));
    await gate.waiting(2);
    expect(await why(ids[2])).toMatchObject({
      reason: 'concurrency',
      detail: expect.stringContaining('The concurrency of the handler PLAIN is reached: 2 of 2 jobs run'),
    });
    await gate.open();
    await server.jobIn(ids[2] as string, 'completed');
  });

  it('waits for the concurrency of its type, while another type runs', async () => {
    const queue = freshName('why-type');
    const gate = new Gate('WORK');
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push(await server.add('work.narrow', [{ do: 'gate', gate: gate.name }], { queue }));
    await gate.waiting(1);
    await server.jobIn(await server.add('work.do', [{}], { queue }), 'completed');
    expect(await why(ids[1])).toMatchObject({
      reason: 'concurrency',
      detail: expect.stringContaining('announced for work.narrow is reached: 1 of 1 jobs run'),
    });
    expect(await why(ids[2])).toMatchObject({ reason: 'behind', detail: expect.stringContaining('behind 1 job ') });
    await gate.open();
    await server.jobIn(ids[2] as string, 'completed');
  });

  it('waits for the limit of the queue', async () => {
    const queue = freshName('why-limit');
    await server.configure(queue, { rate_limit: { limit: 1, period: 'PT1H' } });
    await server.jobIn(await server.add('work.do', [{}], { queue }), 'completed');
    const id = await server.add('work.do', [{}], { queue });
    expect(await why(id)).toMatchObject({ reason: 'queue_limit', until: expect.any(String) });
    await server.configure(queue, { rate_limit: null });
    await server.jobIn(id, 'completed');
  });
});

describe('a job whose type its handler does not announce', () => {
  it('waits until the handler can be asked again, and is asked what was meant', async () => {
    const queue = freshName('why-unlisted');
    await announce([{ type: 'fickle.first' }]);
    await server.jobIn(await server.add('fickle.first', [], { queue }), 'completed');
    await announce([{ type: 'fickle.first' }], 500);
    const id = await server.add('fickle.frist', [], { queue });
    const waits = (await until(async () => {
      const found = await why(id);
      return found?.until !== undefined && found;
    }, 'the handler to have been asked')) as Json;
    expect(waits.reason).toBe('no_handler');
    expect(waits.detail).toMatch(
      /FICKLE, which did not list it when it was last asked\. Did you mean "fickle\.first"\?/,
    );
    expect(Date.parse(waits.until as string)).toBeGreaterThan(Date.now() + 50_000);
    await announce([{ type: 'fickle.frist' }]);
    // Nothing else is going to happen here, so an alarm must be set for that moment.
    await clock.passTo(new TestQueue(queue).stub, Date.parse(waits.until as string));
    await server.jobIn(id, 'completed');
    expect(await why(id)).toBeUndefined();
  });
});

describe('a job that is about to be handed out', () => {
  it('says so while its handler is asked what it takes', async () => {
    const queue = freshName('why-starting');
    await announce([], 1);
    const id = await server.add('fickle.soon', [], { queue });
    expect(await why(id)).toMatchObject({ reason: 'starting' });
    await announce([{ type: 'fickle.soon' }]);
    await server.ok(200, 'POST', `/ojs/v1/jobs/${id}/cancel`);
    expect(await why(id)).toBeUndefined();
  });
});
