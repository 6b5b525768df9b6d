/** Workers that pull: they fetch, work, send heartbeats, report, and now and then walk away from a job. */
import { setTimeout as delay } from 'node:timers/promises';
import { briefly, lifeOf, tokenOf } from '../identity.mjs';
import { PULLED } from '../queues.mjs';

/** Lease lengths that are asked for, ms. */
const VISIBILITIES = [600, 1_000, 2_000];
/** A result this long lies in a row of its own. */
const FAR_RESULT = 70_000;

/** @param world `{ ledger, client, gate, isOver, calm }`; `calm()`: no more faults */
export async function work(world, random, name) {
  while (!world.isOver()) {
    const visibility = random.pick(VISIBILITIES);
    const answer = await world.client.call('POST', '/workers/fetch', {
      queues: random.shuffled(PULLED).slice(0, random.int(1, PULLED.length)),
      count: random.int(1, 6),
      worker_id: name,
      visibility_timeout_ms: visibility,
      ...(random.chance(0.3) && { wait_ms: random.int(50, 500) }),
    });
    const jobs = answer.kind === 'answer' && answer.status === 200 ? answer.body.jobs : [];
    const held = jobs.map((job) => begin(world, job, visibility));
    for (const item of held) await finish(world, random, name, item, held);
    if (jobs.length === 0) await delay(random.int(5, 60));
  }
}

function begin(world, job, leaseMs) {
  const [token, life] = [tokenOf(job), lifeOf(job)];
  const run = { token, attempt: job.attempt, life, via: 'pull', startedAt: Date.parse(job.started_at), leaseMs };
  const limit = job.timeout_ms === undefined ? {} : { limitMs: job.timeout_ms };
  const parents = job.parent_results && { parents: briefly(job.parent_results) };
  return { job, plan: job.args[0], run: world.ledger.addRun({ ...run, ...limit, ...parents }), over: false };
}

async function finish(world, random, name, item, held) {
  const { plan, run } = item;
  const mood = world.calm() ? 'steady' : random.weighted({ steady: 84, slow: 10, away: 4, requeue: 2 });
  if (mood === 'away') {
    item.over = true;
    world.ledger.endRun(run, 'abandoned');
    return;
  }
  if (mood === 'slow') await workSlowly(world, random, name, run.leaseMs, held);
  else await delay(random.int(0, 20));
  item.over = true;
  const dies = plan.end === 'exhaust' && (plan.saved_in === undefined || run.life < plan.saved_in);
  const fails = dies || run.attempt <= plan.failures;
  const outcome = mood === 'requeue' ? 'requeue' : fails ? 'failure' : plan.end === 'fatal' ? 'fatal' : 'success';
  world.ledger.endRun(run, outcome);
  await report(world, random, name, item, outcome);
}

/** Works for longer than the lease is long, and keeps it by heartbeats. */
async function workSlowly(world, random, name, leaseMs, held) {
  for (let beats = random.int(2, 5); beats > 0; beats--) {
    await delay(leaseMs / 3);
    const own = held.filter(({ over }) => !over);
    const ids = own.map(({ job }) => job.id);
    const answer = await world.client.call('POST', '/workers/heartbeat', { worker_id: name, active_jobs: ids });
    if (answer.kind !== 'answer' || answer.status !== 200) continue;
    for (const { job, run } of own) {
      if (answer.body.jobs_extended.includes(job.id)) run.beats.push(answer.sentAt);
    }
  }
}

/** Tells the server how the run ended. A report that was cut off is sent once more, as a real worker would. */
async function report(world, random, name, { job, run }, outcome) {
  const { token, attempt, life } = run;
  const kind = outcome === 'success' ? 'ack' : outcome === 'requeue' ? 'requeue' : 'nack';
  const padding = random.chance(0.01) ? { padding: 'x'.repeat(FAR_RESULT) } : {};
  const body = {
    ...{ job_id: job.id, worker_id: name, attempt },
    ...(kind === 'ack' && { result: { token, attempt, ...padding } }),
    ...(kind === 'nack' && {
      error: {
        code: 'planned',
        message: `planned ${token} ${attempt}`,
        ...(outcome === 'fatal' && { retryable: false }),
      },
    }),
    ...(kind === 'requeue' && { requeue: true, error: { code: 'requeue', message: `planned ${token} ${attempt}` } }),
  };
  const tries = random.chance(0.6) ? 3 : 1;
  for (let left = tries; left > 0; left--) {
    const answer = await world.client.call('POST', kind === 'ack' ? '/workers/ack' : '/workers/nack', body);
    const { sentAt, answeredAt } = answer;
    const entry = { token, attempt, life, kind, outcome: 'unknown', sentAt, answeredAt };
    world.ledger.reports.push(entry);
    if (answer.kind !== 'answer') continue;
    entry.outcome = answer.status === 200 ? 'accepted' : 'refused';
    if (answer.status === 200) {
      const { state, completed_at, next_attempt_at } = answer.body;
      entry.answer = { state, completed_at, next_attempt_at };
    } else if (answer.status !== 409) {
      world.ledger.unexpected.push(`${kind} of ${job.id} (${token}) was answered ${answer.status}`);
    }
    return;
  }
}
