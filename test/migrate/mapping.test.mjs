// What `tocsin migrate` makes of names and options: the rules alone, without any of the systems.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load } from '../cli/cli.mjs';

const names = await load('migrate/names.ts');
const bullmq = await load('migrate/bullmq-job.ts');
const graphile = await load('migrate/graphile-worker-job.ts');
const pgBoss = await load('migrate/pg-boss-job.ts');
const sidekiq = await load('migrate/sidekiq-job.ts');

const V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('names of other queues', () => {
  it('become types whose words are joined by dots, and stay where they can', () => {
    const cases = {
      'email.send': 'email.send',
      send_email: 'send_email',
      SendEmail: 'send.email',
      sendHTMLEmail: 'send.html.email',
      'Mail::SendJob': 'mail.send.job',
      'billing/invoice run': 'billing.invoice.run',
      'step 2': 'step-2',
      Envoyé: 'envoye',
    };
    for (const [theirs, ours] of Object.entries(cases)) assert.equal(names.typeOf(theirs), ours);
  });

  it('become queues whose words are joined by hyphens', () => {
    const cases = { mail: 'mail', High_Prio: 'high-prio', 'video.encode': 'video.encode', '{mail}': 'mail' };
    for (const [theirs, ours] of Object.entries(cases)) assert.equal(names.queueOf(theirs), ours);
  });

  it('become what --as says, of the name before the queue', () => {
    const renamed = names.readAs(['a=b=mail:email.send', 'jobs=work', 'Job=:job.run']);
    assert.deepEqual(names.placeOf({ queue: 'jobs', name: 'a=b' }, renamed), { queue: 'mail', type: 'email.send' });
    assert.deepEqual(names.placeOf({ queue: 'jobs', name: 'Job' }, renamed), { queue: 'work', type: 'job.run' });
    for (const wrong of ['mail', '=mail', 'x=', 'x=:', 'x=Mail', 'x=mail:Send']) {
      assert.throws(() => names.readAs([wrong]), /does not say what a name becomes/, wrong);
    }
  });

  it('become names of schedules that differ where theirs do', () => {
    const of = (queue, id) => names.scheduleNameOf('bullmq', { queue, id });
    assert.equal(of('mail', 'nightly'), 'bullmq.mail.nightly');
    assert.notEqual(of('mail', 'Nightly'), of('mail', 'nightly'));
    assert.notEqual(of('mail', '日'), of('mail', '本'));
    for (const id of ['日', 'a:b * *', 'x'.repeat(400)]) assert.match(of('mail', id), /^[a-z0-9][a-z0-9.-]{0,254}$/);
  });
});

describe('ids of jobs that move', () => {
  const job = { id: '17', queue: 'mail', createdAt: 1_700_000_000_123 };
  const of = (other = {}, system = 'bullmq', within = 'bull') => names.idOf(system, within, { ...job, ...other });

  it('are UUIDv7 of the moment at which the job was made, and the same each time', () => {
    assert.match(of(), V7);
    assert.equal(of(), of({ name: 'whatever' }));
    assert.equal(Number.parseInt(of().replaceAll('-', '').slice(0, 12), 16), job.createdAt);
    for (const createdAt of [-1, 0, 1.5, 2 ** 60]) assert.match(of({ createdAt }), V7);
  });

  it('do not differ with the queue of a job whose id is its own: it may change its queue', () => {
    assert.equal(of({ hasOwnId: true }), of({ hasOwnId: true, queue: 'low' }));
    assert.notEqual(of({ hasOwnId: true }), of({ hasOwnId: true, id: '18' }));
  });

  it('differ with whatever tells two jobs apart', () => {
    const all = [of(), of({ id: '18' }), of({ queue: 'x' }), of({}, 'sidekiq'), of({}, 'bullmq', 'other')];
    assert.equal(new Set(all).size, all.length);
    const many = new Set(Array.from({ length: 20_000 }, (_, id) => of({ id: String(id) })));
    assert.equal(many.size, 20_000);
  });
});

