/** The demo's kind of data on every page: jobs about documents in all states, and what operators set up around them. */
import { puller } from './pull.mjs';

const QUEUE = 'documents';
const SAMPLES = 'examples/documents/samples';

const DOCUMENTS = [
  'README.md',
  'docs/guides/bulk-and-queries.md',
  'docs/reference/how-to-add-an-operation.md',
  'docs/start/in-your-worker.md',
  `${SAMPLES}/flaky-and-slow.md`,
  `${SAMPLES}/missing-page.md`,
];

const pageOf = (path) => ({
  path,
  markdown: `# ${path}\n\nSee [the guide](../guides/retries.md#how-a-failure-ends).\n`,
});

/**
 * @param {(method: string, path: string, body?: unknown) => Promise<any>} call to the API
 * @returns {Promise<{ job: string, held: string, group: string, schedule: string, workflow: string, subscription: string }>}
 * names of what the pages of one thing show
 */
export async function seedDemo(call) {
  const worker = puller(call);
  const { worker_id } = worker;
  const given = (queue, type, path, options = {}) =>
    worker.enqueue(queue, { type, args: [pageOf(path)], tags: ['documents'], ...options });

  // As in the demo: each document is rendered, measured, and its links are checked.
  for (const path of DOCUMENTS.slice(0, 4)) {
    for (const type of ['document.render', 'document.digest', 'link.check']) {
      const id = await given(QUEUE, type, path);
      await worker.take(QUEUE);
      await worker.ack(id, { sha256: '9f86d081884c7d659a2feaa0c55ad015', bytes: 8_213, words: 1_204 });
    }
  }
  const broken = (path, href) => ({
    type: 'BrokenLink',
    code: 'handler_error',
    message: `${path}: ${href} (there is no such page), ../reference/${href} (there is no such heading)`,
    stack: `BrokenLink: ${path}\n    at checkLinks (examples/documents/src/check-links.ts:58:9)`,
    retryable: false,
  });
  for (const path of DOCUMENTS) {
    const id = await given(QUEUE, 'link.check', path, { retry: { max_attempts: 4, on_exhaustion: 'dead_letter' } });
    await worker.take(QUEUE);
    await worker.nack(id, broken(path, 'https://pages.example/missing/there-is-nothing-here.html'));
  }
  // One that has failed and runs again, with all that a handler can leave.
  const retry = { max_attempts: 4, initial_interval: 'PT0.001S', max_interval: 'PT0.001S', jitter: false };
  const failed = await given(QUEUE, 'link.check', DOCUMENTS[4], { retry, timeout_ms: 600_000 });
  for (const attempt of [1, 2, 3]) {
    while (!(await worker.take(QUEUE)));
    const line = { level: 'warn', message: `visits https://pages.example/flaky/${attempt}`, fields: { attempt } };
    await call('POST', `jobs/${failed}/log`, { worker_id, lines: [line, { message: `line ${attempt}` }] });
    if (attempt === 3) break;
    await worker.nack(failed, { ...broken(DOCUMENTS[4], 'flaky'), type: 'PageUnavailable', retryable: true });
  }
  await call('POST', `jobs/${failed}/progress`, { worker_id, progress: 0.4, message: '2 of 5 links' });
  await call('PUT', `jobs/${failed}/checkpoint`, { worker_id, state: { visited: 2 } });
  await call('PUT', `jobs/${failed}/steps/visited`, { worker_id, result: { links: 2 } });
  await given(QUEUE, 'document.digest', DOCUMENTS[1], { delay_until: '+PT20H' });
  await given(QUEUE, 'document.render', DOCUMENTS[2], { retry: { initial_interval: 'PT1H' } });
  const later = await given(QUEUE, 'document.render', DOCUMENTS[3], { retry: { initial_interval: 'PT1H' } });
  while ((await worker.take(QUEUE))?.id !== later);
  await worker.nack(later, { type: 'Error', message: 'the renderer is not there yet' });

  // Limits of keys: one that is used up, one that has starts left, one that an operator stopped.
  const limited = (key, limits) =>
    worker.enqueue('documents.limited', { type: 'document.render', rate_limit: { key, ...limits } });
  let held;
  for (let n = 0; n < 4; n++) held = await limited('renderer.example', { concurrency: 2, rate: 100, period: '10s' });
  for (let n = 0; n < 3; n++) await limited('pages.example:visits-of-one-customer', { rate: 5, period: '1h' });
  await limited('archive', { throttle: { limit: 20, period: 'day' } });
  for (let n = 0; n < 3; n++) await worker.take('documents.limited');
  await call('PUT', 'rate-limits/archive', { concurrency: 0 });
  await call('PUT', 'rate-limits/pages.example:visits-of-one-customer', {
    limit: 1,
    period: '1m',
    expires_at: '+PT1H',
  });

  // Groups: a noisy one, and one that a running job blocks.
  await call('PUT', 'queues/documents.grouped/config', { groups: { order: 'strict', weights: { 'editors-*': 5 } } });
  const grouped = (count, group) =>
    Array.from({ length: count }, () => ({
      ...{ type: 'document.render', args: [pageOf('README.md')] },
      options: { queue: 'documents.grouped', group },
    }));
  await call('POST', 'jobs/batch', {
    jobs: [...grouped(40, 'customer-of-many-documents@example.com'), ...grouped(2, 'editors-of-the-guide')],
  });
  await worker.take('documents.grouped');

  // What operators set up.
  const template = (type, queue) => ({ type, args: [pageOf('README.md')], options: { queue } });
  const cron = (name, expression, timezone, type, more) =>
    call('POST', 'cron', { name, expression, timezone, job_template: template(type, 'documents.nightly'), ...more });
  await cron('documents-nightly', '0 2 * * MON-FRI', 'America/New_York', 'document.render');
  await cron('documents-links-of-every-page', '*/15 6-20 * * *', 'Europe/Vienna', 'link.check');
  await cron('documents-archive', '0 6 1 * *', 'UTC', 'document.digest', { enabled: false });
  await call('POST', 'cron/documents-nightly/trigger');
  const { id: workflow } = await call('POST', 'workflows', {
    name: 'publish the documents',
    steps: [
      { id: 'render', ...template('document.render', 'documents.publish') },
      { id: 'digest', ...template('document.digest', 'documents.publish') },
      { id: 'check-all-links', depends_on: ['render'], ...template('link.check', 'documents.publish') },
      {
        id: 'publish',
        depends_on: ['check-all-links', 'digest'],
        ...template('document.publish', 'documents.publish'),
      },
    ],
  });
  const first = await worker.take('documents.publish');
  await worker.ack(first.id, { html: '<h1>' });
  const { subscription } = await call('POST', 'webhooks/subscriptions', {
    url: 'https://hooks.example.com/services/documents/on-call?team=publishing',
    events: ['job.discarded', 'alert.*', 'queue.paused', 'workflow.failed'],
    queues: ['documents.webhook'],
  }).then((answer) => ({ subscription: answer.subscription?.id ?? answer.id }));
  await call('POST', 'admin/alerts', {
    name: 'documents fail',
    queue: QUEUE,
    metric: 'error_rate',
    above: 0.2,
    for: '5m',
  });
  await call('POST', 'admin/alerts', { name: 'documents wait too long', queue: QUEUE, metric: 'depth', above: 1_000 });
  await call('PUT', 'admin/pools/documents', { queues: [QUEUE, 'documents.nightly', 'documents.publish'] });
  await call('PUT', `queues/${QUEUE}/config`, { concurrency: 20, retention: { completed: '2d' } });
  await call('POST', 'queues/documents.nightly/pause');
  for (const n of [1, 2]) {
    await call('POST', 'workers/heartbeat', {
      worker_id: `documents-worker-7d9f8b6c5-x2k4${n}`,
      hostname: `documents-worker-7d9f8b6c5-x2k4${n}.eu-central-1.compute.internal`,
      pid: 4_100 + n,
      queues: [QUEUE, 'documents.nightly', 'documents.publish'],
      concurrency: 8,
      active_jobs: [],
    });
  }
  await call('POST', 'admin/jobs/bulk/cancel', {
    filter: { queue: QUEUE, state: 'scheduled', type: 'document.digest' },
    confirm: true,
  });
  const { items } = await call('GET', `admin/failures?queue=${QUEUE}`);
  return {
    job: failed,
    held,
    group: items[0].fingerprint,
    schedule: 'documents-nightly',
    workflow,
    subscription,
  };
}
