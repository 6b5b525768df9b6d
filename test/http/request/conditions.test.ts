/**
 * Every route that removes, changes, lists or counts many refuses what its contract does not name, null, and what is
 * empty: a condition that is overlooked would extend the request to more than was meant, or to everything.
 */
import { describe, expect, it } from 'vitest';
import { ROUTES } from '../../../src/http/routes';
import { freshName } from '../../support/queue';
import { server, UNKNOWN_ID, V1 } from '../../support/server';

const filled = (path: string) =>
  path
    .replace(/:fingerprint/, '0123456789abcdef')
    .replace(/:id/, UNKNOWN_ID)
    .replace(/:\w+/g, 'none')
    .replace('*', 'x');

const asked = ROUTES.filter(({ scope }) => scope !== 'public');
const names = (route: (typeof ROUTES)[number]) => `${route.method} ${route.path}`;

/** Routes that read the one thing in their path: a parameter cannot narrow them. */
const READ_ONE = asked.filter(({ method, path }) => method === 'GET' && /:\w+$/.test(path));

describe('a parameter that is not known', () => {
  it.each(asked.filter((route) => !READ_ONE.includes(route)).map((route) => [names(route), route] as const))(
    'is refused by %s',
    async (_, { method, path }) => {
      const answer = await server.call(
        method,
        `${filled(path)}?no_such_condition=1`,
        method === 'GET' ? undefined : {},
      );
      expect(answer).toMatchObject({
        status: 400,
        body: { error: { code: 'invalid_request', details: { field: 'no_such_condition' } } },
      });
    },
  );

  it.each([
    ['/jobs/count?stat=discarded', 'stat', 'state'],
    ['/jobs?tpye=mail.send', 'tpye', 'type'],
    ['/jobs?createdAfter=1h', 'createdAfter', 'created_after'],
    ['/admin/jobs?errorType=x', 'errorType', 'error_type'],
    ['/dead-letter?eror_type=x', 'eror_type', 'error_type'],
    ['/admin/failures?sate=dead', 'sate', 'state'],
    ['/events?tipes=job.failed', 'tipes', 'types'],
    ['/admin/audit?actr=x', 'actr', 'actor'],
  ])('%s is named with the one that was probably meant', async (path, field, meant) => {
    const { status, body } = await server.call('GET', V1 + path);
    expect([status, body.error?.details?.field]).toEqual([400, field]);
    expect(body.error?.message).toContain(`Did you mean "${meant}"?`);
  });

  it.each([
    '/jobs?type=',
    '/jobs/count?state=',
    '/jobs?queue',
    '/jobs?queue=,',
    '/jobs/count?state=,',
    '/jobs?type=,%20,',
    '/admin/jobs?id=,&tag=a',
    '/dead-letter?queue=',
    '/admin/failures?type=',
    '/events?queue=',
  ])('%s has no value, which is refused', async (path) => {
    expect(await server.refusal('GET', V1 + path)).toMatchObject({ status: 400, code: 'invalid_request' });
  });

  it('may be the path of a member of the payload where jobs are chosen, and only there', async () => {
    await server.ok(200, 'GET', `${V1}/jobs/count?args.0.user=7`);
    expect(await server.refusal('GET', `${V1}/dead-letter?args.0.user=7`)).toMatchObject({ status: 400 });
  });
});

/** What each route that acts on many takes, so that only the added member is wrong. */
const MANY: [method: string, path: string, body: Record<string, unknown>][] = [
  ...['', '/admin'].flatMap((side): [string, string, Record<string, unknown>][] => [
    ...['cancel', 'retry', 'delete'].map((verb): [string, string, Record<string, unknown>] => [
      'POST',
      `${side}/jobs/bulk/${verb}`,
      { filter: { queue: 'Q' }, confirm: true },
    ]),
    ['POST', `${side}/dead-letter/retry`, { filter: { queue: 'Q' }, confirm: true }],
    ['DELETE', `${side}/dead-letter`, { filter: { queue: 'Q' }, confirm: true }],
  ]),
  ['POST', '/dead-letter/purge', { older_than: 'PT0S' }],
  ['POST', '/queues/Q/purge', { states: ['available', 'discarded'], confirm: true }],
  ['DELETE', '/admin/queues/Q/jobs', { states: ['available', 'discarded'], confirm: true }],
  ['DELETE', '/queues/Q', { strategy: 'discard' }],
  ['POST', '/admin/failures/0123456789abcdef/redrive', { confirm: true }],
  ['POST', '/admin/failures/0123456789abcdef/discard', { confirm: true }],
  ['POST', '/admin/workers/directive', { directive: 'quiet' }],
  ['DELETE', '/cron-groups/none', {}],
  ['POST', '/targets/none/resume', {}],
  ['POST', '/queues/Q/pause', {}],
  ['POST', '/queues/Q/resume', {}],
  ['POST', '/queues/Q/drain', {}],
  ['POST', '/admin/queues/Q/pause', {}],
];

const members = (body: Record<string, unknown>) => Object.keys(body).filter((name) => name !== 'confirm');

describe('a request about many', () => {
  const act = async (method: string, path: string, body: unknown) => {
    const queue = freshName('many');
    await server.enqueue(queue);
    const written = JSON.parse(JSON.stringify(body).replaceAll('"Q"', JSON.stringify(queue)));
    const refused = await server.refusal(method, V1 + path.replace('Q', queue), written);
    expect((await server.ok(200, 'GET', `${V1}/jobs/count?queue=${queue}&state=available`)).count).toBe(1);
    return refused;
  };

  it.each(MANY)(
    '%s %s refuses unknown members, null and empty lists, and changes nothing',
    async (method, path, body) => {
      for (const name of ['dryRun', 'group', 'no_such_member']) {
        expect(await act(method, path, { ...body, [name]: true })).toMatchObject({ status: 400, field: name });
      }
      for (const name of members(body)) {
        expect((await act(method, path, { ...body, [name]: null })).status).toBe(400);
        expect((await act(method, path, { ...body, [name]: [] })).status).toBe(400);
      }
    },
  );

  it.each(['type', 'group', 'tag', 'tags', 'q', 'older_than', 'error_type', 'ids', 'state', 'args.0', 'created_after'])(
    'a filter whose %s is null or an empty list is refused',
    async (name) => {
      for (const value of [null, []]) {
        for (const path of ['/jobs/bulk/cancel', '/jobs/bulk/delete', '/dead-letter/retry']) {
          const refused = await act('POST', path, { filter: { queue: 'Q', [name]: value }, confirm: true });
          expect(refused.status).toBe(400);
        }
      }
    },
  );

  it.each(['job_ids', 'dry_run', 'atomicity', 'idempotency_key'])('refuses null for %s', async (name) => {
    expect(await act('POST', '/jobs/bulk/cancel', { filter: { queue: 'Q' }, [name]: null })).toMatchObject({
      status: 400,
      field: name,
    });
  });

  it('refuses no ids at all', async () => {
    expect(await act('POST', '/jobs/bulk/cancel', { job_ids: [] })).toMatchObject({ status: 400, field: 'job_ids' });
  });

  it('names the condition that was meant by a name in camelCase', async () => {
    const body = { filter: { queue: 'mail', olderThan: 'P1D' } };
    const { status, body: answer } = await server.call('POST', `${V1}/jobs/bulk/cancel`, body);
    expect(status).toBe(400);
    expect(answer.error?.message).toContain('filter.olderThan is not a condition');
    expect(answer.error?.message).toContain('Did you mean "older_than"?');
  });
});
