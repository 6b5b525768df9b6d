// `tocsin migrate bullmq`: jobs and schedulers that BullMQ itself has put into Redis.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { lacksRedis, leftOut, madeOf, peers, redis, target } from './kit.mjs';

const HOUR = 3_600_000;
const installed = lacksRedis() ? undefined : peers();
const lacking = lacksRedis() ?? installed.problem;

describe('moving from BullMQ', { skip: lacking && leftOut('Moving from BullMQ', lacking), timeout: 900_000 }, () => {
  let source;
  let here;
  let client;
  const open = [];
  const queueOf = (name) => {
    const queue = new (installed.require('bullmq').Queue)(name, { connection: { port: source.port } });
    open.push(queue);
    return queue;
  };
  const changes = async () => (await client.info('persistence')).match(/rdb_changes_since_last_save:(\d+)/)[1];

  before(async () => {
    source = await redis();
    here = await target();
    client = new (installed.require('ioredis').Redis)({ port: source.port });
    await fill();
  });

  after(async () => {
    for (const one of open) await one.close();
    client?.disconnect();
    await here?.close();
    await source?.close();
  });

  /** One of each kind. */
  async function fill() {
    const { FlowProducer, Worker } = installed.require('bullmq');
    const connection = { port: source.port };
    const mail = queueOf('mail');
    const failing = { attempts: 4, backoff: { type: 'exponential', delay: HOUR } };
    await mail.add('retry', { n: 1 }, failing);
    await mail.add('fail', {}, {});
    await mail.add('complete', {}, {});
    let ended = 0;
    await new Promise((resolve) => {
      const run = async (job) => {
        if (job.name !== 'complete') throw new Error(`no luck with ${job.name}`);
      };
      const worker = new Worker('mail', run, { connection });
      const end = () => ++ended === 3 && resolve(worker.close());
      worker.on('completed', end).on('failed', end);
    });
    await mail.add('send', { to: 'ada', deep: { someKey: [1, null] } });
    await mail.add(
      'SendEmail',
      { to: 'bob' },
      { priority: 5, attempts: 5, backoff: { type: 'fixed', delay: 2000, jitter: 0.5 } },
    );
    await mail.add(
      'send',
      { to: 'late' },
      { delay: HOUR, removeOnComplete: true, removeOnFail: { age: 60, count: 5 } },
    );
    await mail.add('send', { to: 'custom' }, { jobId: 'invoice-17', attempts: 2, backoff: { type: 'mine' } });
    await mail.add('send', { to: 'once' }, { deduplication: { id: 'once' }, priority: 500 });
    await mail.add('send', { text: 'x'.repeat(1_100_000) }, {});
    await mail.add('send', { to: 'timed' }, { deduplication: { id: 'timed', ttl: HOUR } });
    await client.del('bull:mail:de:timed'); // As if the hour were over.
    await mail.add('send', { to: 'timed' }, { deduplication: { id: 'timed', ttl: HOUR } });
    await mail.add('日報', {}, {});
    await mail.add('Envoyé::Vite', {}, {});
    await mail.upsertJobScheduler(
      'nightly',
      { pattern: '0 30 2 * * *', tz: 'Europe/Paris', limit: 10 },
      {
        ...{ name: 'send', data: { report: 1 }, opts: { priority: 3, attempts: 2 } },
      },
    );
    await mail.upsertJobScheduler('Pulse', { every: 90_000 }, { name: 'beat' });
    // As versions before 5.16 wrote them: one with a hash, one without.
    await client.zadd('bull:mail:repeat', Date.now() + HOUR, 'report::::0 6 * * 1');
    await client.zadd('bull:mail:repeat', Date.now() + HOUR, 'abc123');
    await client.hset('bull:mail:repeat:abc123', { name: 'bad', pattern: 'every tuesday' });
    await client.zadd('bull:mail:delayed', (Date.now() + HOUR) * 0x1000, 'repeat:x');
    await client.hset('bull:mail:repeat:x', {
      ...{
        name: 'report',
        data: '{"old":true}',
        opts: '{"attempts":2}',
        timestamp: Date.now(),
        rjk: 'report::::0 6 * * 1',
      },
    });
    const slow = queueOf('Slow_Jobs');
    await slow.pause();
    await slow.add('crunch', { n: 2 });
    const flows = new FlowProducer({ connection });
    open.push(flows);
    await flows.add({ name: 'parent', queueName: 'mail', children: [{ name: 'child', queueName: 'mail', data: {} }] });
  }

  it('checks all of it in a dry run, which changes nothing on either side', async () => {
    const before = await changes();
    const { code, report } = await here.migrate(['bullmq', source.url, '--dry-run']);
    assert.equal(code, 1, 'some of it would be refused');
    assert.equal(report.dry_run, true);
    assert.deepEqual(report.jobs, { found: 13, moved: 11, there: 0, superseded: 0, refused: 2 });
    assert.deepEqual(await here.jobs(), []);
    assert.deepEqual(await here.crons(), []);
    assert.equal(await changes(), before);
  });

  it('moves jobs with what they are, and says what has no equal', async () => {
    const before = await changes();
    const began = Date.now();
    const { code, report, stderr } = await here.migrate(['bullmq', source.url, '--as', 'SendEmail=:email.send']);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /3 could not be moved/);
    assert.equal(await changes(), before, 'nothing was written to Redis');
    assert.deepEqual(report.jobs, { found: 13, moved: 11, there: 0, superseded: 0, refused: 2 });
    assert.deepEqual(
      report.refused.map(({ kind, name, message }) => [kind, name, message.split(/:| must/)[0]]),
      [
        ['job', 'send', 'body is too large'],
        ['job', '日報', 'type'],
        ['schedule', 'bad', 'expression'],
      ],
    );
    assert.deepEqual(Object.fromEntries(report.remarks.map(({ what, count }) => [what, count])), {
      'custom backoff': 1,
      'unique for a time': 2,
      'priority above 100': 1,
      'jobs kept by number': 1,
    });
    assert.deepEqual(Object.fromEntries(report.left.map(({ what, count }) => [what, count])), {
      ...{ 'jobs of flows': 1, 'flows that wait for children': 1, 'completed jobs': 1, 'failed jobs': 1 },
      'paused queues': 1,
    });

    const jobs = await here.jobs();
    const by = (to) => jobs.find(({ args }) => args[0].to === to);
    const ada = by('ada');
    assert.deepEqual(
      [ada.type, ada.queue, ada.args, ada.state, ada.max_attempts, ada.priority],
      ['send', 'mail', [{ to: 'ada', deep: { someKey: [1, null] } }], 'available', 1, 0],
    );
    const there = await queueOf('mail').getJob(ada.meta.migrated_from.id);
    assert.deepEqual(ada.meta.migrated_from, { system: 'bullmq', queue: 'mail', id: there.id });
    assert.equal(Number.parseInt(ada.id.replaceAll('-', '').slice(0, 12), 16), there.timestamp);
    const bob = by('bob');
    assert.deepEqual([bob.type, bob.priority, bob.max_attempts], ['email.send', -5, 5]);
    const { backoff_strategy, initial_interval, jitter } = bob.retry;
    assert.deepEqual(
      [backoff_strategy, initial_interval, jitter],
      ['constant', 2000, { kind: 'multiply', min: 0.5, max: 1 }],
    );
    const late = by('late');
    assert.equal(late.state, 'scheduled');
    assert.ok(Math.abs(Date.parse(late.scheduled_at) - began - HOUR) < 60_000);
    assert.deepEqual(late.retention, { completed: 0, discarded: 60_000 });
    assert.deepEqual(by('custom').unique, { key: 'invoice-17', unique_while: 'exists', on_conflict: 'ignore' });
    assert.deepEqual(by('once').unique, { key: 'once', on_conflict: 'ignore' });
    assert.equal(by('once').priority, -100);
    assert.ok(jobs.some(({ type }) => type === 'envoye.vite'));
    const [retry] = jobs.filter(({ type }) => type === 'retry');
    assert.deepEqual([retry.state, retry.max_attempts], ['scheduled', 3]);
    assert.deepEqual([retry.retry.initial_interval, retry.retry.backoff_coefficient], [2 * HOUR, 2]);
    assert.deepEqual([retry.meta.migrated_from.attempts, retry.meta.migrated_from.error], [1, 'no luck with retry']);
    assert.ok(Math.abs(Date.parse(retry.scheduled_at) - began - HOUR) < 60_000);
    assert.deepEqual(
      jobs.filter(({ queue }) => queue === 'slow-jobs').map(({ type, args }) => [type, args]),
      [['crunch', [{ n: 2 }]]],
    );
  });

  it('makes schedules of schedulers, and does not move the jobs that these will make', async () => {
    const crons = Object.fromEntries(
      (await here.crons()).map((cron) => [cron.name.replace(/-[0-9a-f]{8}$/, ''), cron]),
    );
    assert.deepEqual(Object.keys(crons).sort(), [
      'bullmq.mail.nightly',
      'bullmq.mail.pulse',
      'bullmq.mail.report-0-6-1',
    ]);
    const nightly = crons['bullmq.mail.nightly'];
    assert.deepEqual(
      [nightly.expression, nightly.timezone, nightly.type, nightly.args, nightly.queue, nightly.limit],
      ['0 30 2 * * *', 'Europe/Paris', 'send', [{ report: 1 }], 'mail', 10],
    );
    assert.deepEqual([nightly.job_template.options.priority, nightly.job_template.options.retry.max_attempts], [-3, 2]);
    const pulse = crons['bullmq.mail.pulse'];
    const next = Number(await client.zscore('bull:mail:repeat', 'Pulse'));
    assert.equal(pulse.expression, '@every PT90S');
    assert.equal((Date.parse(pulse.next_run_at) - next) % 90_000, 0);
    assert.deepEqual(crons['bullmq.mail.report-0-6-1'].args, [{ old: true }]);
  });

  it('moves nothing twice, also what has been run here', async () => {
    const first = await here.runNext('slow-jobs');
    assert.equal(first.type, 'crunch');
    const before = await here.jobs();
    const { report } = await here.migrate(['bullmq', source.url, '--as', 'SendEmail=:email.send']);
    assert.deepEqual(report.jobs, { found: 13, moved: 0, there: 11, superseded: 0, refused: 2 });
    assert.deepEqual([report.schedules.moved, report.schedules.there], [0, 3]);
    assert.deepEqual((await here.jobs()).map(({ id }) => id).sort(), before.map(({ id }) => id).sort());
  });

  it('takes only the queues that are named, and the address from the environment', async () => {
    const env = { REDIS: source.url };
    const { report } = await here.migrate(['bullmq', '--from-env', 'REDIS', '--queue', 'Slow_Jobs'], { env });
    assert.equal(report.jobs.found, 1);
    const mistyped = await here.migrate(['bullmq', source.url, '--queue', 'nobody']);
    assert.equal(mistyped.code, 2);
    assert.match(mistyped.stderr, /There are: Slow_Jobs, mail/);
  });

  it('reports to humans as well', async () => {
    const { stdout } = await here.text(['bullmq', source.url, '--dry-run']);
    assert.match(stdout, /^Slow_Jobs +crunch +slow-jobs +crunch +1 +0$/m);
    assert.match(stdout, /^jobs: 13 found, 11 to move, 2 refused$/m);
    assert.match(stdout, /^ {2}custom backoff: 1\. It got the retry policy/m);
    assert.ok(madeOf(await here.jobs(), 'invoice-17'));
  });
});
