/** Jobs with durable steps, sleeps and signals, so many at once that every kill falls between steps of some of them. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { DURABLE_QUEUES } from '../queues.mjs';
import { bundle } from '../server.mjs';
import { enqueueForSure, outcomeOf } from './jobs.mjs';

/** Above this many of an actor's jobs on their way, it makes no more. */
const MAX_UNDER_WAY = 25;
/** A signal that is sent must come before this, however long the server is left alone, ms. */
const LONG_MS = 3_600_000;

/** @param world as for producers */
export async function goThroughSteps(world, random) {
  const signals = [];
  let underWay = [];
  for (;;) {
    await world.gate.passed();
    underWay = underWay.filter((token) => !world.ledger.hasEnded(token));
    if (!world.isOver() && underWay.length < MAX_UNDER_WAY) {
      const started = await start(world, random);
      underWay.push(started.token);
      signals.push(...started.signals);
    }
    // The last signals are sent after the last job is.
    if (world.isOver() && signals.length === 0) return;
    const due = signals.filter(({ at }) => world.isOver() || at <= Date.now());
    for (const signal of due) {
      if (await send(world, signal)) signals.splice(signals.indexOf(signal), 1);
    }
    await delay(random.int(1, 30));
  }
}

/** @returns `{ token, signals }`: what it waits for */
async function start(world, random) {
  const id = random.uuid(Date.now());
  const acts = makeActs(random);
  const body = world.planner.job(random, {
    id,
    queue: random.pick(Object.keys(DURABLE_QUEUES)),
    type: 'durable.work',
    timing: random.chance(0.9) ? 'now' : 'soon',
    plan: { acts },
    // Each kill may cost one.
    maxAttempts: 100,
    // Nobody sends its signals while the server is left alone.
    extra: { origin: 'durable', late: acts.some(({ signalled }) => signalled) },
  });
  const [{ token }] = body.args;
  if (!(await enqueueForSure(world, body))) return { token, signals: [] };
  const at = () => Date.now() + random.int(0, 2_000);
  const signals = acts.filter(({ signalled }) => signalled);
  return { token, signals: signals.map(({ name }) => ({ token, id, name, payload: random.uuid(0), at: at() })) };
}

/** Sends a signal. @returns is it known what became of it? */
async function send(world, { token, id, name, payload }) {
  const answer = await world.client.call('POST', `/jobs/${id}/signals/${name}`, { payload });
  const outcome = outcomeOf(answer);
  const { sentAt, answeredAt } = answer;
  world.ledger.signals.push({ token, name, payload, outcome, status: answer.status, sentAt, answeredAt });
  return answer.kind === 'answer' && answer.status !== 503;
}

/** What one job does. Every job begins and ends with a step. */
function makeActs(random) {
  const acts = [];
  let failures = 0;
  const work = (n) => ({ name: `step_${n}`, work_ms: random.int(0, 40) });
  const makers = {
    step: (n) => ({ do: 'step', ...work(n) }),
    both: (n) => ({ do: 'both', acts: [work(`${n}-a`), work(`${n}-b`)] }),
    sleep: (n) => ({ do: 'sleep', name: `sleep_${n}`, ms: random.int(50, 500) }),
    wait: (n) => ({ do: 'wait', name: `waitFor_${n}`, timeout_ms: LONG_MS, signalled: true }),
    vain: (n) => ({ do: 'wait', name: `vain-${n}`, timeout_ms: random.int(50, 300) }),
    fail: () => ({ do: 'fail', attempt: ++failures }),
    breaks: (n) => ({ do: 'step', ...work(n), breaks: ++failures }),
  };
  acts.push(makers.step(0));
  for (let left = random.int(2, 6), n = 1; left > 0; left--, n++) {
    const kind = random.weighted({ step: 40, both: 15, sleep: 22, wait: 8, vain: 4, fail: 6, breaks: 5 });
    acts.push(makers[kind](n));
  }
  acts.push(makers.step('last'));
  return acts;
}

/** Starts the worker that pulls such jobs, as `durable-worker.ts` does it. @returns `{ ended }`: a promise */
export async function startPuller({ directory, gate, ...options }) {
  const file = join(directory, 'durable-worker.mjs');
  bundle('test/crash/durable-worker.ts', file);
  const { pullDurably } = await import(pathToFileURL(file).href);
  const patiently = async (...request) => {
    await gate.passed();
    return await fetch(...request);
  };
  return { ended: pullDurably({ ...options, fetch: patiently }) };
}
