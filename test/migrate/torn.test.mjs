// One thing of another system that cannot be a job here: it is named with its old id, and all others move. A dry run says the same.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load } from '../cli/cli.mjs';
import { fakeRedis, OTHER_TYPE } from './fake-redis.mjs';

const { migrate, InvalidJobError, NotFoundError, UnavailableError } = await load(
  'migrate/migrate.ts',
  '../producer/errors.ts',
);

/** Node 20 cannot keep integers beyond 2^53, and names their jobs. */
const keepsIntegers = { skip: JSON.rawJSON ? false : 'this Node has no JSON.rawJSON' };

const info = (code) => ({ status: 400, code, retryable: false });

/** A queue that takes what it is sent. @param refused is the job of this id refused together with its whole request? */
function queue(refused = () => false) {
  const sent = [];
  return {
    sent,
    async enqueueEach(jobs) {
      if (jobs.some(({ options }) => refused(options.meta.migrated_from.id))) {
        throw new InvalidJobError('The body contains something.', info('invalid_payload'));
      }
      sent.push(...jobs.map((job) => `job ${job.options.meta.migrated_from.id}`));
      return { items: jobs.map((_, index) => ({ index, status: 'created' })) };
    },
    cron: {
      async get() {
        throw new NotFoundError('none', info('not_found'));
      },
      async put({ name }) {
        sent.push(`schedule ${name}`);
      },
    },
  };
}

async function moved(system, values, tocsin) {
  const redis = await fakeRedis(values);
  try {
    const options = { within: undefined, crontab: undefined, queues: undefined, renamed: new Map() };
    return await migrate({ ...options, system, url: redis.url, tocsin, now: () => 0, progress: () => undefined });
  } finally {
    redis.close();
  }
}

/** What became of the things of a system: with a queue, and in a dry run. */
async function both(system, values, tocsin = queue()) {
  const outcome = ({ jobs, schedules, refused }) => ({
    jobs: [jobs.moved, jobs.refused],
    schedules: [schedules.moved, schedules.refused],
    refused: refused.map(({ kind, id, message }) => `${kind} ${id}: ${message}`),
  });
  const dry = outcome(await moved(system, values, undefined));
  const real = outcome(await moved(system, values, tocsin));
  assert.deepEqual(dry, real, 'a dry run judges as the real one');
  return real;
}

const sidekiq = (jid, other = {}) =>
  JSON.stringify({ jid, class: 'GoodJob', args: [1], queue: 'default', created_at: 1.7e9, ...other });
const bullmq = (data, other = {}) => ({ name: 'send', data, opts: '{}', timestamp: '5', ...other });
const deep = (levels) => '['.repeat(levels) + ']'.repeat(levels);

