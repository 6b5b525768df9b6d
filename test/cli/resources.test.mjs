// The commands about schedules, workflows, limits, pools, schemas and alert rules, against the queue in `wrangler dev`.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev } from '../docs/dev.mjs';
import { against, load } from './cli.mjs';

let folder;
let server;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-resources-'));
  server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
});
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const { run, json, call } = against(() => server.url);

/** A file with this JSON. @returns its path */
function file(name, content) {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

/** Runs a command that must succeed, for its text. */
async function text(...args) {
  const { code, stdout, stderr } = await run(...args);
  assert.equal(code, 0, stderr);
  return stdout;
}

describe('tocsin', { timeout: 900_000 }, () => {
  it('makes alert rules from options or a file, turns them off and on, and deletes them', async () => {
    assert.equal(await text('alerts'), 'No alert rules.\n');
    const late = ['alerts', 'add', 'mail is late', '--queue', 'mail', '--metric', 'oldest_age', '--above', '5m'];
    const { alert } = await json(...late, '--for', '1m');
    assert.deepEqual(
      [alert.name, alert.queue, alert.metric, alert.above, alert.for, alert.active],
      ['mail is late', 'mail', 'oldest_age', 300, 'PT1M', true],
    );
    const deep = file('alert.json', { name: 'deep', metric: 'depth', above: 10, queue: 'mail' });
    const made = (await json('alerts', 'add', '--file', deep, '--above', '0.5', '--metric', 'error_rate')).alert;
    assert.deepEqual([made.name, made.metric, made.above], ['deep', 'error_rate', 0.5], 'options go before the file');
    assert.match(
      await text('alerts'),
      new RegExp(`^${alert.id} +ok +mail is late +mail +oldest_age > 300 for PT1M`, 'm'),
    );
    assert.equal((await json('alerts', 'change', alert.id, '--name', 'late', '--above', '600')).alert.above, 600);
    assert.equal((await json('alerts', 'pause', alert.id)).alert.active, false);
    assert.match(await text('alerts'), new RegExp(`^${alert.id} +off +late `, 'm'));
    assert.equal((await json('alerts', 'resume', alert.id)).alert.active, true);
    assert.match(await text('alerts', 'show', alert.id), /^name +late$(.|\n)*^created at +\S+ \(.*ago\)$/m);
    for (const { id } of [alert, made]) assert.deepEqual(await json('alerts', 'remove', id), { removed: id });
    assert.deepEqual(await json('alerts'), { alerts: [] });
    assert.match((await run('alerts', 'show', alert.id)).stderr, /not found/);
    assert.match((await run('alerts', 'add', 'x', '--metric', 'luck', '--above', '1')).stderr, /metric must be/);
  });

  it('makes schedules from options or a file, fires, pauses, changes and deletes them', async () => {
    const nightly = ['--expression', '0 2 * * *', '--timezone', 'Europe/Paris', '--type', 'report.build'];
    const { cron } = await json(
      'crons',
      'set',
      'nightly',
      ...nightly,
      '--args',
      '[{"of":"sales"}]',
      '--queue',
      'reports',
    );
    assert.deepEqual(
      [cron.type, cron.args, cron.queue, cron.status],
      ['report.build', [{ of: 'sales' }], 'reports', 'active'],
    );
    assert.match(await text('crons'), /^nightly +active +0 2 \* \* \* +Europe\/Paris +reports +report\.build +in /m);
    assert.match(await text('crons', 'show', 'nightly'), /^next fires\n {2}\d{4}-.*\n {2}\d{4}-/m);
    assert.equal((await json('crons', 'change', 'nightly', '--missed', 'skip', '--fires', '9')).cron.limit, 9);
    assert.equal((await json('crons', 'pause', 'nightly')).cron.status, 'paused');
    assert.equal(await text('crons', 'resume', 'nightly'), 'nightly  active\n');
    const { job } = await json('crons', 'trigger', 'nightly');
    assert.deepEqual([job.type, job.queue, job.state], ['report.build', 'reports', 'available']);
    assert.deepEqual(
      (await json('crons', 'history', 'nightly')).executions.map(({ job_id, trigger }) => [job_id, trigger]),
      [[job.id, 'manual']],
    );
    assert.match(await text('crons', 'history', 'nightly'), new RegExp(`^${job.id} +available +manual`, 'm'));
    const template = { type: 'a.b', args: [1], options: { priority: 5 } };
    const hourly = file('cron.json', { expression: '@hourly', job_template: template });
    const made = (await json('crons', 'set', 'hourly', '--file', hourly, '--queue', 'other')).cron;
    assert.deepEqual([made.queue, made.job_template.args, made.job_template.options.priority], ['other', [1], 5]);
    await call('PUT', '/cron-groups/billing', {
      entries: [{ name: 'invoices', expression: '@daily', job_template: template }],
    });
    assert.deepEqual(
      (await json('crons', '--group', 'billing')).crons.map(({ name }) => name),
      ['invoices'],
    );
    assert.match(await text('crons', 'show', 'invoices'), /^job template +\{"type":"a.b","args":\[1\],/m);
    const group = file('group.json', {
      entries: [{ name: 'reminders', expression: '@weekly', job_template: template }],
    });
    const { deleted, created } = (await json('crons', 'set-group', 'billing', '--file', group)).group;
    assert.deepEqual([created, deleted], [['reminders'], ['invoices']]);
    assert.match(await text('crons', 'set-group', 'billing', '--file', group), /^unchanged +reminders\n\nNAME/m);
    assert.deepEqual((await json('crons', 'groups')).groups, [{ name: 'billing', count: 1 }]);
    assert.deepEqual(await json('crons', 'remove-group', 'billing'), { removed: 'billing' });
    for (const name of ['nightly', 'hourly']) await json('crons', 'remove', name);
    assert.equal(await text('crons'), 'No schedules.\n');
    assert.match((await run('crons', 'set', 'x', '--expression', 'never', '--type', 'a.b')).stderr, /expression/);
  });

  it('starts workflows from a file, shows their steps, and cancels them', async () => {
    const step = (type) => ({ type, args: [], options: { queue: 'flows' } });
    const group = { type: 'group', jobs: [step('report.pdf'), step('report.csv')] };
    const form = { type: 'chain', name: 'monthly', steps: [step('report.collect'), group] };
    const { workflow } = await json('workflows', 'start', file('flow.json', form));
    assert.deepEqual([workflow.name, workflow.state, workflow.steps.length], ['monthly', 'running', 2]);
    assert.match(await text('workflows'), new RegExp(`^${workflow.id} +running +chain +monthly +\\d`, 'm'));
    const told = await text('workflows', 'show', workflow.id);
    assert.match(told, /^state +running$/m);
    const [first, , inner] = told.split('\n').slice(told.split('\n').findIndex((line) => line.startsWith('STEP')) + 1);
    assert.match(first, /^\S+ +report\.collect +(pending|active) +0/);
    assert.match(inner, /^\S+\.\S+ +report\.pdf +waiting/);
    assert.match(await text('workflows', 'progress', workflow.id), /^running {2}0 %\n\nSTEP/);
    assert.equal(await text('workflows', 'cancel', workflow.id), `${workflow.id}  cancelled\n`);
    assert.equal((await run('workflows', 'cancel', workflow.id)).code, 1);
    assert.equal((await json('workflows', '--state', 'cancelled')).workflows.length, 1);
    assert.equal((await json('workflows', '--state', 'running,failed')).workflows.length, 0);
    assert.equal((await run('workflows', '--state', 'asleep')).code, 2);
  });

  it('overrides the limits of a key for a while, and ends that', async () => {
    const rate_limit = { key: 'stripe', concurrency: 5, rate: 100, period: 'minute' };
    await call('POST', '/jobs', { type: 'a.b', args: [], options: { queue: 'charges', rate_limit } });
    assert.match(await text('limits'), /^stripe +5 at once, 100 in PT1M +0 +0 +0$/m);
    const { rate_limit: stopped } = await json('limits', 'override', 'stripe', '--concurrency', '0', '--for', 'PT15M');
    assert.equal(stopped.override.concurrency, 0);
    assert.ok(Date.parse(stopped.override.expires_at) > Date.now());
    assert.match(await text('limits'), /^stripe +0 at once, .* in 1[45]m/m);
    assert.match(await text('limits', 'show', 'stripe'), /^QUEUE +LIMITS.*\ncharges +0 at once/m);
    assert.deepEqual(await json('limits', 'restore', 'stripe'), { restored: 'stripe' });
    assert.equal((await json('limits', 'show', 'stripe')).rate_limit.override, undefined);
    const given = file('override.json', { limit: 10, period: 'second' });
    assert.equal((await json('limits', 'override', 'stripe', '--file', given)).rate_limit.override.period, 'PT1S');
    assert.match((await run('limits', 'show', 'nobody')).stderr, /not found/);
  });

  it('registers schemas and removes them', async () => {
    const schema = { prefixItems: [{ type: 'object', required: ['send_to'] }], minItems: 1 };
    const path = file('schema.json', schema);
    assert.equal(await text('schemas', 'set', 'mail.send', '1', '--file', path), 'mail.send  1  registered\n');
    assert.deepEqual((await json('schemas', 'show', 'mail.send')).schema.schema, schema);
    assert.match(await text('schemas', 'show', 'mail.send', '1'), /"send_to"/);
    assert.match(await text('schemas'), /^mail\.send +1 +urn:ojs:schema:mail\.send:1 /m);
    assert.deepEqual(await json('schemas', 'remove', 'mail.send', '1'), { removed: 'mail.send 1' });
    assert.deepEqual(await json('schemas'), { schemas: [] });
  });

  it('creates keys, narrows, rotates and revokes them', async () => {
    assert.equal(await text('keys'), 'No keys.\n');
    const bounds = ['--queue', 'mail-*,sms', '--type', 'email.*', '--group', 'acme', '--expires', '90d'];
    const { key, secret } = await json('keys', 'create', 'acme web', '--role', 'operator', ...bounds);
    assert.match(secret, new RegExp(`^toc_${key.id}_`));
    assert.deepEqual([key.queues, key.types, key.groups], [['mail-*', 'sms'], ['email.*'], ['acme']]);
    assert.match(
      await text('keys'),
      new RegExp(`^${key.id} +acme web +operator +mail-\\*, sms +email\\.\\* +acme +never`, 'm'),
    );
    const narrow = await json('keys', 'narrow', key.id, '--queue', 'mail-eu', '--name', 'acme eu');
    assert.deepEqual([narrow.key.name, narrow.key.queues], ['acme eu', ['mail-eu']]);
    assert.match((await run('keys', 'narrow', key.id, '--queue', 'mail-*')).stderr, /only narrows a key/);
    const rotated = await text('keys', 'rotate', key.id, '--overlap', '24h');
    assert.match(rotated, new RegExp(`^toc_${key.id}_[\\w-]{43}\nThe key is shown only now`));
    assert.notEqual(rotated.split('\n')[0], secret);
    assert.match(await text('keys', 'show', key.id), /^former until +\S+ \(in .*\)$/m);
    assert.match((await run('keys', 'create', 'nothing')).stderr, /role or scopes/);
    assert.deepEqual(await json('keys', 'revoke', key.id), { removed: key.id });
    assert.deepEqual(await json('keys'), { keys: [] });
  });

  it('defines pools, says what they gave, and removes them', async () => {
    const weighted = ['--queue', 'urgent,bulk', '--weight', 'urgent=3', '--weight', 'bulk=1', '--concurrency', '7'];
    const { pool } = await json('pools', 'set', 'mail', ...weighted);
    assert.deepEqual([pool.strategy, pool.weights.urgent, pool.concurrency], ['weighted', 3, 7]);
    assert.match(await text('pools'), /^mail +weighted +urgent=3, bulk +7 /m);
    assert.match(await text('pools', 'show', 'mail'), /^queues +urgent, bulk$/m);
    assert.match(await text('pools', 'stats', 'mail'), /^mail +urgent +3 +0/m);
    assert.equal((await run('pools', 'set', 'mail', '--weight', 'urgent')).code, 2);
    assert.deepEqual(await json('pools', 'remove', 'mail'), { removed: 'mail' });
    assert.equal(await text('pools'), 'No pools.\n');
  });

  it('says of a file what is wrong with it, before anything is sent', async () => {
    const cases = [
      [join(folder, 'nowhere.json'), /nowhere\.json cannot be read: there is no such file/],
      [file('broken.json', '{"name"'), /broken\.json is not JSON/],
      [file('list.json', []), /list\.json must hold a JSON object/],
    ];
    for (const [path, says] of cases) {
      const { code, stdout, stderr } = await run('alerts', 'add', '--file', path);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, says);
    }
  });

  it('warns of ended jobs that cannot stay as long as the retention says', async () => {
    const storage = async () => (await json('doctor')).checks.filter(({ name }) => name === 'storage');
    await call('POST', '/jobs', { type: 'rest', args: [], queue: 'roomy' });
    const [calm] = await storage();
    assert.deepEqual([calm.status, /uses less than 1 % of 9\.5 GB$/.test(calm.message)], ['ok', true], calm.message);
    await call('PUT', '/queues/crowded/config', { max_storage_bytes: 1_000_000 });
    const jobs = Array.from({ length: 1_000 }, (_, index) => ({ type: 'drop', args: [index], queue: 'crowded' }));
    await call('POST', '/jobs/batch', { jobs });
    for (let left = jobs.length; left > 0; ) {
      const { jobs: fetched } = await call('POST', '/workers/fetch', { queues: ['crowded'], count: 100 });
      assert.ok(fetched.length > 0);
      left -= fetched.length;
      await call('POST', '/workers/report', { reports: fetched.map(({ id }) => ({ action: 'ack', job_id: id })) });
    }
    const [warning] = await storage();
    assert.equal(warning.status, 'warn');
    assert.match(warning.message, /^crowded: ended jobs stay about \S+, not 7d: \d+ jobs\/s of \d+ bytes\.$/);
    assert.match(warning.hint, /capacity\.md/);
    await call('PUT', '/queues/crowded/config', { retention: { completed: '1s' } });
    assert.deepEqual(
      (await storage()).map(({ status }) => status),
      ['ok'],
    );
  });

  it('asks a human at a terminal before it deletes, unless --yes is given', async () => {
    const { createProgram, run: runProgram } = await load('program.ts');
    await json('pools', 'set', 'kept', '--queue', 'a');
    const asked = [];
    let answer = false;
    const remove = async (...args) => {
      const said = { out: '', err: '' };
      const terminal = {
        out: (words) => {
          said.out += words;
        },
        err: (words) => {
          said.err += words;
        },
        env: { TOCSIN_URL: server.url },
        interactive: true,
        confirm: async (question) => asked.push(question) > 0 && answer,
        now: Date.now,
        warnings: [],
      };
      const code = await runProgram(createProgram(terminal, '0.0.0'), ['pools', 'remove', 'kept', ...args], terminal);
      return { code, ...said };
    };
    assert.deepEqual(await remove(), { code: 1, out: '', err: 'tocsin: Nothing was changed.\n' });
    assert.equal((await json('pools')).pools.length, 1);
    answer = true;
    assert.equal((await remove()).out, 'kept  removed\n');
    assert.deepEqual(asked, Array(2).fill('Delete the pool kept?'));
    for (const quiet of ['--yes', '--json']) {
      await json('pools', 'set', 'kept', '--queue', 'a');
      assert.equal((await remove(quiet)).code, 0);
    }
    assert.equal(asked.length, 2);
  });
});
