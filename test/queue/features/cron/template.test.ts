/** What a fire enqueues: a job like any other, with every option of the template applied to it. */

import { describe, expect, it } from 'vitest';
import { clock, iso, MINUTE, SECOND, T0, until } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';
import { CRON, create, entry, eventsOf, read, refused, ticksOf } from './entries';

server.emptyBeforeEach();
clock.startAtT0();

const minute = (n: number) => T0 + n * MINUTE;

/** The job of the first fire of an entry with this template. */
async function fired(template: Json, change: Json = {}): Promise<Json> {
  const { options, ...rest } = template;
  const job_template = {
    type: 'test.cron',
    args: [],
    options: { queue: 'a', ...(options as Json | undefined) },
    ...rest,
  };
  await server.ok(201, 'POST', CRON, { name: 'a', expression: '* * * * *', job_template, ...change });
  await new TestQueue('a').jumpTo(minute(1));
  return (await server.jobs('a'))[0] as Json;
}

describe('a fired job', () => {
  it('carries type, arguments, tags, meta and unknown members of the template', async () => {
    const job = await fired({
      type: 'report.build',
      args: [{ of: 'sales' }, 7],
      ext_team: 'data',
      schema: 'urn:x',
      options: { tags: ['nightly'], meta: { region: 'eu', 'trace.id': 'x' } },
    });
    expect(job).toMatchObject({
      type: 'report.build',
      args: [{ of: 'sales' }, 7],
      tags: ['nightly'],
      ext_team: 'data',
      schema: 'urn:x',
      meta: { region: 'eu', 'trace.id': 'x', cron_name: 'a' },
    });
  });

  it('runs in the order of its priority', async () => {
    await server.ok(201, 'POST', '/ojs/v1/jobs', {
      type: 'test.other',
      args: [],
      options: { queue: 'a', priority: 3 },
    });
    await fired({ options: { priority: 7 } });
    expect(await server.takeOne('a')).toMatchObject({ type: 'test.cron', priority: 7 });
  });

  it('is retried as its policy says', async () => {
    await fired({
      options: { retry: { max_attempts: 2, initial_interval: 'PT40S', jitter: false, on_exhaustion: 'dead_letter' } },
    });
    const nack = async () => server.nack((await server.takeOne('a')).id, { error: 'x' });
    expect(await nack()).toMatchObject({ state: 'retryable', max_attempts: 2, retry_delay_ms: 40_000 });
    clock.set(minute(1) + 40 * SECOND);
    expect(await nack()).toMatchObject({ state: 'discarded' });
    expect(await server.ok(200, 'GET', '/ojs/v1/dead-letter?queue=a')).toMatchObject({ total: 1 });
  });

  it('is retried as often as options.max_attempts says', async () => {
    expect(await fired({ options: { max_attempts: 9 } })).toMatchObject({ max_attempts: 9 });
  });

  it('is stopped at its timeout, in ms or in the seconds of cron entries', async () => {
    for (const [index, options] of [{ timeout_ms: 5000 }, { timeout: 5 }, { timeout: 'PT5S' }].entries()) {
      const name = `t-${index}`;
      const cron = await create(name, { options });
      expect(cron.options).toEqual({ queue: name, timeout_ms: 5000 });
      clock.set(minute(index + 1));
      const job = await server.takeOne(name);
      expect(job).toMatchObject({ timeout_ms: 5000 });
      clock.set(minute(index + 1) + 5 * SECOND);
      expect((await server.jobs(name))[0]).toMatchObject({ state: 'retryable', error: { code: 'timeout' } });
    }
  });

  it('is leased for as long as its visibility timeout says', async () => {
    await fired({ options: { visibility_timeout_ms: 3000 } });
    await server.takeOne('a');
    clock.set(minute(1) + 3 * SECOND);
    expect((await server.jobs('a'))[0]).toMatchObject({ state: 'available', errors: [{ code: 'visibility_timeout' }] });
  });

  it('is delayed and expires relative to its fire', async () => {
    expect(await fired({ options: { delay_until: '+PT10S', expires_at: '+PT30S' } })).toMatchObject({
      state: 'scheduled',
      scheduled_at: iso(minute(1) + 10 * SECOND),
      expires_at: iso(minute(1) + 30 * SECOND),
    });
  });

  it('is discarded once its time is past, and the schedule continues', async () => {
    const options = { queue: 'a', delay_until: '+PT90S', expires_at: iso(minute(2)) };
    const job = await fired({ options });
    expect(job).toMatchObject({ state: 'scheduled', scheduled_at: iso(minute(2) + 30 * SECOND) });
    await new TestQueue('a').jumpTo(minute(2));
    expect((await server.jobs('a')).map(({ state }) => state)).toEqual(['discarded', 'discarded']);
    // The template is not read again by a change of something else.
    await server.ok(200, 'PATCH', `${CRON}/a`, { enabled: false });
    const body = { job_template: { type: 'test.cron', args: [], options: { ...options, tags: ['a'] } } };
    expect(await server.refusal('PATCH', `${CRON}/a`, body)).toEqual({
      status: 422,
      code: 'invalid_request',
      field: 'job_template.options.expires_at',
    });
  });

  it('waits to be activated when it starts as pending', async () => {
    expect(await fired({ options: { pending: true } })).toMatchObject({ state: 'pending' });
  });
});

