/** Warnings about types that no handler takes, with the answer to the enqueue. */
import { describe, expect, it, vi } from 'vitest';
import { liveClient } from '../../client/live-client';
import { counting } from '../../support/calls';
import { handler } from '../../support/handlers';
import { freshName, TestQueue } from '../../support/queue';
import { rowsWritten } from '../../support/rows';
import { type Json, server, V1 } from '../../support/server';

const send = (type: string, queue: string, rest: Json = {}) =>
  server.call('POST', `${V1}/jobs`, { type, args: [], options: { queue, ...rest } });

describe('an enqueue of a type that no handler takes', () => {
  it('in a queue that belongs to handlers is accepted with a warning, also the one that makes the queue', async () => {
    const text = 'No handler takes the type "wrok.do", and queue owned belongs to handlers. Did you mean "work.do"?';
    const { status, headers, body } = await send('wrok.do', 'owned');
    expect(status).toBe(201);
    expect(body.warnings).toEqual([text]);
    expect(headers.get('Warning')).toBe(`299 - "${text.replaceAll('"', '\\"')}"`);
    expect(await server.jobIn(body.job?.id as string, 'discarded')).toMatchObject({ discard_reason: 'no_handler' });
  });

  it('is informed which announced type is near, once the handler has been asked', async () => {
    const queue = freshName('warn-known');
    expect((await send('work.dpo', queue)).body).not.toHaveProperty('warnings');
    await server.jobIn(await server.add('work.do', [{}], { queue }), 'completed');
    expect((await send('work.dpo', queue)).body.warnings).toEqual([
      'No handler takes the type "work.dpo": it is mapped to WORK, which did not list it when it was last asked. Did you mean "work.do"?',
    ]);
  });

  it('that waits for workers that pull is warned of only where a handled type is near', async () => {
    const queue = freshName('warn-pulled');
    expect((await send('wrok.do', queue)).body.warnings).toEqual([
      'No handler takes the type "wrok.do", so its jobs wait for a worker that pulls. Did you mean "work.do"?',
    ]);
    const { headers, body } = await send('quite.different', queue);
    expect(body).not.toHaveProperty('warnings');
    expect(headers.get('Warning')).toBeNull();
  });

  it('in a batch is warned of once for each type, over all queues, alone or all or none', async () => {
    const queue = freshName('warn-batch');
    const job = (type: string, name: string) => ({ type, args: [], options: { queue: name } });
    const jobs = [job('no.one', 'owned'), job('no.one', 'owned'), job('work.do', 'owned'), job('wrok.do', queue)];
    const batch = await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs });
    expect(batch.warnings).toHaveLength(2);
    const bulk = await server.ok(201, 'POST', `${V1}/jobs/bulk`, { jobs });
    expect(bulk.warnings).toEqual(batch.warnings);
  });

  it('is warned of again when the request is sent again under its key', async () => {
    const body = { type: 'no.one', args: [], options: { queue: 'owned' } };
    const again = () => server.call('POST', `${V1}/jobs`, body, { 'Idempotency-Key': 'warn-again' });
    const [first, second] = [await again(), await again()];
    expect(second.body.job?.id).toBe(first.body.job?.id);
    expect(second.body.warnings).toEqual(first.body.warnings);
  });

  it('costs neither a call nor a row more than one that is handled', async () => {
    const calls = counting();
    const enqueue = (type: string, queue: string) =>
      calls.server.call('POST', `${V1}/jobs`, { type, args: [], options: { queue, delay_until: '+PT1H' } });
    await enqueue('work.do', 'owned');
    calls.take();
    const rowsOf = (type: string) => rowsWritten(new TestQueue('owned').stub, () => enqueue(type, 'owned'));
    const rows = { handled: await rowsOf('work.do'), unhandled: await rowsOf('no.one') };
    expect(rows.unhandled).toBe(rows.handled);
    const [first, second] = calls.take();
    expect(second).toBe(first);
    expect(second).toBe('owned.enqueue');
  });

  it('says nothing about a handled type, and follows what handlers announce', async () => {
    const queue = freshName('warn-follow');
    const announce = (types: string[]) =>
      handler('FICKLE', '/announce', JSON.stringify({ types: types.map((type) => ({ type })), payload: 'batch' }));
    await announce(['fickle.one']);
    await server.jobIn(await server.add('fickle.one', [], { queue }), 'completed');
    expect((await send('fickle.two', queue)).body.warnings).toHaveLength(1);
    await announce(['fickle.one', 'fickle.two']);
    await server.jobIn((await send('fickle.two', queue)).body.job?.id as string, 'completed');
    expect((await send('fickle.two', queue)).body).not.toHaveProperty('warnings');
  });
});

describe('the client', () => {
  it('passes warnings to onWarning', async () => {
    const warnings: string[] = [];
    const client = liveClient({ onWarning: (warning) => void warnings.push(warning) });
    await client.enqueue('no.one', [], { queue: 'owned' });
    await client.enqueue('no.one', [], { queue: 'owned' });
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain('No handler takes the type "no.one"');
  });

  it('writes each warning to the console once, without onWarning', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const client = liveClient();
    for (const type of ['no.body', 'no.body', 'no.soul']) await client.enqueue(type, [], { queue: 'owned' });
    expect(warn.mock.calls.map(([text]) => text)).toEqual([
      expect.stringContaining('tocsin: No handler takes the type "no.body"'),
      expect.stringContaining('"no.soul"'),
    ]);
    warn.mockRestore();
  });
});
