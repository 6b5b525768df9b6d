/** Declares cron entries, and goes on declaring, pausing and triggering them while they fire. */
import { setTimeout as delay } from 'node:timers/promises';
import { outcomeOf } from './jobs.mjs';

const EVERY_SECOND = { expression: '@every 1s', intervalMs: 1_000 };
const ALLOW = { overlap: 'allow', missed: 'fire_once' };
const SLOW_MS = 1_300;

/** `tasks`: what the operator may do with an entry while it fires. */
const ENTRIES = [
  { name: 'all', queue: 'cron-pull', ...EVERY_SECOND, overlap: 'allow', missed: 'fire_all', tasks: ['declare'] },
  { name: 'few', queue: 'cron-push', ...EVERY_SECOND, overlap: 'allow', missed: 'fire_all', maxCatchup: 2 },
  { name: 'once', queue: 'cron-push', ...EVERY_SECOND, ...ALLOW, tasks: ['declare', 'trigger'] },
  { name: 'on-time', queue: 'cron-pull', ...EVERY_SECOND, overlap: 'allow', missed: 'skip', tasks: ['trigger'] },
  { name: 'clock', queue: 'cron-push', expression: '*/2 * * * * *', intervalMs: 2_000, ...ALLOW },
  { name: 'skipping', queue: 'cron-pull', ...EVERY_SECOND, overlap: 'skip', missed: 'fire_once', tasks: ['declare'] },
  { name: 'slow', queue: 'cron-push', ...EVERY_SECOND, overlap: 'skip', missed: 'fire_once', workMs: SLOW_MS },
  { name: 'line', queue: 'cron-push', ...EVERY_SECOND, overlap: 'enqueue', missed: 'fire_all' },
  {
    name: 'last',
    queue: 'cron-push',
    ...EVERY_SECOND,
    overlap: 'cancel_previous',
    missed: 'fire_once',
    workMs: SLOW_MS,
  },
  { name: 'toggled', queue: 'cron-pull', ...EVERY_SECOND, ...ALLOW, tasks: ['pause', 'resume'] },
  { name: 'alone', queue: 'cron-pull', ...EVERY_SECOND, ...ALLOW, unique: true, waitMs: 2_500 },
];

const bodyOf = ({ name, queue, expression, overlap, missed, maxCatchup, job }) => ({
  ...{ name, expression, overlap_policy: overlap, missed_policy: missed },
  ...(missed === 'fire_all' && { max_catchup: maxCatchup }),
  job_template: {
    ...{ type: job.type, args: [job.plan] },
    options: {
      queue,
      ...(job.type === 'push.work' && { timeout_ms: 2_000 }),
      ...(job.waitMs && { delay_until: `+PT${job.waitMs / 1000}S` }),
      ...(job.unique && { unique: { keys: ['type', 'args'], args_keys: ['token'], on_conflict: 'ignore' } }),
      retry: { max_attempts: job.maxAttempts, initial_interval_ms: 50, backoff_strategy: 'constant', jitter: false },
    },
  },
});

/** Declares every entry and notes it; the server is up and nothing else happens. */
export async function declareAll({ client, ledger }, prefix) {
  for (const { name, workMs = 10, waitMs, unique, tasks = [], maxCatchup = 100, ...rest } of ENTRIES) {
    const { queue } = rest;
    const token = `${prefix}-${name}`;
    const job = {
      ...{ token, queue, type: queue === 'cron-push' ? 'push.work' : 'pull.work', maxAttempts: 6 },
      ...{ plan: { token, failures: 0, end: 'complete', work_ms: workMs }, parked: false, pending: false },
      ...{ origin: 'cron', ...(rest.overlap === 'cancel_previous' && { cancelledBy: 'cron' }) },
      ...(waitMs && { waitMs }),
      ...(unique && { unique, fingerprint: `across:${token}` }),
    };
    const entry = { name, ...rest, maxCatchup, job, tasks };
    const answer = await client.send('POST', '/cron', bodyOf(entry));
    if (answer.status !== 201) throw new Error(`cron ${name} was answered ${answer.status}: ${JSON.stringify(answer)}`);
    ledger.crons.push({ ...entry, sentAt: answer.sentAt, answeredAt: answer.answeredAt });
  }
}

/** The operator of schedules. Each entry is told one thing at a time. */
export async function schedule(world, random) {
  const tasks = world.ledger.crons.flatMap((entry) => entry.tasks.map((kind) => ({ entry, kind })));
  while (!world.isOver()) {
    await world.gate.passed();
    if (world.isOver()) return;
    const { entry, kind } = random.pick(tasks);
    await tell(world, entry, kind);
    await delay(random.int(50, 800));
  }
}

async function tell({ client, ledger }, entry, kind) {
  const { name } = entry;
  const answer = await (kind === 'declare'
    ? client.call('POST', '/cron', bodyOf(entry))
    : client.call('POST', `/cron/${name}/${kind}`));
  const outcome = outcomeOf(answer);
  const jobId = kind === 'trigger' && outcome === 'accepted' ? { jobId: answer.body.job_id } : {};
  ledger.cronChanges.push({ name, kind, outcome, ...jobId, sentAt: answer.sentAt, answeredAt: answer.answeredAt });
  if (outcome === 'refused' && answer.status !== 503) {
    ledger.unexpected.push(`${kind} of cron ${name} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  }
}

/** Pauses every entry for good; the server is up. */
export async function pauseAll({ client, ledger }) {
  for (const { name } of ledger.crons) {
    const answer = await client.send('POST', `/cron/${name}/pause`);
    if (answer.status !== 200) throw new Error(`pausing cron ${name} was answered ${answer.status}`);
    const { sentAt, answeredAt } = answer;
    ledger.cronChanges.push({ name, kind: 'pause', outcome: 'accepted', final: true, sentAt, answeredAt });
  }
}