describe('a unique policy', () => {
  const perQueue = { keys: ['type', 'queue'] };

  it('of the queue keeps a second job away, and says so', async () => {
    await fired({ options: { unique: perQueue } }, { overlap_policy: 'allow' });
    await new TestQueue('a').jumpTo(minute(2));
    expect(await ticksOf('a')).toEqual([minute(1)]);
    const [job] = await server.jobs('a');
    expect(await eventsOf('a', 'cron.skipped')).toEqual([
      expect.objectContaining({ reason: 'unique', active_job_id: job?.id }),
    ]);
    expect(await read('a')).toMatchObject({ run_count: 1, skipped_count: 1, next_run_at: iso(minute(3)) });
  });

  it.each(['ignore', 'reject'])(
    'with %s is judged against jobs that were not made by the entry',
    async (on_conflict) => {
      const unique = { ...perQueue, on_conflict };
      await server.ok(201, 'POST', '/ojs/v1/jobs', { type: 'test.cron', args: [], options: { queue: 'a', unique } });
      await fired({ options: { unique } });
      expect(await server.jobs('a')).toHaveLength(1);
      expect(await read('a')).toMatchObject({ run_count: 0, skipped_count: 1 });
    },
  );

  it('with replace cancels the job before', async () => {
    await fired({ options: { unique: { ...perQueue, on_conflict: 'replace' } } }, { overlap_policy: 'allow' });
    await new TestQueue('a').jumpTo(minute(2));
    expect((await server.jobs('a')).map(({ state }) => state)).toEqual(['cancelled', 'available']);
  });

  it('with a period ends by itself', async () => {
    await fired(
      { options: { unique: { ...perQueue, period: 'PT90S', states: ['completed', 'available'] } } },
      { overlap_policy: 'allow' },
    );
    await new TestQueue('a').jumpTo(minute(2));
    await new TestQueue('a').jumpTo(minute(3));
    expect(await ticksOf('a')).toEqual([minute(1), minute(3)]);
  });

  it('is applied to a trigger as to an enqueue', async () => {
    await fired({ options: { unique: perQueue } });
    const [job] = await server.jobs('a');
    expect(await server.call('POST', `${CRON}/a/trigger`)).toMatchObject({
      status: 409,
      body: { error: { code: 'duplicate', details: { existing_job_id: job?.id } } },
    });
  });
});