describe('options of BullMQ', () => {
  const retryOf = (options, made = 0) => bullmq.retryOf(options, made).options.retry;

  it('keep the runs that are left, and the delays from there on', () => {
    assert.deepEqual(retryOf({}), { maxAttempts: 1 });
    assert.deepEqual(retryOf({ attempts: 3 }), { maxAttempts: 3, backoffStrategy: 'none', jitter: false });
    const exponential = { attempts: 5, backoff: { type: 'exponential', delay: 1000 } };
    assert.equal(retryOf(exponential).initialInterval, 1000);
    assert.deepEqual([retryOf(exponential, 3).maxAttempts, retryOf(exponential, 3).initialInterval], [2, 8000]);
    assert.equal(retryOf(exponential, 7).maxAttempts, 1, 'a job that waits has a run left');
    assert.deepEqual([retryOf({ attempts: 2, backoff: 500 }).backoffStrategy], ['constant']);
    assert.deepEqual(bullmq.retryOf({ attempts: 2, backoff: { type: 'own' } }, 0).remarks, ['custom backoff']);
  });

  it('keep a deduplication, but not one for a time: two with its key may wait, and neither must be dropped', () => {
    const of = (de) => {
      const { options, remarks } = bullmq.jobOf('mail', '1', { name: 'x', opts: JSON.stringify({ de }) });
      return [options.unique?.key, ...remarks];
    };
    assert.deepEqual(of({ id: 'a' }), ['a']);
    assert.deepEqual(of({ id: 'a', ttl: 5000 }), [undefined, 'unique for a time']);
  });

  it('keep the order of priorities: lower goes first there, none before all', () => {
    const of = (priority) => bullmq.priorityOf(priority).options.priority ?? 0;
    assert.deepEqual([0, 1, 2, 100, 2_000_000].map(of), [0, -1, -2, -100, -100]);
  });

  it('read old schedulers from their keys', () => {
    assert.deepEqual(bullmq.legacyHash('send::::0 9 * * *'), { name: 'send', pattern: '0 9 * * *' });
    assert.deepEqual(bullmq.legacyHash('send:a:b:1700000000000:Europe/Paris:0 9 * * *'), {
      ...{ name: 'send', endDate: '1700000000000', tz: 'Europe/Paris', pattern: '0 9 * * *' },
    });
    assert.deepEqual(bullmq.legacyHash('send::::5000'), { name: 'send', every: '5000' });
    assert.equal(bullmq.legacyHash('nightly'), undefined);
  });

  it('keep the moments of an interval, however late it is read', () => {
    const next = 1_000_000;
    const schedule = bullmq.scheduleOf(
      'mail',
      { id: 'pulse', hash: { every: '90000', name: 'beat' }, next },
      next + 200_000,
    );
    assert.equal(schedule.startAt.getTime(), next + 270_000);
    assert.equal(schedule.expression, '@every PT90S');
  });

  it('keep the fires that are left, with that of the job which does not move', () => {
    const of = (hash, pending) =>
      bullmq.scheduleOf('mail', { id: 'a', hash: { pattern: '* * * * *', ...hash }, pending }, 1).limit;
    assert.equal(of({ limit: '10', ic: '1' }, { opts: '{}' }), 10);
    assert.equal(of({ limit: '10', ic: '1' }), 9);
    assert.equal(of({}, { opts: '{"repeat":{"limit":5,"count":2}}' }), 4, 'as versions before 5.16 have it');
    assert.equal(of({}), undefined);
  });

  it('have what is not set as null, where a producer in another language wrote them', () => {
    const of = (opts) => bullmq.jobOf('mail', '1', { name: 'x', data: '{"a":null}', opts: JSON.stringify(opts) });
    const members = ['attempts', 'backoff', 'de', 'deduplication', 'priority', 'removeOnComplete', 'removeOnFail'];
    const nulls = Object.fromEntries(members.map((name) => [name, null]));
    assert.deepEqual(of(nulls), of({}));
    assert.deepEqual(of({}).args, [{ a: null }]);
    const partly = { attempts: 3, backoff: { type: 'fixed', delay: null, jitter: null }, removeOnFail: { age: null } };
    assert.deepEqual(of(partly), of({ attempts: 3, backoff: { type: 'fixed' } }));
    const pending = { opts: '{"repeat":null}' };
    assert.equal(bullmq.scheduleOf('mail', { id: 'a', hash: { pattern: '* * * * *' }, pending }, 1).kind, 'schedule');
  });

  it('are reported where they cannot be read', () => {
    const { kind, message } = bullmq.jobOf('mail', '1', { name: 'x', data: '{' });
    assert.equal(kind, 'broken');
    assert.match(message, /JSON/);
  });
});

