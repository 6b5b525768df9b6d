/** The story that the pictures tell, and that docs/operate/incident.md tells in words. */
import { setTimeout as delay } from 'node:timers/promises';

const RETRY = { max_attempts: 3, backoff: 'constant', initial_interval: 1500, jitter: false };
const AFTER_ALL = { on_exhaustion: 'dead_letter' };

const NAMES = ['ada', 'grace', 'edsger', 'barbara', 'tony', 'frances', 'alan', 'margaret'];

const payment = (n) => ({
  type: 'payment.capture',
  queue: 'payments',
  args: [{ order: `ord-2026-${4_100 + n}`, cents: 990 + ((n * 731) % 14_000), card: { last4: String(1000 + n) } }],
  tags: ['checkout'],
  options: { retry: { ...RETRY, ...AFTER_ALL } },
});

const email = (n) => ({
  type: 'email.send',
  queue: 'mail',
  args: [{ to: `${NAMES[n % NAMES.length]}@example.com`, template: n % 3 ? 'receipt' : 'welcome' }],
});

/**
 * Makes the queues of a shop, and lets them work.
 * @param {(method: string, path: string, body?: unknown) => Promise<any>} call to the API
 */
export async function openShop(call) {
  for (const hour of [3, 6]) {
    await call('POST', 'cron', {
      name: hour === 3 ? 'nightly-report' : 'morning-mail',
      expression: `0 ${hour} * * *`,
      timezone: 'Europe/Vienna',
      job_template: { type: hour === 3 ? 'report.build' : 'email.send', args: [], options: { queue: 'reports' } },
    });
  }
  await call('PUT', 'queues/payments/config', { concurrency: 20 });
  await call('POST', 'jobs/batch', {
    jobs: Array.from({ length: 40 }, (_, n) => ({
      type: 'import.row',
      queue: 'imports',
      args: [{ row: n }],
      options: { priority: n % 4 },
    })),
  });
  await call('POST', 'jobs', {
    type: 'report.build',
    queue: 'reports',
    args: [{ month: '2026-10' }],
    options: { timeout_ms: 600_000 },
  });
  await call('POST', 'jobs', {
    type: 'email.send',
    queue: 'mail',
    args: [{ to: 'ada@example.com', template: 'reminder' }],
    options: { delay_until: '+PT20H' },
  });
}

/**
 * Some minutes of a day: mail goes out, cards are charged; in the second half the card processor is down.
 * @param {number} ms how long it takes
 */
export async function tellDay(call, ms, isDown = (share) => share > 0.6) {
  const began = Date.now();
  let down = false;
  for (let n = 0; Date.now() - began < ms; n++) {
    const now = isDown((Date.now() - began) / ms);
    if (now !== down) await turn(call, now ? 'down' : 'up');
    down = now;
    const jobs = [payment(2 * n), payment(2 * n + 1), email(3 * n), email(3 * n + 1), email(3 * n + 2)];
    await call('POST', 'jobs/batch', { jobs });
    await delay(400 + (n % 5) * 90);
  }
}

/** Switches the card processor. */
export async function turn(call, to) {
  const { id } = await call('POST', 'jobs', { type: 'story.processor', queue: 'story', args: [to] });
  while ((await call('GET', `jobs/${id}`)).state !== 'completed') await delay(50);
}
