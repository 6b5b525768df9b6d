/**
 * The crash test: a real server under load is killed without notice, again and again, and must never break a promise.
 *
 *     npm run test:crash -- [--rounds 3] [--seed 1] [--port 0] [--server workerd]
 *
 * The server is workerd itself, or with `--server serve` the program `tocsin serve`: then either its workerd is killed, which it
 * starts again, or all of its processes are.
 *
 * The load is single jobs and batches, workflows, cron entries, unique jobs, operators, exports, jobs with durable steps
 * and jobs that wait for children (`load/`), each judged by a check of its own (`check/`). Each round is load, SIGKILL,
 * restart, at times after a while without any server. In some rounds nobody sends a request after the restart, and what
 * is due must happen all the same. In the end everything is drained, the server is killed once more, and the checker
 * judges.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { audit, get } from './audit.mjs';
import { Client, Gate } from './client.mjs';
import { startCollector } from './collector.mjs';
import { Ledger } from './ledger.mjs';
import { raiseFamilies, startFamily } from './load/children.mjs';
import { declareAll, pauseAll, schedule } from './load/cron.mjs';
import { goThroughSteps, startPuller } from './load/durable.mjs';
import { takeExports } from './load/exports.mjs';
import { enqueue, produce, spread } from './load/jobs.mjs';
import { campaign, cancelCampaign, makeQueues, operate, resumeAll } from './load/operators.mjs';
import { keepOrder, sendInOrder } from './load/ordered.mjs';
import { Planner } from './load/plan.mjs';
import { compete, enqueueFresh, single } from './load/unique.mjs';
import { work } from './load/workers.mjs';
import { orchestrate, startWorkflow } from './load/workflows.mjs';
import { ALL, DURABLE_TIMEOUT_MS, LAST_QUEUE, OPS_QUEUES, PUSH_GRACE_MS, PUSHED, QUIET_QUEUE } from './queues.mjs';
import { Random } from './random.mjs';
import { report } from './report.mjs';
import { freePort, Server } from './server.mjs';
import { Serving } from './serving.mjs';

/** Who makes work, by name: how many of them, and what each does. */
const ACTORS = {
  producer: [4, produce],
  workflows: [3, orchestrate],
  cron: [1, schedule],
  unique: [4, compete],
  campaign: [1, campaign],
  durable: [4, goThroughSteps],
  children: [3, raiseFamilies],
  ordered: [3, sendInOrder],
  exports: [2, takeExports],
  ...Object.fromEntries(
    Object.keys(OPS_QUEUES).map((name) => [name, [1, (world, random) => operate(world, random, name)]]),
  ),
};
/** What is told a moment before a queue sends children, or their ends, to another one; and how long before, ms. */
const AIMS = { waiting: [45, 90], end: [0, 12] };
const AIM_LIMIT_MS = 300;
const WORKERS = 10;
/** Every so many rounds nobody touches the server after its restart. */
const QUIET_EVERY = 4;
/** Something due is late after this, ms: the alarm stands by for at most a second, then runs go through. */
const QUIET_LIMIT_MS = 6_000;
/** In the end something is done at least so often, ms: how much is left depends on the rounds, and how fast it goes on the machine. */
const DRAIN_LIMIT_MS = 60_000;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    port: { type: 'string', default: '0' },
    server: { type: 'string', default: 'workerd' },
  },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1 || rounds > 200)
  throw new Error('--rounds must be an integer from 1 to 200');

const started = performance.now();
const say = (text) => console.log(`${((performance.now() - started) / 1000).toFixed(1).padStart(6)} s  ${text}`);
const directory = mkdtempSync(join(tmpdir(), 'tocsin-crash-'));
const random = new Random(values.seed, 'run');
const ledger = new Ledger();
const gate = new Gate();
const collector = await startCollector(ledger);
const port = Number(values.port) || (await freePort());
const Kind = { workerd: Server, serve: Serving }[values.server];
if (!Kind) throw new Error('--server must be workerd or serve');
const server = new Kind({
  directory,
  port,
  collector: collector.address().port,
  random: new Random(values.seed, 'server'),
});
const client = new Client({ port, gate, unexpected: (message) => ledger.unexpected.push(message) });
/** Campaigns that can be cancelled. */
const ready = [];
const phase = { producing: true, working: true, calm: false, round: 0 };

