// The commands about handlers: a Worker with the queue, handlers of its own and settings in code, in `wrangler dev`.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev, until } from '../docs/dev.mjs';
import { against } from './cli.mjs';

const LIMIT_MS = 120_000;
const OWN = 'test/cli/worker/wrangler.toml';
const SMS = 'test/cli/worker/sms.toml';

let folder;
let server;

const serve = (config, state) => dev([config], { state: join(folder, state), registry: join(folder, 'registry') });

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-handled-'));
  server = await serve(OWN, 'state');
});
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const { run, json, call } = against(() => server.url);

/** Waits until the job waits for this, and answers what `tocsin why` says then. */
const waiting = (id, reason) =>
  until(`${id} to wait for ${reason}`, LIMIT_MS, async () => {
    const found = await json('why', id);
    return found.why.reason === reason && found;
  });

describe('tocsin', { timeout: 900_000 }, () => {
  it('says once that what the code declares was not in effect, since nothing had happened there', async () => {
    const settings = async () => (await json('doctor')).checks.find(({ name }) => name === 'settings');
    const found = await settings();
    assert.deepEqual([found?.status, /took effect only with this check/.test(found?.message)], ['warn', true]);
    assert.match(found.hint, /tocsin deploy/);
    assert.equal(await settings(), undefined);
  });

  it('follows a wait for children to the deepest one, and says how to end that', async () => {
    const { job } = await json('enqueue', 'order.nested', '3');
    const { stdout } = await until('the deepest child to wait', LIMIT_MS, async () => {
      const found = await run('why', job.id);
      return found.stdout.includes('tocsin signal') && found;
    });
    const [reason, facts] = stdout.split('\n\n');
    assert.match(
      reason,
      /\n {6}(\S+) \(order\.nested\): It waits for the signal packed: .+\n→ tocsin signal \1 packed$/,
    );
    assert.match(
      reason,
      /^It waits for job \S+ \(order\.nested\) in queue default\. It continues without it in (?:1h|59m\d+s)\./,
    );
    assert.doesNotMatch(reason, /\d{4}-\d\d-\d\dT/);
    assert.match(facts, /^attempts +1 of 3$/m);
    assert.match(stdout, /^below +waits for order\.nested until /m);
  });

  it('says what a handler waits for, sends the signal, and shows the steps and the log', async () => {
    const { job } = await json('enqueue', 'order.fulfil', '17');
    const asked = await waiting(job.id, 'signal');
    assert.equal(asked.why.hint, `tocsin signal ${job.id} 'approved by boss'`);
    const { at, ...charge } = asked.steps.charge;
    assert.deepEqual(charge, { result: { order: 17, receiptNumber: 'r1' }, seq: 1 });
    assert.equal(typeof at, 'number');
    assert.deepEqual(
      asked.log.map(({ level, message, fields }) => [level, message, fields]),
      [['info', 'begun', { orderNumber: 17 }]],
    );

    await json('signal', job.id, 'approved by boss', '{"by":"ann"}');
    const { why, steps } = await waiting(job.id, 'snoozed');
    assert.equal(why.hint, undefined, 'its handler would sleep again');
    assert.deepEqual(steps['approved by boss'].signal.payload, { by: 'ann' });

    const shown = await run('job', job.id);
    assert.match(shown.stdout, /^progress +50 % {2}paid$/m);
    assert.match(shown.stdout, /^charge +done: \{"order":17,"receiptNumber":"r1"\}$/m);
    assert.match(shown.stdout, /^approved by boss +signal .*: \{"by":"ann"\}$/m);
    assert.match(shown.stdout, /^delivery +until .* \(in (3d|2d23h)\)$/m);
    assert.match(shown.stdout, /^[\d-]+T[\d:.]+Z {2}INFO {3}begun {2}\{"orderNumber":17\}$/m);
    assert.match(shown.stdout, /^created +\S+ \(.* ago\)$/m);
    const [first, last] = ['first', 'last'].map(
      (which) => new RegExp(`^${which} run +(\\S+) `, 'm').exec(shown.stdout)[1],
    );
    assert.ok(Date.parse(first) < Date.parse(last), 'the signal woke it after its first run');
    const { lines } = await json('log', job.id);
    assert.equal(lines.length, 2, 'it ran twice');
    assert.equal((await run('log', job.id)).stdout.trim().split('\n').length, 2);
    assert.equal((await run('signal', job.id, 'x', '{no')).code, 2);
  });

  it('cuts long values and many steps, and says how to see all of them', async () => {
    const { job } = await json('enqueue', 'order.counted');
    const { steps } = await waiting(job.id, 'signal');
    assert.equal(Object.keys(steps).length, 26);
    const cut = (await run('why', job.id)).stdout;
    assert.match(cut, /^… and 6 earlier steps\ncount 7 +done/m);
    assert.ok(Math.max(...cut.split('\n').map((line) => line.length)) < 500);
    assert.match(cut, new RegExp(`^Values end in "…" where they are cut. Show all: tocsin job ${job.id} --full$`, 'm'));
    const full = (await run('job', job.id, '--full')).stdout;
    assert.match(full, /^count 1 +done/m);
    assert.match(full, /x{1000}/);
    assert.doesNotMatch(full, /where they are cut/);
  });

  it("keeps the wire's names of a signal that has not come in time", async () => {
    const { job } = await json('enqueue', 'order.hurried');
    const outcome = await until('the end', LIMIT_MS, async () => {
      const found = await json('job', job.id);
      return found.job.state === 'completed' && found;
    });
    const { at } = outcome.steps.never;
    assert.deepEqual(outcome.steps, { never: { timed_out: true, seq: 1, at } });
  });

  it('wakes a job that was put off, and makes a pending one available', async () => {
    const { job } = await json('enqueue', 'greeting.write', 'Ada', '--delay', '1h');
    assert.equal((await json('why', job.id)).why.hint, `tocsin reschedule ${job.id}`);
    const later = (await json('reschedule', job.id, '2h')).jobs[0];
    assert.ok(Date.parse(later.scheduled_at) > Date.parse(job.scheduled_at));
    assert.equal((await json('reschedule', job.id, '2100-01-01T00:00:00Z')).jobs[0].scheduled_at.slice(0, 4), '2100');
    await json('reschedule', job.id);
    const done = await until('the end', LIMIT_MS, async () => {
      const found = await json('job', job.id);
      return found.job.state === 'completed' && found.job;
    });
    assert.equal(done.result, 'Hello, Ada!');

    const held = '01962222-bbbb-7ccc-8ddd-000000000001';
    await call('POST', '/jobs', { id: held, type: 'nobody.takes', args: [], options: { pending: true } });
    assert.equal((await json('why', held)).why.hint, `tocsin activate ${held}`);
    assert.equal((await json('activate', held)).jobs[0].state, 'available');
  });

  it('lists what a handler has enqueued', async () => {
    const { job } = await json('enqueue', 'greeting.all');
    const { jobs } = await until('the children', LIMIT_MS, async () => {
      const found = await json('jobs', '--parent', job.id);
      return found.jobs.length === 2 && found;
    });
    assert.deepEqual([...new Set(jobs.map(({ meta }) => meta.parent_id))], [job.id]);
  });

  it('repeats what the server warns of, also where the command fails', async () => {
    const mean = /Did you mean "greeting\.write"\?/;
    const wrong = ['enqueue', 'greting.write', 'Ada', '--queue', 'mail'];
    const { code, stdout, stderr } = await run(...wrong);
    assert.equal(code, 0);
    assert.match(stderr, mean);
    assert.doesNotMatch(stdout, mean);
    const { warnings, job } = await json(...wrong);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], mean);
    assert.equal((await json('why', job.id)).warnings, undefined);

    const waits = run(...wrong, '--id', '01962222-bbbb-7ccc-8ddd-000000000002', '--wait', '--json');
    await until(
      'the job',
      LIMIT_MS,
      async () => (await run('cancel', '01962222-bbbb-7ccc-8ddd-000000000002')).code === 0,
    );
    const failed = await waits;
    assert.equal(failed.code, 1);
    assert.match(JSON.parse(failed.stdout).warnings[0], mean);
  });

  it('checks what the code declares, and what an operator changed', async () => {
    const messages = async () => {
      const { checks } = await json('doctor');
      return Object.fromEntries(checks.map(({ name, message }) => [name, message]));
    };
    const before = await messages();
    assert.match(before.handlers, /greeting\.write.*order\.fulfil/);
    assert.equal(before.queues, 'in code: mail');
    assert.equal(before.limits, 'in code: stripe');
    assert.equal(before.schedules, 'in code: nightly');
    assert.equal(before.settings, undefined, 'all of it is in effect');
    await call('PUT', '/queues/mail/config', { concurrency: 3 });
    await call('PATCH', '/cron/nightly', { enabled: false });
    await call('PUT', '/rate-limits/stripe/override', { concurrency: 0 });
    const changed = await messages();
    assert.equal(changed.queues, 'in code: mail; changed by an operator: mail.concurrency');
    assert.match(changed.schedules, /changed by an operator: nightly/);
    assert.equal(changed.limits, 'in code: stripe; changed by an operator: stripe');
  });

  it('shows a handler that is down, and tries it when it is there', async () => {
    const { job } = await json('enqueue', 'sms.send', 'Ada', '--queue', 'texts');
    const { why } = await waiting(job.id, 'handler_down');
    assert.equal(why.hint, 'tocsin targets resume SMS');
    const down = async () => (await json('targets')).targets.find(({ name }) => name === 'SMS');
    const stopped = await until('the handler to be stopped', LIMIT_MS, async () => {
      const found = await down();
      return found.state === 'stopped' && found;
    });
    assert.ok(stopped.last_error && stopped.next_try_at);
    assert.match((await run('targets')).stdout, /^SMS +stopped +sms\.\* .*not running/m);
    const { checks } = await json('doctor');
    const check = checks.find(({ name, status }) => name === 'target' && status === 'warn');
    assert.match(check.message, /^SMS is stopped: /);
    assert.match(check.hint, /tocsin targets resume SMS$/);

    const refused = await run('targets', 'resume', 'SMS', '--json');
    assert.equal(refused.code, 1);
    assert.equal(JSON.parse(refused.stdout).resumed, 0);
    assert.equal(JSON.parse(refused.stderr).error.code, 'down');
    assert.match((await run('targets', 'resume', 'NOBODY')).stderr, /NOBODY not found/);

    const sms = await serve(SMS, 'sms');
    try {
      await until('the handler', LIMIT_MS, async () => (await run('targets', 'resume', 'SMS')).code === 0);
      const done = await until('the end', LIMIT_MS, async () => {
        const found = await json('job', job.id);
        return found.job.state === 'completed' && found;
      });
      assert.equal(done.job.result, 'sent to Ada');
      assert.equal((await down()).state, 'up');
      assert.match((await run('targets', 'resume', 'SMS')).stdout, /is not down in any queue/);
    } finally {
      await sms.stop();
    }
  });
});
