// `tocsin migrate graphile-worker`: jobs that graphile-worker itself has put into PostgreSQL, and its crontab.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { counted, lacksPostgres, leftOut, madeOf, peers, postgres, projectWith, rowsOf, target } from './kit.mjs';

const HOUR = 3_600_000;
const lacking = lacksPostgres() ?? peers().problem;
const skip = lacking && leftOut('Moving from graphile-worker', lacking);

describe('moving from graphile-worker', { skip, timeout: 900_000 }, () => {
  let source;
  let here;
  let tools;
  let db;
  let cwd;
  const ids = {};

  before(async () => {
    source = await postgres();
    here = await target();
    cwd = projectWith(peers().directory);
    db = new (peers().require('pg').Client)({ connectionString: source.connectionString });
    await db.connect();
    await fill();
  });

  after(async () => {
    await tools?.release();
    await db?.end();
    await here?.close();
    await source?.close();
  });

  const migrate = (...args) => here.migrate(['graphile-worker', source.connectionString, ...args], { cwd });
  const state = () =>
    rowsOf(
      db,
      ['_private_jobs', '_private_tasks'].map((table) => `graphile_worker.${table}`),
    );

  /** One of each kind. */
  async function fill() {
    const { connectionString } = source;
    const { Logger, makeWorkerUtils, run, runOnce } = peers().require('graphile-worker');
    const logger = new Logger(() => () => undefined);
    tools = await makeWorkerUtils({ connectionString, logger });
    await tools.migrate();
    const add = async (name, ...args) => {
      ids[name] = (await tools.addJob(...args)).id;
    };
    await add('retry', 'fail', { n: 1 }, { maxAttempts: 4 });
    await add('failed', 'fail', { n: 2 }, { maxAttempts: 1 });
    const taskList = {
      fail: () => {
        throw new Error('no luck');
      },
    };
    const common = { connectionString, logger, taskList, noHandleSignals: true };
    await runOnce(common);
    const events = new EventEmitter();
    const known = once(events, 'cron:started');
    const runner = await run({ ...common, events, crontab: '0 3 * * * fail ?id=nightly' });
    await known;
    await runner.stop();
    await add('plain', 'send_email', { to: 'ada', someKey: [1, null] });
    await add('late', 'SendEmail', { to: 'late' }, { runAt: new Date(Date.now() + HOUR), priority: -5 });
    await add('serial', 'import', { file: 'a' }, { queueName: 'account-17' });
    await add('keyed', 'import', { file: 'b' }, { jobKey: 'b', priority: 2000, flags: ['heavy'] });
    await add('large', 'import', { text: 'x'.repeat(1_100_000) });
  }

  it('checks all of it in a dry run, which changes nothing on either side', async () => {
    const before = await state();
    const { code, report, stderr } = await migrate('--dry-run');
    assert.equal(code, 1, stderr);
    assert.deepEqual(report.jobs, { found: 6, moved: 5, there: 0, superseded: 0, refused: 1 });
    assert.deepEqual(await here.jobs(), []);
    assert.deepEqual(await state(), before);
  });

  it('moves jobs with what they are, and says what has no equal', async () => {
    const before = await state();
    const { report } = await migrate('--as', 'default=work', '--as', 'SendEmail=mail:email.send');
    assert.deepEqual(await state(), before, 'nothing was written there');
    assert.deepEqual(report.jobs, { found: 6, moved: 5, there: 0, superseded: 0, refused: 1 });
    assert.deepEqual([report.refused.length, report.refused[0].id], [1, ids.large]);
    const remarks = { 'named queue': 1, 'priority out of range': 1, 'job key': 1, flags: 1 };
    assert.deepEqual(counted(report.remarks), remarks);
    assert.deepEqual(counted(report.left), { 'failed jobs': 1, 'crontab entries': 1 });

    const jobs = await here.jobs();
    const made = (name) => madeOf(jobs, ids[name]);
    const rows = Object.fromEntries(
      (await db.query('SELECT * FROM graphile_worker._private_jobs')).rows.map((row) => [row.id, row]),
    );
    const plain = made('plain');
    assert.deepEqual(
      [plain.type, plain.queue, plain.args, plain.state, plain.priority, plain.max_attempts],
      ['send_email', 'work', [{ to: 'ada', someKey: [1, null] }], 'available', 0, 25],
    );
    assert.deepEqual([plain.retry.initial_interval, plain.retry.max_interval], [2718, 22_026_466]);
    assert.equal(Number.parseInt(plain.id.replaceAll('-', '').slice(0, 12), 16), rows[ids.plain].created_at.getTime());
    const late = made('late');
    assert.deepEqual([late.state, late.type, late.queue, late.priority], ['scheduled', 'email.send', 'mail', 5]);
    assert.equal(Date.parse(late.scheduled_at), rows[ids.late].run_at.getTime());
    const retry = made('retry');
    assert.deepEqual([retry.max_attempts, retry.retry.initial_interval], [3, 7389]);
    assert.deepEqual([retry.meta.migrated_from.attempts, retry.meta.migrated_from.error], [1, 'no luck']);
    assert.equal(made('serial').group, 'account-17');
    assert.deepEqual([made('keyed').unique.key, made('keyed').priority], ['b', -100]);
  });

  it('makes schedules of a crontab', async () => {
    const crontab = join(cwd, 'crontab');
    writeFileSync(
      crontab,
      [
        '# nightly',
        '0 3 * * * fail ?id=nightly&max=3&queue=reports {of: "sales"}',
        '*/5 * * * 1-5 send_email ?fill=1d&priority=-2',
        '99 * * * * wrong',
        'nonsense',
      ].join('\n'),
    );
    const { report } = await migrate('--as', 'default=work', '--crontab', crontab);
    assert.deepEqual(report.schedules, { found: 4, moved: 2, there: 0, superseded: 0, refused: 2 });
    assert.deepEqual(counted(report.left), { 'failed jobs': 1 });
    const crons = Object.fromEntries((await here.crons()).map((cron) => [cron.name, cron]));
    const nightly = crons['graphile-worker.default.nightly'];
    assert.deepEqual(
      [nightly.expression, nightly.type, nightly.args, nightly.queue, nightly.missed_policy],
      ['0 3 * * *', 'fail', [{ of: 'sales' }], 'work', 'skip'],
    );
    assert.deepEqual(
      [nightly.job_template.options.retry.max_attempts, nightly.job_template.options.group],
      [3, 'reports'],
    );
    const often = Object.values(crons).find(({ type }) => type === 'send_email');
    assert.deepEqual(
      [often.missed_policy, often.overlap_policy, often.job_template.options.priority],
      ['fire_all', 'allow', 2],
    );
  });

  it('moves nothing twice, also what has been run here', async () => {
    const ran = await here.runNext('work');
    // The first one that is due: the one that is to be retried after 2.7 s, if all this took longer.
    const due = [[{ to: 'ada', someKey: [1, null] }], [{ n: 1 }]];
    assert.ok(
      due.some((args) => isDeepStrictEqual(args, ran.args)),
      JSON.stringify(ran.args),
    );
    const { report } = await migrate('--as', 'default=work', '--as', 'SendEmail=mail:email.send');
    assert.deepEqual(report.jobs, { found: 6, moved: 0, there: 5, superseded: 0, refused: 1 });
  });

  it('names what cannot be a job with its id, moves all else, and finds both in a dry run', async () => {
    const added = async (payload, runAt = 'now') => {
      const sql = "SELECT id FROM graphile_worker.add_job('odd', $1::json, run_at => $2::timestamptz)";
      return (await db.query(sql, [payload, runAt])).rows[0].id;
    };
    const cut = await added('{"text":"\\ud83d"}');
    const never = await added('{}', 'infinity');
    const huge = await added('[1e400]');
    const nul = await added('{"text":"\\u0000","n":9007199254740993}');
    const past = await added('{}', '-infinity');
    const dry = await migrate('--as', 'default=odd', '--dry-run');
    const { code, report } = await migrate('--as', 'default=odd');
    assert.equal(code, 1);
    assert.deepEqual([dry.report.jobs, dry.report.refused], [{ ...report.jobs, moved: 7, there: 0 }, report.refused]);
    const messages = Object.fromEntries(report.refused.map(({ id, message }) => [id, message]));
    assert.match(messages[cut], /a lone surrogate/);
    assert.match(messages[never], /would never run/);
    assert.match(messages[huge], /beyond the range of doubles/);
    assert.deepEqual(Object.keys(messages).sort(), [cut, never, huge, ids.large].sort());
    const text = await here.textOf(`/jobs/${madeOf(await here.jobs(), nul).id}`);
    assert.match(text, /"args":\[\{"text":"\\u0000","n":9007199254740993\}\]/);
    assert.equal(madeOf(await here.jobs(), past).state, 'available');
  });

  it('says where it is not', async () => {
    const { code, stderr } = await migrate('--schema', 'public');
    assert.equal(code, 1);
    assert.match(stderr, /There is no graphile-worker in the schema public/);
  });
});