describe('rows of pg-boss', () => {
  it('keep their delays: from half of it to all of it, doubled, with a cap', () => {
    const row = { retry_limit: 5, retry_delay: 10, retry_backoff: true };
    const { initialInterval, maxInterval, maxAttempts } = pgBoss.retryOf(row, 0);
    assert.deepEqual([initialInterval, maxInterval, maxAttempts], [20_000, 10_000 * 2 ** 16, 6]);
    assert.equal(pgBoss.retryOf(row, 3).initialInterval, 160_000);
    assert.equal(pgBoss.retryOf({ ...row, retry_delay_max: 60 }, 3).initialInterval, 60_000);
    assert.equal(pgBoss.retryOf({ retry_limit: 1 }, 0).backoffStrategy, 'none');
    assert.deepEqual(pgBoss.retryOf({ retry_limit: 1, retry_delay: 5 }, 1), { maxAttempts: 1 });
  });

  it('keep what the policy of their queue asks for', () => {
    const of = (policy) => pgBoss.keyOf({ name: 'mail', policy, singleton_key: 'k' }).options;
    assert.deepEqual(of('standard'), {});
    assert.deepEqual(of('short').unique.states, ['scheduled', 'available', 'retryable']);
    const retried = pgBoss.keyOf({ name: 'mail', policy: 'short', singleton_key: 'k', state: 'retry' });
    assert.deepEqual(retried.options, {}, 'a new one with its key may wait beside it');
    assert.deepEqual(of('singleton'), { rateLimit: { key: 'k', concurrency: 1 } });
    assert.deepEqual(Object.keys(of('stately')), ['unique', 'rateLimit']);
    assert.deepEqual(of('exclusive'), { unique: { key: 'k', onConflict: 'ignore' } });
    assert.deepEqual(of('key_strict_fifo'), { group: 'k' });
    assert.deepEqual(pgBoss.keyOf({ name: 'mail', singleton_on: '2026-01-01T00:00:00' }).remarks, [
      'unique for a time',
    ]);
  });

  it('are alone with their key in versions before 10, which have no policies', () => {
    const { unique } = pgBoss.keyOf({ name: 'mail', singletonkey: 'k' }).options;
    assert.deepEqual(unique, { key: 'k', onConflict: 'ignore' });
  });

  it('are read in the columns of versions before 10, too', () => {
    const row = {
      ...{ id: 'a', name: 'mail', priority: 2, data: { n: 1 }, state: 'retry', retrylimit: 3, retrycount: 1 },
      ...{ retrydelay: 30, retrybackoff: false, startafter: '2026-01-02T00:00:00+00:00', expirein: '00:02:00' },
      ...{ createdon: '2026-01-01T00:00:00+00:00', keepuntil: '2026-02-01T00:00:00+00:00', output: { message: 'no' } },
    };
    const { options, createdAt, ran } = pgBoss.jobOf(row, 0);
    assert.deepEqual([options.retry.maxAttempts, options.retry.initialInterval], [2, 30_000]);
    assert.deepEqual([options.timeoutMs, options.delayUntil], [120_000, new Date('2026-01-02')]);
    assert.deepEqual([createdAt, ran], [Date.parse('2026-01-01'), { attempts: 2, error: 'no' }]);
  });
});

describe('jobs of graphile-worker', () => {
  it('keep their delays: e to the power of the run, ten at most', () => {
    const { initialInterval, maxInterval, maxAttempts } = graphile.retryOf(25, 2);
    assert.deepEqual([initialInterval, maxInterval, maxAttempts], [20_086, 22_026_466, 23]);
    assert.equal(graphile.retryOf(25, 20).initialInterval, 22_026_466);
    assert.deepEqual(graphile.retryOf(3, 2), { maxAttempts: 1 });
  });

  it('are read without the columns that older versions do not have', () => {
    const row = { id: '1', task: 'a', named_queue: null, payload: {}, attempts: 0, max_attempts: 2, priority: 0 };
    const { options, remarks } = graphile.jobOf({ ...row, run_at: '2026-01-01', created_at: '2026-01-01' }, Date.now());
    assert.deepEqual([Object.keys(options), remarks], [['retry'], []]);
  });

  it('are read from a crontab, line by line', () => {
    const of = (text) => [...graphile.crontabOf(text, JSON.parse)];
    const [entry] = of('# why\n\n0 4 * * * say/hello ?id=a&jobKey=k {"n":1}');
    assert.deepEqual([entry.expression, entry.name, entry.id, entry.args], ['0 4 * * *', 'say/hello', 'a', [{ n: 1 }]]);
    assert.equal(entry.options.unique.key, 'k');
    const broken = of('0 4 * * * a {n\n0 4 * * * a {n}\n@daily a');
    assert.deepEqual(
      broken.map(({ kind }) => kind),
      ['broken', 'broken', 'broken'],
    );
    assert.match(broken[1].message, /^line 2: /);
  });
});