process.once('exit', () => server.killNow());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130));

/** What an actor sees of all this. */
const world = (name, isOver) => ({
  ...{ ledger, client, gate, isOver, ready, takenIds: [], recent: [], calm: () => phase.calm },
  planner: new Planner(ledger, `${values.seed}-${name}`),
});

/** Kills the server, and starts it again on the same storage. */
async function crash({ withinMs = 60, downMs = 0, burst = [], aim } = {}) {
  gate.close();
  // However slow the machine is: once the first of a burst is answered, the others are on their way.
  if (burst.length > 0 && random.chance(0.7)) await Promise.race([...burst, delay(1_000)]);
  await delay(random.int(0, withinMs));
  if (aim) {
    await ledger.hears('children', aim, AIM_LIMIT_MS);
    await delay(random.int(...AIMS[aim]));
  }
  ledger.kills.push(Date.now());
  const { comesBack } = await server.kill();
  const down = { from: Date.now() };
  client.reset();
  await Promise.all(burst);
  if (!comesBack) await delay(downMs);
  down.until = Date.now();
  ledger.downs.push(down);
  await server.start();
}

/** Sends things that take more than one step, all at once and whatever the gate says: the server dies amid them. */
function sendBurst(host) {
  const kinds = [spread, startWorkflow, single, startFamily];
  const most = random.pick(kinds);
  const sent = kinds.flatMap((send) =>
    Array.from({ length: random.int(0, send === most ? 12 : 4) }, () => send(host, random, true)),
  );
  return random.chance(0.7) ? [...sent, cancelCampaign(host, random)] : sent;
}

/** A machine that was too slow for a quiet round gets this much longer in the next one. */
let slowness = 1;

/** Delayed jobs are accepted, the server dies, and nobody asks for anything until they have run. */
async function quietRound(host) {
  const waitMs = slowness * random.int(1_000, 2_500);
  const plannedAt = Date.now();
  const bodies = Array.from({ length: 12 }, (_, at) =>
    host.planner.job(random, {
      queue: QUIET_QUEUE,
      timing: 'soon',
      waitMs,
      plan: { failures: at % 3 === 0 ? 1 : 0, end: 'complete', work_ms: 5 },
    }),
  );
  gate.close();
  const { entry } = await enqueue(host, bodies, { direct: true });
  const dueAt = Date.now() + waitMs;
  await crash();
  if (entry.outcome !== 'accepted') return;
  // On a slow machine some were due before the kill, which may have cut them off: they wait for their leases then.
  if (ledger.kills.at(-1) >= plannedAt + waitMs) {
    say(`round ${phase.round}: not judged, the kill came after the delay`);
    slowness = Math.min(slowness + 1, 5);
    return;
  }
  const deadline = dueAt + slowness * QUIET_LIMIT_MS;
  const late = await ledger.succeeded(entry.tokens, deadline);
  ledger.quiet.push({ tokens: entry.tokens, dueAt, deadline, late });
  say(`round ${phase.round}: ${bodies.length - late.length} of ${bodies.length} delayed jobs ran without a request`);
}

/** Jobs that could run at once are accepted in a queue that has never run any; the server dies before it runs them. */
async function lastCrash(host) {
  const bodies = Array.from({ length: 6 }, () =>
    host.planner.job(random, {
      queue: LAST_QUEUE,
      timing: 'now',
      plan: { failures: 0, end: 'complete', work_ms: 5 },
    }),
  );
  await enqueue(host, bodies, { direct: true });
  await crash({ withinMs: 0 });
}

/** Leaves the server alone until every push that a crash cut off has been made good. */
async function leaveAlone() {
  const since = Date.now();
  const longestLease = DURABLE_TIMEOUT_MS + PUSH_GRACE_MS + 1_500;
  const isIdle = () => Date.now() - since > longestLease && Date.now() - ledger.lastRunAt > 3_000;
  while (!isIdle() && Date.now() - since < 45_000) await delay(100);
  ledger.untouched = { queues: [...PUSHED, QUIET_QUEUE, LAST_QUEUE], since, touchedAt: Date.now() };
}

