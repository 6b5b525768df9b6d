/** Members that nothing reads are named in the answer: a mistyped option would otherwise fail silently. */
import { describe, expect, it } from 'vitest';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';

const MAX_ATTEMPTS = 'options.max_attemps is not known and has no effect. Did you mean "max_attempts"?';

const post = (path: string, body: Json) => server.call('POST', `${V1}${path}`, body);
const job = (options: Json, rest: Json = {}) => ({ type: 'report.build', args: [], options, ...rest });

describe('an unknown option of a job', () => {
  it('is named with the one that was probably meant, and the job is accepted', async () => {
    const { status, headers, body } = await post('/jobs', job({ queue: freshName('unknown'), max_attemps: 7 }));
    expect(status).toBe(201);
    expect(body.job).toMatchObject({ max_attempts: 3 });
    expect(body.warnings).toEqual([MAX_ATTEMPTS]);
    expect(headers.get('Warning')).toBe(`299 - "${MAX_ATTEMPTS.replaceAll('"', '\\"')}"`);
  });

  it.each([
    [{ prioritty: 5 }, 'options.prioritty is not known and has no effect. Did you mean "priority"?'],
    [{ maxAttempts: 5 }, 'options.maxAttempts is not known and has no effect. Did you mean "max_attempts"?'],
    [{ delay: 'PT5M' }, 'options.delay is not known and has no effect. Did you mean "delay_until"?'],
    [{ schema: 'a' }, 'options.schema has no effect there: it belongs next to options.'],
    [{ colour: 'red' }, 'options.colour is not known and has no effect.'],
  ])('%j is configured so: %s', async (options, text) => {
    const { body } = await post('/jobs', job({ queue: freshName('unknown'), ...options }));
    expect(body.warnings).toEqual([text]);
  });

  it('is not warned of where it is null, as an absent one is', async () => {
    const { body } = await post('/jobs', job({ queue: freshName('unknown'), prioritty: null }));
    expect(body).not.toHaveProperty('warnings');
  });

  it('is notified of beside a short answer, too', async () => {
    const options = { queue: freshName('unknown'), max_attemps: 7 };
    const { body } = await server.call('POST', `${V1}/jobs`, job(options), { Prefer: 'return=minimal' });
    expect(body.warnings).toEqual([MAX_ATTEMPTS]);
  });

  it('is warned of once for each of many jobs, however long its name and however many there are', async () => {
    const queue = freshName('unknown');
    const wrong = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`${'x'.repeat(5_000)}${at}`, at]));
    const jobs = [job({ queue }), job({ queue, max_attemps: 7 }), job({ queue, max_attemps: 8 })];
    for (const path of ['/jobs/batch', '/jobs/bulk']) {
      const { status, body } = await post(path, { jobs });
      expect(status).toBe(201);
      expect(body.warnings).toEqual([`jobs[1].${MAX_ATTEMPTS}`]);
    }
    const many = Array.from({ length: 30 }, (_, at) => job({ queue, [`wrong_${at}`]: at, ...wrong }));
    const { headers, body } = await post('/jobs/batch', { jobs: many });
    expect((body.warnings as string[]).length).toBe(10);
    expect(JSON.stringify(body.warnings).length).toBeLessThan(3_000);
    expect(headers.get('Warning')?.length).toBeLessThan(3_000);
  });
});

describe('an unknown member of a job', () => {
  it("is kept as the application's own, and warned of only where it is probably a slip", async () => {
    const queue = freshName('unknown');
    const { body } = await post('/jobs', job({ queue }, { x_tenant: 'a', colour: 'red', prioritty: 5 }));
    expect(body.job).toMatchObject({ x_tenant: 'a', colour: 'red', prioritty: 5, priority: 0 });
    expect(body.warnings).toEqual(['prioritty is not known and is only kept with the job. Did you mean "priority"?']);
  });
});