describe('jobs of Sidekiq', () => {
  const jobOf = (payload, ...rest) =>
    sidekiq.jobOf(JSON.stringify({ class: 'HardJob', args: [], jid: 'a', ...payload }), ...rest);

  it('keep the runs that are left, with the delays that Sidekiq would wait', () => {
    const fresh = { preset: 'sidekiq', maxAttempts: 26 };
    assert.deepEqual(sidekiq.retryOf({}, 0), fresh);
    assert.deepEqual(sidekiq.retryOf({ retry: 5, dead: false }, 0), {
      ...{ preset: 'sidekiq', maxAttempts: 6, onExhaustion: 'discard' },
    });
    assert.deepEqual(sidekiq.retryOf({ retry: false }, 0).maxAttempts, 1);
    const late = sidekiq.retryOf({}, 23);
    assert.deepEqual([late.maxAttempts, late.table], [3, [279_856_000, 331_791_000]]);
    assert.deepEqual(sidekiq.retryOf({ retry: 1000 }, 500).table.length, 1);
  });

  it('have what is not set as null, where another program wrote them', () => {
    const members = ['retry', 'dead', 'retry_count', 'created_at', 'expiry', 'tags', 'unique_for', 'bid', 'encrypt'];
    assert.deepEqual(jobOf(Object.fromEntries(members.map((name) => [name, null]))), jobOf({}));
    assert.deepEqual(jobOf({ args: [null] }).args, [null]);
    const message = JSON.stringify({ class: 'A', args: [null], retry: null });
    const { options, args } = sidekiq.scheduleOf('k', { klass: 'A', cron: '* * * * *', message });
    assert.deepEqual([options.retry.maxAttempts, args], [26, [null]]);
  });

  it('have their times in s, and in ms from version 8 on', () => {
    const at = Date.parse('2026-01-02T03:04:05.678Z');
    assert.equal(jobOf({ created_at: at }).createdAt, at);
    assert.equal(jobOf({ created_at: at / 1000 }).createdAt, at);
    assert.deepEqual(jobOf({}, undefined, at / 1000).options.delayUntil, new Date(at));
  });

  it('are unique where one of a key can wait, and not where two may: neither must be dropped', () => {
    const of = (payload) => {
      const { options, remarks } = jobOf(payload);
      return [options.unique?.key ?? options.rateLimit?.key, ...remarks];
    };
    assert.deepEqual(of({ lock: 'until_executed', lock_digest: 'd' }), ['d']);
    assert.deepEqual(of({ lock: 'while_executing', lock_digest: 'd' }), ['d']);
    for (const timed of [{ unique_for: 60 }, { lock: 'until_expired', lock_digest: 'd' }]) {
      assert.deepEqual(of(timed), [undefined, 'unique for a time']);
    }
  });

  it('are reported where they cannot be read', () => {
    for (const [json, why] of [
      ['{', /JSON/],
      ['{"class":"A","args":[]}', /no jid/],
    ]) {
      const { kind, message } = sidekiq.jobOf(json, 'mail');
      assert.equal(kind, 'broken');
      assert.match(message, why);
    }
  });

  it('have schedules whose expressions may end in a time zone', () => {
    const of = (cron) => sidekiq.scheduleOf('k', { klass: 'A', cron, args: '[1]' });
    assert.deepEqual(
      [of('0 9 * * 1 Europe/Paris').expression, of('0 9 * * 1 Europe/Paris').timezone],
      ['0 9 * * 1', 'Europe/Paris'],
    );
    assert.equal(of('0 9 * * mon').timezone, undefined);
    assert.equal(of('0 0 9 * * mon').expression, '0 0 9 * * mon');
    assert.equal(of('0 9 * * * UTC').timezone, 'UTC');
    assert.deepEqual(of('0 9 * * 1').args, [1]);
    assert.equal(sidekiq.scheduleOf('k', { klass: 'A', cron: '0 9 * * *', status: 'disabled' }).enabled, false);
  });
});
