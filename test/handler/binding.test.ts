/** An open call between two Workers: the answer begins while the body of the request still arrives. */
import { env } from 'cloudflare:workers';
import { expect, it } from 'vitest';
import { freshName } from '../support/queue';
import { openCall } from './live-call';

it('a handler exchanges messages over a service binding', async () => {
  const worker = { fetch: (request: Request) => env.WORK.fetch(request) };
  const id = freshName('talk');
  const started_at = new Date().toISOString();
  const call = openCall(worker, [{ type: 'work.talk', id, attempt: 2, started_at }]);
  const { del_0 } = await call.results;
  expect(call.said).toMatchObject([
    { call: 1, progress: { progress: 0.5, message: 'half way' } },
    { call: 2, step: { name: 'first', result: 1 } },
    { call: 3, enqueue: [{ type: 'work.do', meta: { parent_id: id } }] },
    { status: 'snoozed', steps: { pause: {} }, log: [{ message: 'first step done', fields: { first: 1 } }] },
  ]);
  expect(del_0?.until).toBeGreaterThan(Date.now() + 3_500_000);
});