describe('a workflow', () => {
  it('names unknown members of itself, of its steps and of their options, and runs', async () => {
    const queue = freshName('unknown');
    const step = (rest: Json = {}) => ({ type: 'report.build', args: [], ...rest });
    const { status, headers, body } = await post('/workflows', {
      options: { queue, prioritty: 3 },
      nmae: 'monthly',
      steps: [
        step({ id: 'a', x_own: 1, options: { max_attemps: 1 } }),
        step({ id: 'b', depends_on: ['a'], callback_type: 'on_success', options: { max_attemps: 2 } }),
        { id: 'c', type: 'group', jobs: [step()], dependson: ['a'] },
      ],
    });
    expect(status).toBe(201);
    expect(body.warnings).toEqual([
      'options.prioritty is not known and has no effect. Did you mean "priority"?',
      'nmae is not known and has no effect. Did you mean "name"?',
      `steps[0].${MAX_ATTEMPTS}`,
      'steps[1].callback_type is not known: it has no effect on the workflow, and is only kept with the job.',
      'steps[2].dependson is not known and has no effect. Did you mean "depends_on"?',
    ]);
    expect(headers.get('Warning')).toContain('callback_type');
  });

  it('of each form is not warned of what it knows', async () => {
    const [queue, one] = [freshName('unknown'), { type: 'report.build', args: [] }];
    const forms = [
      { type: 'chain', name: 'a', options: { queue }, steps: [one, { type: 'batch', jobs: [one], on_complete: one }] },
      { type: 'batch', tasks: [one], options: { queue, priority: 1 }, callbacks: { on_success: one } },
    ];
    for (const form of forms) expect((await post('/workflows', form)).body).not.toHaveProperty('warnings');
  });
});

describe('a cron entry', () => {
  const entry = (rest: Json = {}) => ({
    name: freshName('unknown'),
    expression: '@daily',
    type: 'report.build',
    ...rest,
  });

  it('names unknown members of itself and of the options of its job, when it is made and when it is changed', async () => {
    const wrong = { jitter: '5m', overlap: 'skip', options: { prioritty: 2 } };
    const texts = [
      'jitter is not known and has no effect.',
      'overlap is not known and has no effect. Did you mean "overlap_policy"?',
      'options.prioritty is not known and has no effect. Did you mean "priority"?',
    ];
    const made = entry(wrong);
    const { status, headers, body } = await post('/cron', made);
    expect(status).toBe(201);
    expect(body.warnings).toEqual(texts);
    expect(headers.get('Warning')).toContain('jitter');
    const changed = await server.call('PATCH', `${V1}/cron/${made.name}`, { jitter: '1m' });
    expect(changed.body.warnings).toEqual([texts[0], texts[2]]);
    const group = freshName('unknown');
    const replaced = await server.call('PUT', `${V1}/cron-groups/${group}`, { entries: [entry(), entry(wrong)] });
    expect(replaced.body.warnings).toEqual(texts.map((text) => `entries[1].${text}`));
  });

  it('with a template gets a warning for options next to it', async () => {
    const { name, expression } = entry();
    const job_template = { type: 'report.build', options: { max_attemps: 1 } };
    const { body } = await post('/cron', { name, expression, job_template, priority: 1 });
    expect(body.warnings).toEqual(['priority is not known and has no effect.', `job_template.${MAX_ATTEMPTS}`]);
  });

  it('that is sent back as it was read is not warned of', async () => {
    const { body: made } = await post('/cron', entry({ options: { priority: 1 }, description: 'a' }));
    expect(made).not.toHaveProperty('warnings');
    for (const list of ['cron', 'crons']) {
      const path = `${V1}/${list}/${(made.cron as Json).name}`;
      const { body: read } = await server.call('GET', path);
      const { cron, ...flat } = read;
      const back = await server.call('PUT', path, list === 'cron' ? (cron as Json) : { ...flat, cron });
      expect(back.status).toBe(200);
      expect(back.body).not.toHaveProperty('warnings');
    }
  });
});

describe('a webhook', () => {
  it('names unknown members, and not those of its answers', async () => {
    const made = await post('/webhooks/subscriptions', { url: 'https://x.example/a', events: ['job.*'], filters: {} });
    expect(made.status).toBe(201);
    const text = 'filters is not known and has no effect. Did you mean "filter"?';
    expect(made.body.warnings).toEqual([text]);
    const path = `${V1}/webhooks/subscriptions/${made.body.id}`;
    expect((await server.call('PATCH', path, { filters: {} })).body.warnings).toEqual([text]);
    const { body: read } = await server.call('GET', path);
    const back = await server.call('PUT', path, read.subscription as Json);
    expect(back.body).not.toHaveProperty('warnings');
    await server.call('DELETE', path);
  });
});

describe('what is refused already', () => {
  it('stays refused: unknown members of a patch, of queue settings and of an alert rule', async () => {
    const id = await server.add('report.build', [], { queue: freshName('unknown'), delay_until: '+PT1H' });
    const refused = [
      await server.call('PATCH', `${V1}/jobs/${id}`, { prioritty: 1 }),
      await server.call('PUT', `${V1}/queues/${freshName('unknown')}/config`, { concurency: 1 }),
      await post('/admin/alerts', { name: 'a', metric: 'depth', above: 1, fro: '1m' }),
    ];
    for (const { status } of refused) expect([400, 422]).toContain(status);
  });
});