describe('a unique policy that looks across queues', () => {
  const unique = { keys: ['type', 'args'] };

  /** Fires the entry and waits until the other queues have been asked. */
  async function passAndSettle(time: number): Promise<void> {
    await new TestQueue('a').jumpTo(time);
    await until(
      () => new TestQueue('a').inside(({ engine: { q } }) => q.store.crons.across().length === 0),
      'the other queues to be asked',
    );
  }

  it('lets a job through that stands alone, under the id that the entry knows', async () => {
    await create('a', { options: { unique } });
    await passAndSettle(minute(1));
    const [job] = await server.jobs('a');
    expect(job).toMatchObject({ state: 'available', meta: { cron_scheduled_at: iso(minute(1)) } });
    expect(await read('a')).toMatchObject({ run_count: 1, last_job_id: job?.id });
    expect(await eventsOf('a', 'cron.triggered')).toHaveLength(1);
  });

  it('keeps it away when a job of another queue is in the way', async () => {
    const other = await server.ok(201, 'POST', '/ojs/v1/jobs', {
      type: 'test.cron',
      args: [],
      options: { queue: 'b', unique },
    });
    await create('a', { options: { unique } });
    await passAndSettle(minute(1));
    expect(await server.jobs('a')).toEqual([]);
    const { skipped } = await server.ok(200, 'GET', `${CRON}/a/history`);
    expect(skipped).toEqual([expect.objectContaining({ reason: 'unique', job_id: other.job?.id })]);
  });

  it('makes the job stand in the way of jobs of other queues', async () => {
    await create('a', { options: { unique } });
    await passAndSettle(minute(1));
    const answer = await server.call('POST', '/ojs/v1/jobs', {
      type: 'test.cron',
      args: [],
      options: { queue: 'b', unique },
    });
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'duplicate' } } });
  });

  it('is judged once for each fire, whenever the object dies in between', async () => {
    await create('a', { options: { unique }, overlap_policy: 'allow' });
    // As if it had died when the job was enqueued and the entry had not been told.
    await passAndSettle(minute(1));
    const [job] = await server.jobs('a');
    await new TestQueue('a').inside(({ engine: { q }, sql }) => {
      const run = JSON.parse(sql.exec<{ data: string }>("SELECT data FROM cron_runs WHERE name = 'a'").one().data);
      Object.assign(run, { runs: 0, fires: 0, history: [], across: [{ id: job?.id, tick: minute(1), at: minute(1) }] });
      q.store.crons.writeRun('a', run);
    });
    await new TestQueue('a').evict();
    await read('a');
    await new TestQueue('a').alarm();
    await until(
      () => new TestQueue('a').inside(({ engine: { q } }) => q.store.crons.across().length === 0),
      'the fire to be settled',
    );
    expect(await server.jobs('a')).toHaveLength(1);
    expect(await read('a')).toMatchObject({ run_count: 1, last_job_id: job?.id });
  });

  it('is applied to a trigger', async () => {
    await create('a', { options: { unique } });
    const { job_id } = await server.ok(201, 'POST', `${CRON}/a/trigger`);
    expect(await read('a')).toMatchObject({ run_count: 1, last_job_id: job_id });
    expect(await server.call('POST', `${CRON}/a/trigger`)).toMatchObject({ status: 409 });
  });

  it('counts as overlapping while it is being judged', async () => {
    await create('a', { options: { unique } });
    await passAndSettle(minute(1));
    await new TestQueue('a').jumpTo(minute(2));
    expect(await read('a')).toMatchObject({ run_count: 1, skipped_count: 1 });
    await server.complete('a');
    await passAndSettle(minute(3));
    expect(await ticksOf('a')).toEqual([minute(1), minute(3)]);
  });
});

