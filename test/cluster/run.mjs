/**
 * The cluster test: several `tocsin serve --cluster` share a bucket, with producers and workers at all of them, while one after the
 * other is killed, stands still, loses the bucket, or is restarted. No acknowledged job may be lost, and none handed out twice
 * within a lease. It reports how long each queue took no writes.
 *
 *     node test/cluster/run.mjs [--members 3] [--events kill,freeze,cut,roll] [--queues 6] [--bucket s3://jobs/test]
 *
 * Without `--bucket` it makes a bucket in memory; with it, one of the environment (`AWS_ENDPOINT_URL`, …), which cannot be cut.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import manifest from '../../package.json' with { type: 'json' };
import { layOut } from '../cli/serve/kit.mjs';
import { makeMembers } from './members.mjs';
import { Bucket } from './s3.mjs';

const { values } = parseArgs({
  options: {
    members: { type: 'string', default: '3' },
    events: { type: 'string', default: 'kill,freeze,cut,roll' },
    queues: { type: 'string', default: '6' },
    bucket: { type: 'string' },
  },
});
const EVENTS = values.events.split(',').filter((name) => values.bucket === undefined || name !== 'cut');

/** Lease of a delivery, ms. */
const LEASE_MS = 10_000;
/** Longer than the lease by which a member owns objects. */
const AWAY_MS = 25_000;
/** Load before and after each event, ms. */
const CALM_MS = 3_000;
/** Between two members that are restarted on purpose, ms: the others look every 3 s who has gone. */
const SETTLE_MS = 8_000;
const DRAIN_LIMIT_MS = 120_000;

const started = performance.now();
const now = () => performance.now() - started;
const say = (text) => console.log(`${(now() / 1000).toFixed(1).padStart(6)} s  ${text}`);

const folder = mkdtempSync(join(tmpdir(), 'tocsin-cluster-'));
const bucket = values.bucket === undefined ? new Bucket() : undefined;
const name = values.bucket ?? 's3://bucket/test';
const program = await layOut(join(folder, 'package'));
/** What the members are restarted with: the same code under the version of a newer build. */
const NEWER = '99.0.0-newer';
const newer = EVENTS.includes('roll') ? await buildNewer(join(folder, 'newer')) : undefined;
const members = await makeMembers({ program, folder, count: Number(values.members), bucket, name });
const queues = Array.from({ length: Number(values.queues) }, (_, at) => `c-${at}`);

/** Jobs whose enqueue was acknowledged. */
const accepted = new Map();
/** Answers that no client should get. */
const unexpected = [];
/** Starts of each job: `{at, until, attempt}`. */
const starts = new Map();
/** Acknowledged completions. */
const completed = new Set();
/** When a queue took a job, and when it did not: `{queue, at, ok}`. */
const writes = [];
const phase = { isProducing: true, isWorking: true };

/** A job whose report meets a queue without an owner runs again, as often as that happens. */
const options = { retry: { max_attempts: 50 } };

async function buildNewer(directory) {
  const built = await layOut(directory);
  for (const file of [built, join(directory, 'dist/serve/queue.js')]) {
    const text = readFileSync(file, 'utf8');
    if (!text.includes(`"${manifest.version}"`))
      throw new Error(`${file} does not name the version ${manifest.version}`);
    writeFileSync(file, text.replaceAll(`"${manifest.version}"`, `"${NEWER}"`));
  }
  return built;
}

/** A refusal that says: later. */
const isLater = ({ status, body }) => status === 0 || status === 503 || (status === 500 && body?.error?.retryable);

async function produce(home, queue) {
  while (phase.isProducing) {
    const id = randomUUID().replace(/^(.{8}-.{4}-)4/, '$17');
    for (let first = true; phase.isProducing; first = false) {
      const answer = await home.call('POST', '/jobs', { id, type: 'cluster.job', args: [], queue, options }, 2_000);
      const isTaken = answer.status === 201 || (answer.status === 409 && !first);
      writes.push({ queue, at: now(), ok: isTaken, member: home.number });
      if (isTaken) {
        accepted.set(id, queue);
        break;
      }
      if (!isLater(answer))
        unexpected.push(`enqueue at ${home.number}: ${answer.status} ${JSON.stringify(answer.body)}`);
      await pause(50);
    }
    await pause(30);
  }
}

async function work(home) {
  while (phase.isWorking) {
    const request = { queues, count: 10, visibility_timeout_ms: LEASE_MS };
    const asked = now();
    const answer = await home.call('POST', '/workers/fetch', request, 8_000);
    if (answer.status !== 200) {
      if (!isLater(answer)) unexpected.push(`fetch at ${home.number}: ${answer.status} ${JSON.stringify(answer.body)}`);
      await pause(50);
      continue;
    }
    if (answer.body.jobs.length === 0) await pause(20);
    for (const job of answer.body.jobs) {
      const before = starts.get(job.id) ?? [];
      // The lease began after the request was sent: it ends no earlier.
      before.push({ asked, at: now(), until: asked + LEASE_MS, attempt: job.attempt });
      starts.set(job.id, before);
    }
    await Promise.all(answer.body.jobs.map((job) => acknowledge(home, job)));
  }
}