/** Lets everyone finish what they are at, and workers what is left. */
async function drain(producing) {
  gate.open();
  await producing;
  let fewest = Number.POSITIVE_INFINITY;
  let end;
  for (;;) {
    let left = (await get(client, '/workflows?state=running&limit=1')).total;
    for (const queue of ALL) {
      const { stats } = await get(client, `/queues/${queue}/stats`);
      left += stats.available + stats.active + stats.retryable;
      const soon = new Date(Date.now() + 600_000).toISOString();
      left += (await get(client, `/jobs/count?queue=${queue}&state=scheduled&scheduled_before=${soon}`)).count;
    }
    if (left === 0) return;
    if (left < fewest) {
      fewest = left;
      end = Date.now() + DRAIN_LIMIT_MS;
    } else if (Date.now() > end) {
      ledger.unexpected.push(`${left} jobs and workflows are left, as ${DRAIN_LIMIT_MS} ms before, without faults`);
      return;
    }
    await delay(200);
  }
}

async function run() {
  say(`seed ${values.seed}, ${rounds} rounds, port ${port}, ${directory}`);
  const host = world('host', () => true);
  await server.start();
  await keepOrder(host);
  await makeQueues(host);
  await declareAll(host, `${values.seed}-cron`);
  const begin = (name, act, isOver) => act(world(name, isOver), new Random(values.seed, name), name);
  const all = Object.entries(ACTORS).flatMap(([name, [number, act]]) =>
    Array.from({ length: number }, (_, n) => begin(`${name}-${n}`, act, () => !phase.producing)),
  );
  const workers = Array.from({ length: WORKERS }, (_, n) => begin(`worker-${n}`, work, () => !phase.working));
  const stop = new AbortController();
  const puller = await startPuller({
    ...{ directory, port, gate, signal: stop.signal, id: 'durable-worker', queues: ['durable-pull', 'child-pull'] },
    collector: `http://127.0.0.1:${collector.address().port}`,
  });
  const producing = Promise.all(all);
  const working = Promise.all(workers);
  Promise.all([producing, working, puller.ended]).catch((error) => {
    console.error(error);
    process.exit(2);
  });

  for (phase.round = 1; phase.round <= rounds; phase.round++) {
    gate.open();
    const loadMs = phase.round > 1 && random.chance(0.25) ? random.int(0, 400) : random.int(1_000, 6_000);
    await delay(loadMs);
    if (phase.round % QUIET_EVERY === 2) {
      await quietRound(host);
    } else {
      const downMs = phase.round % 3 === 0 || random.chance(0.2) ? random.int(1_500, 4_500) : 0;
      const burst = random.chance(0.7) ? sendBurst(host) : [];
      const aim = random.chance(0.6) ? random.pick(Object.keys(AIMS)) : undefined;
      await crash({ withinMs: random.pick([5, 30, 100]), downMs, burst, aim });
    }
    const { enqueues, runs } = ledger;
    say(`round ${phase.round}: killed after ${loadMs} ms; ${enqueues.length} enqueues, ${runs.length} runs so far`);
  }

  phase.producing = false;
  phase.calm = true;
  await pauseAll(host);
  await resumeAll(host);
  await lastCrash(host);
  await leaveAlone();
  say('left alone; now the audit of what nobody touched, and the rest of the work');
  await drain(producing);
  phase.working = false;
  await working;
  stop.abort();
  await puller.ended;
  const look = () => audit(client, new Random(values.seed, 'audit'), ledger);
  ledger.audits.push(await look());
  await crash();
  ledger.audits.push(await look());
  await enqueueFresh(host, random);
}

let failure;
try {
  await run();
} catch (error) {
  failure = error;
}
await server.end();
collector.close();
collector.closeAllConnections();
const { seed } = values;
const well = report({ ledger, seed, rounds, directory, failure, round: phase.round, requests: client.calls });
if (well) {
  rmSync(directory, { recursive: true, force: true });
  say('all promises were kept');
}
process.exit(well ? 0 : 1);