describe('a template', () => {
  it.each<[Json, string, number?]>([
    [{ job_template: { args: [] } }, 'job_template.type'],
    [{ job_template: { type: 'Not A Type', args: [] } }, 'job_template.type'],
    [{ job_template: { type: 'x', args: {} } }, 'job_template.args'],
    [{ job_template: { type: 'x', id: '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee' } }, 'job_template.id'],
    [{ job_template: { type: 'x', options: { priority: 1000 } } }, 'job_template.options.priority'],
    [{ job_template: { type: 'x', options: { queue: 'Not a queue' } } }, 'job_template.options.queue'],
    [{ job_template: { type: 'x', options: { timeout: -1 } } }, 'job_template.options.timeout'],
    [{ job_template: { type: 'x', options: { timeout: 1, timeout_ms: 1 } } }, 'job_template.options.timeout'],
    [{ job_template: { type: 'x', options: { unique: { keys: ['color'] } } } }, 'job_template.options.unique.keys[0]'],
    [{ job_template: { type: 'x', options: { retry: { backoff_coefficient: 0 } } } }, 'retry.backoff_coefficient', 422],
    [{ job_template: { type: 'x', options: { rate_limit: 5 } } }, 'job_template.options.rate_limit', 400],
    [{ job_template: { type: 'x', args: null } }, 'job_template.args', 400],
    [{ job_template: 'x' }, 'job_template'],
    [{ job_template: undefined }, 'type'],
    [{ job_template: undefined, type: 'x', priority: 'high' }, 'priority'],
  ])('that is wrong is refused, naming the member: %j', async (change, field, status = 400) => {
    const answer = await refused(entry('a', change), status);
    expect(answer.body.error?.details?.field).toMatch(new RegExp(`(^|\\.)${field.replace(/[[\].]/g, '\\$&')}$`));
    expect(await server.call('GET', `${CRON}/a`)).toMatchObject({ status: 404 });
  });

  it('of a type that its queue does not take is refused', async () => {
    await server.configure('a', { allowed_job_types: ['report.*'] });
    const answer = await refused(entry('a'));
    expect(answer.body.error?.details).toMatchObject({ queue: 'a', allowed: ['report.*'] });
    await create('a', { job_template: { type: 'report.build', options: { queue: 'a' } } });
  });

  it('whose meta has no room for what a fire adds is refused', async () => {
    const meta = { big: 'x'.repeat(65_500) };
    await server.ok(201, 'POST', '/ojs/v1/jobs', { type: 'x', args: [], meta });
    const answer = await refused(entry('a', { job_template: { type: 'x', options: { meta } } }), 413);
    expect(answer.body.error?.details?.field).toBe('job_template.meta');
  });

  it('whose policy the queue does not take creates neither the entry nor the queue', async () => {
    await refused(entry('a', { options: { retry: { backoff_coefficient: 0.5 } } }), 422);
    expect(await server.call('GET', '/ojs/v1/queues/a')).toMatchObject({ status: 404 });
  });

  it('whose policy the queue takes no more is skipped with the reason, and the schedule continues', async () => {
    await server.configure('a', { default_retry: { backoff_strategy: 'polynomial' } });
    await create('a', { options: { retry: { backoff_coefficient: 0.5 } } });
    await server.configure('a', { default_retry: null });
    await new TestQueue('a').jumpTo(minute(1));
    expect(await server.jobs('a')).toEqual([]);
    const { skipped } = await server.ok(200, 'GET', `${CRON}/a/history`);
    expect(skipped).toEqual([
      expect.objectContaining({ reason: 'refused', message: expect.stringContaining('backoff_coefficient') }),
    ]);
    await server.configure('a', { default_retry: { backoff_strategy: 'polynomial' } });
    await new TestQueue('a').jumpTo(minute(2));
    expect(await ticksOf('a')).toEqual([minute(2)]);
  });
});

describe('times of the job', () => {
  const flat = { name: 'a', expression: '@daily', type: 'x' };
  const template = { name: 'a', expression: '@daily', job_template: { type: 'x' } };

  it.each(['delay_until', 'scheduled_at', 'expires_at'])(
    '%s beside the members of an entry is refused',
    async (name) => {
      for (const [body, place] of [
        [flat, `options.${name}`],
        [template, `job_template.options.${name}`],
      ] as const) {
        const answer = await server.call('POST', CRON, { ...body, [name]: '+PT10S' });
        expect([answer.status, answer.body.error?.details?.field]).toEqual([400, name]);
        expect(answer.body.error?.message).toContain(`is ${place}.`);
      }
      await server.ok(201, 'POST', CRON, { ...flat, [name]: null, options: { [name]: '+PT10S' } });
      expect((await server.call('PATCH', `${CRON}/a`, { [name]: '+PT10S' })).body.error?.details?.field).toBe(name);
      const group = await server.call('PUT', `${CRON.replace('/cron', '/cron-groups')}/g`, {
        entries: [{ ...flat, [name]: '5m' }],
      });
      expect(group.body.error?.details?.field).toBe(`entries[0].${name}`);
    },
  );
});