async function acknowledge(home, { id, delivery_id }) {
  const done = await home.call('POST', '/workers/ack', { job_id: id, delivery_id, result: null }, 5_000);
  if (done.status === 200) completed.add(id);
  else if (!isLater(done) && done.status !== 409) {
    unexpected.push(`ack at ${home.number}: ${done.status} ${JSON.stringify(done.body)}`);
  }
}

/** The longest time in which a queue took nothing although it was asked, within these moments, ms. */
function longestGap(from, to) {
  const gaps = queues.map((queue) => {
    let [last, longest] = [from, 0];
    for (const write of writes) {
      if (write.queue !== queue || !write.ok || write.at < from || write.at > to) continue;
      longest = Math.max(longest, write.at - last);
      last = write.at;
    }
    return Math.max(longest, to - last);
  });
  return gaps.map((gap) => (gap / 1000).toFixed(1)).join(' ');
}

const acting = {
  /** Both processes of a member die, and it comes back. */
  async kill(member) {
    await member.kill();
    await pause(AWAY_MS);
    await member.start();
  },
  /** Its runtime dies; the program starts it again. */
  async crash(member) {
    process.kill(member.workerd, 'SIGKILL');
    await pause(AWAY_MS);
  },
  async freeze(member) {
    member.stop();
    await pause(AWAY_MS);
    member.resume();
  },
  async cut(member) {
    member.door.cut();
    await pause(AWAY_MS);
    member.door.heal();
  },
  /** One after the other is ended, and a newer build started in its place. */
  async roll() {
    for (const member of members) {
      say(`  member ${member.number} ended after ${((await member.end()) / 1000).toFixed(1)} s`);
      await pause(1_000);
      member.program = newer;
      await member.start();
      const { body } = await member.call('GET', '/health');
      if (body?.version !== NEWER) unexpected.push(`member ${member.number} has the version ${body?.version}`);
      await pause(SETTLE_MS);
    }
  },
};

try {
  await Promise.all(members.map((member) => member.start()));
  say(`${members.length} members, ${queues.length} queues, ${name}`);
  const actors = members.flatMap((member) => queues.map((queue) => produce(member, queue)));
  actors.push(...members.flatMap((member) => [work(member), work(member)]));
  await pause(CALM_MS);
  for (const [at, event] of EVENTS.entries()) {
    const member = members[at % members.length];
    const [from, count] = [now(), accepted.size];
    say(`${event}${event === 'roll' ? '' : ` member ${member.number}`}`);
    await acting[event](member);
    await pause(CALM_MS);
    say(`  accepted ${accepted.size - count}; longest time without a write, by queue: ${longestGap(from, now())} s`);
  }
  phase.isProducing = false;
  say(`${accepted.size} jobs accepted; draining`);
  const end = now() + DRAIN_LIMIT_MS;
  const isDrained = () => [...accepted.keys()].every((id) => completed.has(id));
  while (!isDrained() && now() < end) {
    await pause(500);
    // One whose acknowledgement got no answer may have been taken.
    const unsure = [...accepted.keys()].filter((id) => !completed.has(id)).slice(0, 50);
    for (const id of unsure) {
      const { body } = await members[0].call('GET', `/jobs/${id}`);
      if (body?.job?.state === 'completed') completed.add(id);
    }
  }
  phase.isWorking = false;
  await Promise.all(actors);
  const lost = [...accepted.keys()].filter((id) => !completed.has(id));
  for (const id of lost.slice(0, 10)) {
    const seen = await Promise.all(members.map((member) => member.call('GET', `/jobs/${id}`)));
    const said = seen.map(({ status, body }) => `${status} ${body?.job?.state ?? JSON.stringify(body)}`);
    console.log(`lost: ${id} in ${accepted.get(id)}: ${said.join(', ')}; starts ${JSON.stringify(starts.get(id))}`);
  }
  const twice = [...starts].flatMap(([id, all]) =>
    all.flatMap((start, at) => {
      const before = all.slice(0, at).find((one) => start.at < one.until - 50);
      return before ? [`${id}: ${JSON.stringify([before, start])}`] : [];
    }),
  );
  const again = [...starts.values()].filter((all) => all.length > 1).length;
  say(
    `completed ${completed.size}, started again after a lost lease ${again}, lost ${lost.length}, within a lease twice ${twice.length}`,
  );
  // A member that lost the bucket ends its runtime; any other end is a defect of the runtime.
  const ends = members.map(({ lines }) => lines.filter(({ message }) => /^workerd ended/.test(message)).length);
  say(`ends of workerd that its program did not ask for, by member: ${ends.join(' ')}`);
  if (bucket) say(`requests at the bucket: ${JSON.stringify(bucket.requests)}, objects ${bucket.objects.size}`);
  for (const text of [...twice, ...unexpected].slice(0, 20)) console.log(text);
  if (lost.length + twice.length + unexpected.length > 0) process.exitCode = 1;
} finally {
  await Promise.all(members.map((member) => member.kill()));
  bucket?.close();
  rmSync(folder, { recursive: true, force: true });
}
