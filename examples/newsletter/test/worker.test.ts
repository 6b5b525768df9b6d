/** The Worker as a whole: its routes, its queues, its handlers, and the time that passes. */
import { exports } from 'cloudflare:workers';
import { expect, it } from 'vitest';
import type { JobsOf } from '../../../src/library';
import { testQueue } from '../../../src/testing/vitest';
import type { handlers } from '../src/handlers';

const queue = testQueue<JobsOf<typeof handlers>>({ now: '2040-05-01T12:00:00Z' });

const ADA = 'ada@example.com';

async function subscribe(address: string): Promise<string> {
  const response = await exports.default.fetch(`http://newsletter/subscribers/${address}`, { method: 'POST' });
  expect(response.status).toBe(202);
  return ((await response.json()) as { id: string }).id;
}

it('asks for a confirmation, and welcomes whoever gives it', async () => {
  const id = await subscribe(ADA);
  await queue.idle();
  await expect(queue).toHaveCompleted('mail.send', [{ to: ADA, template: 'confirm' }], { queue: 'mail' });
  await queue.advance('1d');
  await expect(queue).not.toHaveEnqueued('mail.send', [{ to: ADA, template: 'welcome' }]);
  await queue.signal(id, 'confirmed');
  await queue.idle();
  await expect(queue).toHaveCompleted('mail.send', [{ to: ADA, template: 'welcome' }]);
  expect(await queue.job(id)).toMatchObject({ state: 'completed', attempt: 1, result: { subscribed: ADA } });
});

it('forgets whoever does not', async () => {
  const id = await subscribe(ADA);
  await queue.advance('2d');
  await expect(queue).not.toHaveEnqueued('mail.send', [{ to: ADA, template: 'welcome' }]);
  expect(await queue.job(id)).toMatchObject({ state: 'discarded', error: { type: 'SignalTimeoutError' } });
});

it('tries a busy mail server again after half a minute', async () => {
  const { id } = await queue.enqueue('mail.send', [{ to: 'bob@busy.example', template: 'digest' }]);
  await queue.idle();
  expect(await queue.job(id)).toMatchObject({ state: 'retryable', attempt: 1 });
  await queue.advance('1m');
  expect(await queue.job(id)).toMatchObject({ state: 'completed', attempt: 3 });
});

it('sends the digest every morning', async () => {
  await subscribe(ADA);
  await queue.advance('2d');
  const digests = await queue.named('mail').jobs({ where: { 'args.0.template': 'digest' } });
  expect(digests.map(({ createdAt }) => createdAt)).toEqual(['2040-05-02T07:00:00.000Z', '2040-05-03T07:00:00.000Z']);
});
