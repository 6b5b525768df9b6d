/**
 * The crash test: a real server under load is killed without notice, again and again, and must never break a promise.
 *
 *     npm run test:crash -- [--rounds 3] [--seed 1] [--port 0]
 *
 * Each round is load, SIGKILL, restart. In some rounds nobody sends a request after the restart, and what is due must
 * happen all the same. In the end everything is drained, the server is killed once more, and the checker judges.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { audit, get } from './audit.mjs';
import { check } from './check.mjs';
import { Client, Gate } from './client.mjs';
import { startCollector } from './collector.mjs';
import { Ledger } from './ledger.mjs';
import { Planner } from './plan.mjs';
import { enqueue, produce, spread } from './producers.mjs';
import { ALL, LAST_QUEUE, PUSH_GRACE_MS, PUSH_TIMEOUT_MS, PUSHED, QUIET_QUEUE } from './queues.mjs';
import { Random } from './random.mjs';
import { freePort, Server } from './server.mjs';
import { work } from './workers.mjs';

const PRODUCERS = 5;
const WORKERS = 8;
/** Every so many rounds nobody touches the server after its restart. */
const QUIET_EVERY = 4;
/** Something due is late after this, ms: the alarm stands by for at most a second, then runs go through. */
const QUIET_LIMIT_MS = 6_000;
const DRAIN_LIMIT_MS = 60_000;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    port: { type: 'string', default: '0' },
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
const server = new Server({ directory, port, collector: collector.address().port });
const client = new Client({ port, gate, unexpected: (message) => ledger.unexpected.push(message) });
const phase = { producing: true, working: true, calm: false, round: 0 };

process.once('exit', () => server.killNow());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130));

/** What an actor sees of all this. */
const world = (name, isOver) => ({
  ...{ ledger, client, gate, isOver, takenIds: [], recent: [], calm: () => phase.calm },
  planner: new Planner(ledger, `${values.seed}-${name}`),
});

async function crash(withinMs = 60) {
  gate.close();
  await delay(random.int(0, withinMs));
  ledger.kills.push(Date.now());
  await server.kill();
  client.reset();
}

/** Delayed jobs are accepted, the server dies, and nobody asks for anything until they have run. */
async function quietRound(host) {
  const waitMs = random.int(1_000, 2_500);
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
  await server.start();
  if (entry.outcome !== 'accepted') return;
  const deadline = dueAt + QUIET_LIMIT_MS;
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
  await crash(0);
  await server.start();
}

/** Leaves the server alone until every push that a crash cut off has been made good. */
async function leaveAlone() {
  const since = Date.now();
  const longestLease = PUSH_TIMEOUT_MS + PUSH_GRACE_MS + 1_500;
  const isIdle = () => Date.now() - since > longestLease && Date.now() - ledger.lastRunAt > 3_000;
  while (!isIdle() && Date.now() - since < 45_000) await delay(100);
  ledger.untouched = { queues: [...PUSHED, QUIET_QUEUE, LAST_QUEUE], since, touchedAt: Date.now() };
}

/** Lets workers finish what is left. */
async function drain() {
  const end = Date.now() + DRAIN_LIMIT_MS;
  gate.open();
  for (let left; ; await delay(200)) {
    left = 0;
    for (const queue of ALL) {
      const { stats } = await get(client, `/queues/${queue}/stats`);
      left += stats.available + stats.active + stats.retryable;
      const soon = new Date(Date.now() + 600_000).toISOString();
      const { jobs } = await get(client, `/jobs?queue=${queue}&state=scheduled&limit=200`);
      left += jobs.filter(({ scheduled_at }) => scheduled_at < soon).length;
    }
    if (left === 0) return;
    if (Date.now() > end) {
      ledger.unexpected.push(`${left} jobs were not done after ${DRAIN_LIMIT_MS} ms without faults`);
      return;
    }
  }
}

async function run() {
  say(`seed ${values.seed}, ${rounds} rounds, port ${port}, ${directory}`);
  const host = world('host', () => true);
  const actors = [];
  for (let n = 0; n < PRODUCERS; n++) {
    const name = `producer-${n}`;
    actors.push(
      produce(
        world(name, () => !phase.producing),
        new Random(values.seed, name),
      ),
    );
  }
  for (let n = 0; n < WORKERS; n++) {
    const name = `worker-${n}`;
    actors.push(
      work(
        world(name, () => !phase.working),
        new Random(values.seed, name),
        name,
      ),
    );
  }
  const ended = Promise.all(actors);
  ended.catch((error) => {
    console.error(error);
    process.exit(2);
  });

  await server.start();
  for (phase.round = 1; phase.round <= rounds; phase.round++) {
    gate.open();
    const loadMs = phase.round > 1 && random.chance(0.25) ? random.int(0, 400) : random.int(1_000, 6_000);
    await delay(loadMs);
    if (phase.round % QUIET_EVERY === 2) {
      await quietRound(host);
    } else {
      const burst = random.chance(0.7) ? Array.from({ length: random.int(2, 10) }, () => spread(host, random)) : [];
      await crash();
      await Promise.all(burst);
      await server.start();
    }
    const { enqueues, runs } = ledger;
    say(`round ${phase.round}: killed after ${loadMs} ms; ${enqueues.length} enqueues, ${runs.length} runs so far`);
  }

  phase.producing = false;
  phase.calm = true;
  await lastCrash(host);
  await leaveAlone();
  say('left alone; now the audit of what nobody touched, and the rest of the work');
  await drain();
  phase.working = false;
  await ended;
  ledger.audits.push(await audit(client, new Random(values.seed, 'audit')));
  await crash();
  await server.start();
  ledger.audits.push(await audit(client, new Random(values.seed, 'audit')));
}

/** Prints the figures, and in case of a failure what shows it. Answers whether all is well. */
function report(failure) {
  const { violations, counts } = check(JSON.parse(JSON.stringify(ledger)));
  for (const [name, figures] of Object.entries(counts)) {
    const text =
      typeof figures === 'number'
        ? figures
        : Object.entries(figures)
            .map(([key, n]) => `${key} ${n}`)
            .join(', ');
    console.log(`  ${name}: ${text}`);
  }
  console.log(`  requests: ${client.calls}`);
  if (failure === undefined && violations.length === 0) return true;
  if (failure) console.error(`\nThe test broke off in round ${phase.round}:`, failure);
  const rules = new Map(violations.map(({ rule }) => [rule, []]));
  for (const violation of violations) rules.get(violation.rule).push(violation);
  for (const [rule, list] of rules) console.error(`${list.length} × ${rule}`);
  for (const list of rules.values()) {
    for (const { rule, message, evidence } of list.slice(0, 3)) {
      console.error(`\n[${rule}] ${message}\n${JSON.stringify(evidence, null, 1)?.slice(0, 4_000) ?? ''}`);
    }
  }
  writeFileSync(join(directory, 'ledger.json'), JSON.stringify({ seed: values.seed, rounds, ...ledger.toJSON() }));
  writeFileSync(join(directory, 'violations.json'), JSON.stringify(violations));
  console.error(`\nseed ${values.seed}, ${rounds} rounds. Storage, log and ledger are kept in ${directory}`);
  return false;
}

let failure;
try {
  await run();
} catch (error) {
  failure = error;
}
await server.kill();
collector.close();
collector.closeAllConnections();
const well = report(failure);
if (well) {
  rmSync(directory, { recursive: true, force: true });
  say('all promises were kept');
}
process.exit(well ? 0 : 1);
