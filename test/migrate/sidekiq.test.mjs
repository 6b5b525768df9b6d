// `tocsin migrate sidekiq`: jobs that Sidekiq itself has put into Redis.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { counted, lacksRedis, leftOut, madeOf, redis, target, typed } from './kit.mjs';

const HOUR = 3_600_000;
const FILL = fileURLToPath(new URL('sidekiq/fill.rb', import.meta.url));
const hasSidekiq = () =>
  spawnSync('ruby', ['-e', 'require "sidekiq"; exit Sidekiq::VERSION.start_with?("6.")']).status === 0;
const lacking =
  lacksRedis() ??
  (hasSidekiq() ? undefined : 'there is no Ruby with Sidekiq 6 (Debian 12: apt-get install ruby-sidekiq).');

describe('moving from Sidekiq', { skip: lacking && leftOut('Moving from Sidekiq', lacking), timeout: 900_000 }, () => {
  let source;
  let here;
  let ids;

  before(async () => {
    source = await redis();
    here = await target();
    const env = { ...process.env, REDIS_URL: source.url };
    const filled = spawnSync('ruby', [FILL], { env, encoding: 'utf8' });
    assert.equal(filled.status, 0, filled.stderr);
    ids = JSON.parse(filled.stdout);
  });

  after(async () => {
    await here?.close();
    await source?.close();
  });

  const migrate = (...args) => here.migrate(['sidekiq', source.url, ...args]);
  const changes = async () =>
    /rdb_changes_since_last_save:(\d+)/.exec(await typed(source.port, ['INFO persistence']))[1];

  it('checks all of it in a dry run, which changes nothing on either side', async () => {
    const before = await changes();
    const { code, report, stderr } = await migrate('--dry-run');
    assert.equal(code, 1, stderr);
    assert.deepEqual(report.jobs, { found: 8, moved: 7, there: 0, superseded: 0, refused: 1 });
    assert.deepEqual([await here.jobs(), await here.crons()], [[], []]);
    assert.equal(await changes(), before);
  });

  it('moves jobs with what they are, and says what has no equal', async () => {
    const before = await changes();
    const began = Date.now();
    const { report } = await migrate('--as', 'Mail::SendJob=:email.send');
    assert.equal(await changes(), before, 'nothing was written there');
    assert.deepEqual(report.jobs, { found: 8, moved: 7, there: 0, superseded: 0, refused: 1 });
    assert.deepEqual(
      report.refused.map(({ kind, id }) => [kind, id]),
      [
        ['job', ids.large],
        ['schedule', 'spoken'],
      ],
    );
    assert.deepEqual(counted(report.remarks), { 'Active Job': 1 });
    assert.deepEqual(counted(report.left), { 'dead jobs': 1 });

    const jobs = await here.jobs();
    const made = (name) => madeOf(jobs, ids[name]);
    const plain = made('plain');
    assert.deepEqual(
      [plain.type, plain.queue, plain.args, plain.state, plain.max_attempts, plain.retry],
      [
        'hard.job',
        'default',
        ['ada', { someKey: [1, null] }],
        'available',
        26,
        { preset: 'sidekiq', max_attempts: 26 },
      ],
    );
    const late = made('late');
    assert.deepEqual(
      [late.type, late.queue, late.args, late.state, late.max_attempts, late.tags],
      ['email.send', 'high-prio', [17], 'scheduled', 6, ['mail']],
    );
    assert.ok(Math.abs(Date.parse(late.scheduled_at) - began - HOUR) < 120_000);
    assert.deepEqual([made('once').max_attempts, made('once').retry.on_exhaustion], [1, 'discard']);
    assert.deepEqual(
      [made('active').type, made('active').args],
      ['welcome.job', [{ _aj_globalid: 'gid://shop/User/1' }]],
    );
    const retried = made('retried');
    assert.deepEqual([retried.state, retried.max_attempts], ['scheduled', 23]);
    assert.deepEqual(retried.retry.table.slice(0, 2), [(3 ** 4 + 15) * 1000, (4 ** 4 + 15) * 1000]);
    assert.deepEqual(
      [retried.meta.migrated_from.attempts, retried.meta.migrated_from.error],
      [3, 'ArgumentError: no luck'],
    );
  });

  it('makes schedules of the entries of sidekiq-cron', async () => {
    const [nightly, ...others] = await here.crons();
    assert.equal(others.length, 0);
    assert.match(nightly.name, /^sidekiq\.high-prio\.nightly-report-[0-9a-f]{8}$/);
    assert.deepEqual(
      [nightly.expression, nightly.timezone, nightly.type, nightly.args, nightly.queue],
      ['30 2 * * *', 'Europe/Paris', 'hard.job', ['x'], 'high-prio'],
    );
    assert.equal(nightly.job_template.options.retry.max_attempts, 4);
  });

  it('moves nothing twice, also what has been run here, in the order of enqueue', async () => {
    assert.deepEqual((await here.runNext('default')).args, ['ada', { someKey: [1, null] }]);
    assert.deepEqual((await here.runNext('default')).args, ['bob']);
    const { report } = await migrate('--as', 'Mail::SendJob=:email.send');
    assert.deepEqual(report.jobs, { found: 8, moved: 0, there: 7, superseded: 0, refused: 1 });
    assert.deepEqual([report.schedules.moved, report.schedules.there], [0, 1]);
  });

  it('takes only the queues that are named, also of what waits for a time', async () => {
    const { code, report } = await migrate('--queue', 'High_Prio', '--dry-run');
    assert.equal(code, 0);
    assert.deepEqual([report.jobs.found, report.schedules.found], [2, 1]);
  });

  it('says what it cannot reach', async () => {
    const { code, stderr } = await here.migrate(['sidekiq', 'redis://user:secret@127.0.0.1:1']);
    assert.equal(code, 1);
    assert.match(stderr, /Redis at redis:\/\/…@127\.0\.0\.1:1: .*ECONNREFUSED/);
    assert.doesNotMatch(stderr, /secret/);
    const refused = await here.migrate(['sidekiq', source.url.replace('//', '//:wrong@')]);
    assert.match(refused.stderr, /Redis at redis:\/\/…@127.0.0.1:\d+: (ERR AUTH|WRONGPASS)/);
  });
});