describe('one thing that cannot be a job', () => {
  it('is named, and the others of Sidekiq move', async () => {
    const elements = [
      ...[
        'null',
        'true',
        '"x"',
        '[]',
        '{}',
        '{',
        sidekiq('no-args', { args: null }),
        sidekiq('no-class', { class: 7 }),
      ],
      ...[sidekiq('torn').replace('[1]', '["\\ud83d"]'), sidekiq('deep').replace('[1]', deep(101))],
      ...[
        sidekiq('huge').replace('[1]', '[1e400]'),
        sidekiq('error', { retry_count: 0, error_message: `${'x'.repeat(999)}😀` }),
      ],
      Buffer.from(sidekiq('bytes', { args: ['\u00e9'] }), 'latin1'),
      sidekiq('good'),
    ];
    const tocsin = queue();
    const { jobs, refused } = await both('sidekiq', { queues: ['default'], 'queue:default': elements }, tocsin);
    assert.deepEqual(jobs, [2, 12]);
    assert.deepEqual(tocsin.sent.toSorted(), ['job error', 'job good']);
    const text = refused.join('\n');
    for (const id of ['no-args', 'no-class', 'torn', 'deep', 'huge', 'bytes'])
      assert.match(text, new RegExp(`^job ${id}: `, 'm'));
    assert.match(text, /^job torn: it contains a lone surrogate/m);
    assert.match(text, /^job deep: it nests more than 100 levels deep/m);
    assert.match(text, /^job \?: it has no jid, class or args: null$/m);
  });

  it('is one with an integer that this Node cannot keep', { skip: JSON.rawJSON && 'it keeps them' }, async () => {
    const elements = [sidekiq('long').replace('[1]', '[9007199254740993]'), sidekiq('good')];
    const { jobs, refused } = await both('sidekiq', { queues: ['default'], 'queue:default': elements });
    assert.deepEqual(jobs, [1, 1]);
    assert.match(refused[0], /^job long: an integer beyond 2\^53.*use 22 or newer$/);
  });

  it('is named, and the others of sets and schedules move', async () => {
    const set = new Map([
      ['null', 1],
      [sidekiq('later'), 5],
      [sidekiq('never'), 'inf'],
    ]);
    const values = {
      ...{ queues: [], schedule: set, cron_jobs: ['cron_job:a', 'cron_job:b', 'cron_job:c'] },
      'cron_job:a': { name: 'a', klass: 'A', cron: '* * * * *', message: 'null' },
      'cron_job:b': { name: 'b', klass: 'B', cron: '* * * * *', args: '[9007199254740993]' },
      'cron_job:c': { name: 'c', klass: 'C', cron: '* * * * *', args: '["x"]' },
    };
    const { jobs, schedules, refused } = await both('sidekiq', values);
    assert.deepEqual(
      [jobs, schedules],
      [
        [1, 2],
        [1, 2],
      ],
    );
    assert.match(refused.join('\n'), /^job never: .*not a valid date/m);
    assert.match(refused.join('\n'), /^schedule a: its message is not a JSON object$/m);
    assert.match(refused.join('\n'), /^schedule b: an? .*integers? beyond 2\^53/m);
  });

  it('is named, and the others of BullMQ move, with their integers as they are', keepsIntegers, async () => {
    const values = {
      'bull:mail:meta': {},
      'bull:mail:wait': ['4', '3', '2', '1'],
      'bull:mail:1': bullmq('{"n":9007199254740993}'),
      'bull:mail:2': bullmq('"\\udc00"'),
      'bull:mail:3': bullmq('{}', { opts: 'null' }),
      'bull:mail:4': bullmq('{"__proto__":1,"nul":"\\u0000"}'),
      'bull:mail:delayed': new Map([['5', 'inf']]),
      'bull:mail:5': bullmq('{}'),
      'bull:mail:repeat': new Map([['r', 1]]),
      'bull:mail:repeat:r': { name: 'r', pattern: '* * * * *', data: '{"n":9007199254740993}' },
    };
    const texts = [];
    const tocsin = queue();
    const { enqueueEach } = tocsin;
    tocsin.enqueueEach = (jobs) => {
      texts.push(...jobs.map(({ args }) => JSON.stringify(args)));
      return enqueueEach(jobs);
    };
    const { jobs, schedules } = await both('bullmq', values, tocsin);
    assert.deepEqual(
      [jobs, schedules],
      [
        [2, 3],
        [0, 1],
      ],
    );
    assert.deepEqual(texts, ['[{"n":9007199254740993}]', '[{"__proto__":1,"nul":"\\u0000"}]']);
  });

  it('may be a key of another program', async () => {
    const ours = {
      queues: ['default'],
      'queue:default': [sidekiq('good')],
      cron_jobs_of_mine: OTHER_TYPE,
      processes: OTHER_TYPE,
    };
    assert.deepEqual((await both('sidekiq', ours)).jobs, [1, 0]);
    const theirs = {
      'bull:mail:meta': {},
      'bull:mail:wait': ['2', '1'],
      'bull:mail:1': OTHER_TYPE,
      'bull:mail:2': bullmq('{}'),
    };
    assert.deepEqual((await both('bullmq', theirs)).jobs, [1, 0]);
  });

  it('is found where the queue refuses a whole request for it', async () => {
    const elements = Array.from({ length: 50 }, (_, n) => sidekiq(`j${n}`));
    const tocsin = queue((id) => id === 'j7' || id === 'j31');
    const { jobs, refused } = await moved('sidekiq', { queues: ['default'], 'queue:default': elements }, tocsin);
    assert.deepEqual([jobs.moved, jobs.refused], [48, 2]);
    assert.deepEqual(refused.map(({ id }) => id).toSorted(), ['j31', 'j7']);
  });
});

describe('schedules', () => {
  const values = {
    ...{ queues: ['a'], 'queue:a': [sidekiq('1')], cron_jobs: ['cron_job:c'] },
    'cron_job:c': { name: 'c', klass: 'C', cron: '* * * * *' },
  };

  it('are made behind all jobs', async () => {
    const tocsin = queue();
    await moved('sidekiq', values, tocsin);
    assert.equal(tocsin.sent[0], 'job 1');
    assert.match(tocsin.sent[1], /^schedule /);
  });

  it('are not made where the jobs could not be sent', async () => {
    const tocsin = queue();
    tocsin.enqueueEach = async () => {
      throw new UnavailableError('away', { ...info('forbidden'), status: 403 });
    };
    await assert.rejects(moved('sidekiq', values, tocsin), /away/);
    assert.deepEqual(tocsin.sent, []);
  });
});
