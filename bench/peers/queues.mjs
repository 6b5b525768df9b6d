/** Cloudflare Queues as `wrangler dev` simulates them: the simulator of miniflare, which keeps messages in memory. */
import { fileURLToPath } from 'node:url';
import { drive } from './child.mjs';

const driver = fileURLToPath(new URL('queues-driver.mjs', import.meta.url));

export async function measure({ quick }) {
  const result = await drive(driver, [String(quick)], 120_000);
  return {
    ...result,
    notes: [
      'messages lie in memory and are gone with the process; producer and consumer are one Worker calling its binding, without HTTP.',
      'bulk is sendBatch(100), the most there is; the consumer takes batches of 100 with max_batch_timeout 0, one at a time.',
      'the simulator refuses messages while 10,000 wait: enqueueing and draining go by rounds of 9,800, each timed alone.',
    ],
  };
}
