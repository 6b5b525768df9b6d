/**
 * Records what a project has stored with a release, for the test that the next release opens it: fills a queue under
 * `wrangler dev` and packs the folder with its databases.
 *
 * To record a release: copy this file to `test/upgrade/` in a checkout of it, and run
 * `node test/upgrade/record-project.mjs <release>.tar.gz`. The recording is never made again by later code.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { dev } from '../docs/dev.mjs';

const folder = mkdtempSync(join(tmpdir(), 'tocsin-record-'));
const state = join(folder, 'state');
const server = await dev(['wrangler.toml'], { state, registry: join(folder, 'registry') });

async function call(method, path, body) {
  const response = await fetch(`${server.url}/ojs/v1${path}`, {
    method,
    headers: { 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}
const enqueue = async (type, options = {}) =>
  (await call('POST', '/jobs', { type, args: ['Ada'], meta: { user_id: 7 }, options: { queue: 'kept', ...options } }))
    .id;
const claim = async (type, options) => {
  const job_id = await enqueue(type, options);
  await call('POST', '/workers/fetch', { queues: ['kept'], types: [type], worker_id: 'w' });
  return job_id;
};
const fail = (job_id) => call('POST', '/workers/nack', { job_id, error: { code: 'broken', message: 'as ordered' } });

// Whatever has ended or waits must still be there when the recording is years old.
const AGES = 'P36500D';
await call('POST', '/queues', {
  name: 'kept',
  config: {
    retention: { completed: AGES, discarded: AGES, cancelled: AGES },
    dead_letter: { retention: { max_age: AGES } },
    concurrency: 3,
  },
});
await call('POST', '/workers/ack', { job_id: await claim('completed.job'), result: { sum: 42 } });
await fail(await claim('discarded.job', { retry: { max_attempts: 1 } }));
await fail(await claim('dead.job', { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } }));
await fail(await claim('retryable.job', { retry: { initial_interval: AGES, max_interval: null, jitter: false } }));
await call('DELETE', `/jobs/${await enqueue('cancelled.job')}`);
await enqueue('scheduled.job', { delay_until: '2100-01-01T00:00:00Z' });
await enqueue('pending.job', { pending: true });
await enqueue('available.job');
await enqueue('urgent.job', { priority: 50 });
await enqueue('unique.job', { unique: { key: 'one' } });
// Two that the next release runs: one waits, one was running when the release ended.
await enqueue('greeting.write', { delay_until: '+PT5S' });
await claim('greeting.interrupted', { visibility_timeout_ms: 5000 });
await call('POST', '/workflows', {
  type: 'chain',
  name: 'recorded',
  steps: ['greeting.first', 'greeting.second'].map((type) => ({ type, args: ['Ada'], options: { queue: 'flow' } })),
});
await call('POST', '/cron', {
  name: 'yearly',
  expression: '0 0 1 1 *',
  enabled: false,
  job_template: { type: 'greeting.yearly', args: ['Ada'], options: { queue: 'kept' } },
});

await server.stop();
execFileSync('tar', ['-czf', resolve(process.argv[2]), '-C', state, 'v3/do']);
rmSync(folder, { recursive: true, force: true });
