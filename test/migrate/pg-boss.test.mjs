// `tocsin migrate pg-boss`: jobs and schedules that pg-boss itself has put into PostgreSQL.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { counted, lacksPostgres, leftOut, madeOf, peers, postgres, projectWith, rowsOf, target } from './kit.mjs';

const HOUR = 3_600_000;
const lacking = lacksPostgres() ?? peers().problem;

describe('moving from pg-boss', { skip: lacking && leftOut('Moving from pg-boss', lacking), timeout: 900_000 }, () => {
  let source;
  let here;
  let boss;
  let db;
  let cwd;
  const ids = {};

  before(async () => {
    source = await postgres();
    here = await target();
    cwd = projectWith(peers().directory);
    db = new (peers().require('pg').Client)({ connectionString: source.connectionString });
    await db.connect();
    const { PgBoss } = peers().require('pg-boss');
    boss = new PgBoss({ connectionString: source.connectionString, supervise: false, schedule: false });
    await boss.start();
    await fill();
  });

  after(async () => {
    await boss?.stop({ graceful: false });
    await db?.end();
    await here?.close();
    await source?.close();
  });

  const migrate = (...args) => here.migrate(['pg-boss', source.connectionString, ...args], { cwd });
  const state = () => rowsOf(db, ['pgboss.job', 'pgboss.schedule', 'pgboss.queue']);

  /** One of each kind. */
  async function fill() {
    await boss.createQueue('dead');
    await boss.createQueue('email', { retryLimit: 4, retryDelay: 60, retryBackoff: true, retryDelayMax: 3600 });
    await boss.createQueue('Video_Encode', { policy: 'key_strict_fifo', retryLimit: 0 });
    await boss.createQueue('once', { policy: 'exclusive', retryLimit: 2, retryDelay: 5 });
    // Two have run, one of them for good.
    ids.retry = await boss.send('email', { n: 'retry' });
    ids.done = await boss.send('email', { n: 'done' });
    for (const job of await boss.fetch('email', { batchSize: 2 })) {
      if (job.id === ids.retry) await boss.fail('email', job.id, new Error('no luck'));
      else await boss.complete('email', job.id);
    }
    ids.plain = await boss.send('email', { to: 'ada', someKey: [1, null] });
    ids.first = await boss.send(
      'email',
      { to: 'bob' },
      { priority: 7, retryLimit: 0, expireInSeconds: 90, deadLetter: 'dead' },
    );
    ids.late = await boss.send('email', { to: 'late' }, { startAfter: 3600, group: { id: 'acme' }, priority: 1000 });
    ids.strict = await boss.send('Video_Encode', { file: 'a' }, { singletonKey: 'album-1' });
    ids.once = await boss.send('once', null, { singletonKey: 'k' });
    ids.large = await boss.send('email', { text: 'x'.repeat(1_100_000) });
    await boss.flow([
      { ref: 'a', name: 'email', data: {} },
      { ref: 'b', name: 'email', data: {}, dependsOn: ['a'] },
    ]);
    await boss.schedule('email', '30 2 * * 1', { report: true }, { tz: 'Europe/Paris', priority: 3, missed: 'once' });
    await boss.schedule('email', '*/5 * * * *', null, { key: 'often' });
    await boss.schedule('email', 'FREQ=DAILY;BYHOUR=3', null, { key: 'rule' });
  }

  it('checks all of it in a dry run, which changes nothing on either side', async () => {
    const before = await state();
    const { code, report, stderr } = await migrate('--dry-run');
    assert.equal(code, 1, stderr);
    assert.deepEqual(report.jobs, { found: 7, moved: 6, there: 0, superseded: 0, refused: 1 });
    assert.deepEqual([await here.jobs(), await here.crons()], [[], []]);
    assert.deepEqual(await state(), before);
  });

  it('moves jobs with what they are, and says what has no equal', async () => {
    const before = await state();
    const { report, stderr } = await migrate('--as', 'email=mail:email.send');
    assert.match(stderr, /2 could not be moved/);
    assert.deepEqual(await state(), before, 'nothing was written there');
    assert.deepEqual(report.jobs, { found: 7, moved: 6, there: 0, superseded: 0, refused: 1 });
    assert.deepEqual(
      report.refused.map(({ kind, id }) => [kind, id]),
      [
        ['job', ids.large],
        ['schedule', 'rule'],
      ],
    );
    assert.deepEqual(counted(report.remarks), {
      ...{ 'dead letter queue': 1, 'priority out of range': 1, key_strict_fifo: 1 },
    });
    assert.deepEqual(counted(report.left), { 'jobs of flows': 2, 'completed jobs': 1 });

    const jobs = await here.jobs();
    const made = (name) => madeOf(jobs, ids[name]);
    const rows = Object.fromEntries((await db.query('SELECT * FROM pgboss.job')).rows.map((row) => [row.id, row]));
    const plain = made('plain');
    assert.deepEqual(
      [plain.type, plain.queue, plain.args, plain.state, plain.priority, plain.max_attempts, plain.timeout_ms],
      ['email.send', 'mail', [{ to: 'ada', someKey: [1, null] }], 'available', 0, 5, 900_000],
    );
    assert.deepEqual(
      [plain.retry.initial_interval, plain.retry.max_interval, plain.retry.jitter],
      [120_000, 3_600_000, { kind: 'multiply', min: 0.5, max: 1 }],
    );
    assert.equal(Date.parse(plain.expires_at), rows[ids.plain].keep_until.getTime());
    assert.equal(Number.parseInt(plain.id.replaceAll('-', '').slice(0, 12), 16), rows[ids.plain].created_on.getTime());
    const first = made('first');
    assert.deepEqual([first.priority, first.max_attempts, first.timeout_ms], [7, 1, 90_000]);
    assert.equal(first.retry.on_exhaustion, 'dead_letter');
    const late = made('late');
    assert.deepEqual([late.state, late.group, late.priority], ['scheduled', 'acme', 100]);
    assert.equal(Date.parse(late.scheduled_at), rows[ids.late].start_after.getTime());
    assert.ok(Math.abs(rows[ids.late].start_after - Date.now() - HOUR) < 120_000);
    const retry = made('retry');
    assert.deepEqual([retry.state, retry.max_attempts, retry.retry.initial_interval], ['scheduled', 4, 240_000]);
    assert.deepEqual([retry.meta.migrated_from.attempts, retry.meta.migrated_from.error], [1, 'no luck']);
    const strict = made('strict');
    assert.deepEqual([strict.queue, strict.type, strict.group], ['video-encode', 'video_encode', 'album-1']);
    assert.deepEqual(made('once').unique, { key: 'k', on_conflict: 'ignore' });
    assert.deepEqual(made('once').args, [null]);
  });

  it('makes schedules of schedules', async () => {
    const crons = await here.crons();
    assert.deepEqual(crons.map(({ name }) => name).sort(), ['pg-boss.email.email', 'pg-boss.email.often']);
    const weekly = crons.find(({ name }) => name === 'pg-boss.email.email');
    assert.deepEqual(
      [weekly.expression, weekly.timezone, weekly.type, weekly.queue, weekly.args, weekly.missed_policy],
      ['30 2 * * 1', 'Europe/Paris', 'email.send', 'mail', [{ report: true }], 'fire_once'],
    );
    assert.deepEqual([weekly.job_template.options.priority, weekly.job_template.options.retry.max_attempts], [3, 5]);
  });

  it('moves nothing twice, also what has been run here', async () => {
    const ran = await here.runNext('video-encode');
    assert.deepEqual(ran.args, [{ file: 'a' }]);
    const { report } = await migrate('--as', 'email=mail:email.send');
    assert.deepEqual(report.jobs, { found: 7, moved: 0, there: 6, superseded: 0, refused: 1 });
    assert.deepEqual([report.schedules.moved, report.schedules.there], [0, 2]);
  });

  it('does not put a job beside a newer one that has its unique key', async () => {
    const options = { queue: 'once', unique: { key: 'k2', on_conflict: 'ignore' } };
    await here.server.add({ type: 'once', args: ['newer'], options });
    await boss.send('once', { older: true }, { singletonKey: 'k2' });
    const { code, report } = await migrate('--queue', 'once');
    assert.equal(code, 0);
    assert.deepEqual(report.jobs, { found: 2, moved: 0, there: 1, superseded: 1, refused: 0 });
  });

  it('moves more than is read at once, in the order of enqueue', async () => {
    await boss.createQueue('bulk');
    await boss.insert(
      'bulk',
      Array.from({ length: 450 }, (_, n) => ({ data: { n } })),
    );
    await db.query(
      "UPDATE pgboss.job SET created_on = created_on + (data->>'n')::int * '1 ms'::interval WHERE name = 'bulk'",
    );
    const { report } = await migrate('--queue', 'bulk');
    assert.equal(report.jobs.moved, 450);
    assert.deepEqual([(await here.runNext('bulk')).args, (await here.runNext('bulk')).args], [[{ n: 0 }], [{ n: 1 }]]);
  });

  it('keeps each integer, and names what would never run', async () => {
    await boss.createQueue('odd');
    const [exact, never] = [await boss.send('odd', {}), await boss.send('odd', {})];
    await db.query(`UPDATE pgboss.job SET data = '{"n":9007199254740993}', keep_until = 'infinity' WHERE id = $1`, [
      exact,
    ]);
    await db.query("UPDATE pgboss.job SET start_after = 'infinity' WHERE id = $1", [never]);
    const { report } = await migrate('--queue', 'odd');
    assert.deepEqual([report.jobs.moved, report.refused.map(({ id }) => id)], [1, [never]]);
    const text = await here.textOf(`/jobs/${madeOf(await here.jobs(), exact).id}`);
    assert.match(text, /"args":\[\{"n":9007199254740993\}\]/);
    assert.doesNotMatch(text, /expires_at/);
  });

  it('says what is missing: the package, the schema', async () => {
    const bare = await here.migrate(['pg-boss', source.connectionString], { cwd: '/' });
    assert.match(bare.stderr, /npm install pg/);
    const other = await migrate('--schema', 'nowhere');
    assert.match(other.stderr, /another --schema/);
  });
});
