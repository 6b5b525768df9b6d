import { describe, expect, it } from 'vitest';
import accessPage from '../../docs/operate/access.md?raw';
import { ROLES, SCOPES, type Scope } from '../../src/access/access';
import { createApp } from '../../src/http/app';
import { ROUTES } from '../../src/http/routes';
import { server, TestServer } from '../support/server';

/** Each route, the scope that it needs, and whether it takes an `Idempotency-Key`. */
const EXPECTED = `
GET /ojs/manifest data:read
GET /health public
GET /ready public
GET /ojs/v1/health public
GET /v1/health public
GET /ojs/v1/openapi.json public
GET /v1/queues data:read
GET /v1/dead-letter data:read
GET /v1/workers data:read
GET /ui/assets/:name public
GET /ui/* public
GET /ojs/ui/assets/:name public
GET /ojs/ui/* public
POST /mcp key
POST /ojs/mcp key
POST /ojs/v1/jobs/bulk data:write +key
POST /ojs/v1/jobs/bulk/cancel data:write +key
POST /ojs/v1/jobs/bulk/retry data:write +key
POST /ojs/v1/jobs/bulk/delete admin:purge +key
GET /ojs/v1/jobs/bulk/:id data:read
DELETE /ojs/v1/jobs/bulk/:id data:write
POST /ojs/v1/jobs data:write +key
POST /ojs/v1/jobs/batch data:write +key
GET /ojs/v1/jobs data:read
GET /ojs/v1/jobs/count data:read
GET /ojs/v1/jobs/:id data:read
PATCH /ojs/v1/jobs/:id data:write
DELETE /ojs/v1/jobs/:id data:write
POST /ojs/v1/jobs/:id/cancel data:write
POST /ojs/v1/jobs/:id/activate data:write
GET /ojs/v1/jobs/:id/retries data:read
GET /ojs/v1/jobs/:id/history data:read
DELETE /ojs/v1/jobs/:id/history data:write
GET /ojs/v1/events/:id/history data:read
DELETE /ojs/v1/events/:id/history data:write
POST /ojs/v1/workers/fetch data:write
POST /ojs/v1/jobs/fetch data:write
POST /ojs/v1/workers/heartbeat data:write
POST /ojs/v1/workers/beat data:write
GET /ojs/v1/workers/socket data:write
GET /ojs/v1/workers/:id/health data:read
POST /ojs/v1/workers/ack data:write
POST /ojs/v1/workers/nack data:write
POST /ojs/v1/workers/report data:write
POST /ojs/v1/jobs/:id/ack data:write
POST /ojs/v1/jobs/:id/nack data:write
PUT /ojs/v1/jobs/:id/progress data:write
POST /ojs/v1/jobs/:id/progress data:write
POST /ojs/v1/workers/progress data:write
GET /ojs/v1/jobs/:id/progress data:read
GET /ojs/v1/jobs/:id/result data:read
POST /ojs/v1/jobs/results data:write
PUT /ojs/v1/jobs/:id/checkpoint data:write
POST /ojs/v1/jobs/:id/checkpoint data:write
GET /ojs/v1/jobs/:id/checkpoint data:read
DELETE /ojs/v1/jobs/:id/checkpoint data:write
POST /ojs/v1/checkpoints/:id data:write
GET /ojs/v1/checkpoints/:id data:read
DELETE /ojs/v1/checkpoints/:id data:write
GET /ojs/v1/checkpoints/:id/resume data:read
POST /ojs/v1/ojs/v1/checkpoints/:id data:write
GET /ojs/v1/ojs/v1/checkpoints/:id data:read
DELETE /ojs/v1/ojs/v1/checkpoints/:id data:write
GET /ojs/v1/ojs/v1/checkpoints/:id/resume data:read
GET /ojs/v1/jobs/:id/steps data:read
GET /ojs/v1/jobs/:id/steps/:name data:read
PUT /ojs/v1/jobs/:id/steps/:name data:write
GET /ojs/v1/jobs/:id/streams data:read
GET /ojs/v1/jobs/:id/streams/:name data:read
POST /ojs/v1/jobs/:id/streams/:name data:write
POST /ojs/v1/jobs/:id/signals/:name data:write
POST /ojs/v1/tokens key
POST /ojs/v1/jobs/:id/tokens data:write
GET /ojs/v1/signal/:token public
POST /ojs/v1/signal/:token public
GET /ojs/v1/jobs/:id/log data:read
POST /ojs/v1/jobs/:id/log data:write
GET /ojs/v1/queues/_default/config data:read
PUT /ojs/v1/queues/_default/config data:write
GET /ojs/v1/queues data:read
GET /ojs/v1/queues/:name data:read
GET /ojs/v1/queues/:name/stats data:read
POST /ojs/v1/queues/:name/pause data:write
POST /ojs/v1/queues/:name/resume data:write
GET /ojs/v1/queues/:name/config data:read
PUT /ojs/v1/queues/:name/config data:write
POST /ojs/v1/queues data:write
POST /ojs/v1/queues/:name/drain data:write
POST /ojs/v1/queues/:name/purge admin:purge
DELETE /ojs/v1/queues/:name admin:purge
GET /ojs/v1/queues/:name/priority-stats data:read
GET /ojs/v1/queues/:name/groups data:read
GET /ojs/v1/queues/:name/groups/:group data:read
PUT /ojs/v1/queues/:name/groups/:group data:write
DELETE /ojs/v1/queues/:name/groups/:group data:write
POST /ojs/v1/queues/:name/groups/:group/pause data:write
POST /ojs/v1/queues/:name/groups/:group/resume data:write
GET /ojs/v1/rate-limits data:read
GET /ojs/v1/rate-limits/:key data:read
PUT /ojs/v1/rate-limits/:key data:write
PUT /ojs/v1/rate-limits/:key/override data:write
DELETE /ojs/v1/rate-limits/:key/override data:write
GET /ojs/v1/dead-letter data:read
GET /ojs/v1/dead-letter/stats data:read
GET /ojs/v1/dead-letter/:id data:read
POST /ojs/v1/dead-letter/retry data:write +key
DELETE /ojs/v1/dead-letter admin:purge +key
POST /ojs/v1/dead-letter/purge admin:purge +key
POST /ojs/v1/dead-letter/:id/retry data:write
DELETE /ojs/v1/dead-letter/:id admin:purge
GET /ojs/v1/admin/deployment admin:read
POST /ojs/v1/admin/deployment/apply admin:write
GET /ojs/v1/targets data:read
GET /ojs/v1/targets/:name data:read
POST /ojs/v1/targets/:name/resume admin:write
GET /ojs/v1/admin/stats admin:read
GET /ojs/v1/admin/stats/history admin:read
GET /ojs/v1/admin/stats/types admin:read
GET /ojs/v1/admin/stats/cost admin:read
GET /ojs/v1/admin/stats/stream admin:read
GET /metrics metrics:read
GET /ojs/v1/metrics metrics:read
GET /ojs/v1/admin/targets admin:read
GET /ojs/v1/admin/targets/:name admin:read
POST /ojs/v1/admin/targets/:name/resume admin:write
POST /ojs/v1/workflows data:write
GET /ojs/v1/workflows data:read
GET /ojs/v1/workflows/:id data:read
DELETE /ojs/v1/workflows/:id data:write
POST /ojs/v1/workflows/:id/cancel data:write
GET /ojs/v1/workflows/:id/progress data:read
GET /ojs/v1/events data:read
GET /ojs/v1/events/stream data:read
GET /ojs/v1/jobs/:id/events data:read
GET /ojs/v1/jobs/:id/progress/stream data:read
GET /ojs/v1/queues/:name/events data:read
GET /ojs/v1/ws data:read
POST /ojs/v1/cron data:write
GET /ojs/v1/cron data:read
GET /ojs/v1/crons data:read
DELETE /ojs/v1/cron/:name data:write
DELETE /ojs/v1/crons/:name data:write
GET /ojs/v1/cron/:name data:read
PATCH /ojs/v1/cron/:name data:write
PUT /ojs/v1/cron/:name data:write
POST /ojs/v1/cron/:name/pause data:write
POST /ojs/v1/cron/:name/resume data:write
POST /ojs/v1/cron/:name/trigger data:write
GET /ojs/v1/cron/:name/history data:read
GET /ojs/v1/crons/:name data:read
PATCH /ojs/v1/crons/:name data:write
PUT /ojs/v1/crons/:name data:write
POST /ojs/v1/crons/:name/pause data:write
POST /ojs/v1/crons/:name/resume data:write
POST /ojs/v1/crons/:name/trigger data:write
GET /ojs/v1/crons/:name/history data:read
GET /ojs/v1/cron-groups data:read
GET /ojs/v1/cron-groups/:name data:read
PUT /ojs/v1/cron-groups/:name data:write
DELETE /ojs/v1/cron-groups/:name data:write
POST /ojs/v1/webhooks/subscriptions admin:write
GET /ojs/v1/webhooks/subscriptions admin:read
GET /ojs/v1/webhooks/subscriptions/:id admin:read
PATCH /ojs/v1/webhooks/subscriptions/:id admin:write
PUT /ojs/v1/webhooks/subscriptions/:id admin:write
DELETE /ojs/v1/webhooks/subscriptions/:id admin:write
POST /ojs/v1/webhooks/subscriptions/:id/test admin:write
POST /ojs/v1/webhooks/subscriptions/:id/rotate-secret admin:write
GET /ojs/v1/webhooks/deliveries admin:read
GET /ojs/v1/webhooks/deliveries/:id admin:read
POST /ojs/v1/webhooks/deliveries/:id/retry admin:write
GET /ojs/v1/admin/alerts admin:read
POST /ojs/v1/admin/alerts admin:write
GET /ojs/v1/admin/alerts/:id admin:read
PATCH /ojs/v1/admin/alerts/:id admin:write
DELETE /ojs/v1/admin/alerts/:id admin:write
GET /ojs/v1/unique-jobs data:read
GET /ojs/v1/middleware data:read
GET /ojs/v1/admin/pools admin:read
GET /ojs/v1/admin/pools/:name admin:read
PUT /ojs/v1/admin/pools/:name admin:write
DELETE /ojs/v1/admin/pools/:name admin:write
GET /ojs/v1/admin/scheduling/stats admin:read
GET /ojs/v1/schemas data:read
POST /ojs/v1/schemas admin:write
GET /ojs/v1/schemas/:name/versions data:read
DELETE /ojs/v1/schemas/:name/:version admin:write
GET /ojs/v1/schemas/:name data:read
DELETE /ojs/v1/schemas/:name admin:write
GET /ojs/v1/admin/schemas admin:read
GET /ojs/v1/admin/schemas/:name/versions admin:read
GET /ojs/v1/admin/schemas/:name/:version admin:read
GET /ojs/v1/admin/schemas/:name admin:read
PUT /ojs/v1/admin/schemas/:name/:version admin:write
DELETE /ojs/v1/admin/schemas/:name/:version admin:write
GET /ojs/v1/admin/system/maintenance admin:read
POST /ojs/v1/admin/system/maintenance admin:write
GET /ojs/v1/admin/maintenance admin:read
POST /ojs/v1/admin/maintenance admin:write
GET /ojs/v1/admin/system/config admin:read
GET /ojs/v1/admin/config admin:read
GET /ojs/v1/admin/jobs admin:read
POST /ojs/v1/admin/jobs/bulk/retry admin:write +key
POST /ojs/v1/admin/jobs/bulk/cancel admin:write +key
POST /ojs/v1/admin/jobs/bulk/delete admin:purge +key
GET /ojs/v1/admin/jobs/bulk/:id admin:read
DELETE /ojs/v1/admin/jobs/bulk/:id admin:write
GET /ojs/v1/admin/operations admin:read
GET /ojs/v1/admin/operations/:id admin:read
POST /ojs/v1/admin/operations/:id/abort admin:write
POST /ojs/v1/admin/jobs/:id/clone admin:write +key
POST /ojs/v1/admin/jobs/:id/activate admin:write
GET /ojs/v1/admin/failures admin:read
GET /ojs/v1/admin/failures/:fingerprint admin:read
POST /ojs/v1/admin/failures/:fingerprint/redrive admin:write +key
POST /ojs/v1/admin/failures/:fingerprint/discard admin:purge +key
PATCH /ojs/v1/admin/jobs/:id admin:write
GET /ojs/v1/admin/dead-letter admin:read
GET /ojs/v1/admin/dead-letter/stats admin:read
POST /ojs/v1/admin/dead-letter/retry admin:write +key
DELETE /ojs/v1/admin/dead-letter admin:purge +key
POST /ojs/v1/admin/dead-letter/:id/retry admin:write
DELETE /ojs/v1/admin/dead-letter/:id admin:purge
GET /ojs/v1/admin/queues/_default/config admin:read
PUT /ojs/v1/admin/queues/_default/config admin:write
GET /ojs/v1/admin/queues admin:read
GET /ojs/v1/admin/queues/:name admin:read
POST /ojs/v1/admin/queues/:name/pause admin:write
POST /ojs/v1/admin/queues/:name/resume admin:write
GET /ojs/v1/admin/queues/:name/export admin:export
POST /ojs/v1/admin/queues/:name/import admin:export
PUT /ojs/v1/admin/queues/:name/config admin:write
DELETE /ojs/v1/admin/queues/:name/jobs admin:purge
GET /ojs/v1/admin/audit admin:read
GET /ojs/v1/admin/session key
POST /ojs/v1/admin/session public
GET /ojs/v1/admin/session/login public
GET /ojs/v1/admin/session/callback public
DELETE /ojs/v1/admin/session public
GET /ojs/v1/admin/keys admin:keys
POST /ojs/v1/admin/keys admin:keys
GET /ojs/v1/admin/keys/:id admin:keys
PATCH /ojs/v1/admin/keys/:id admin:keys
DELETE /ojs/v1/admin/keys/:id admin:keys
POST /ojs/v1/admin/keys/:id/rotate admin:keys
POST /ojs/v1/admin/reset admin:purge
POST /ojs/v1/admin/retry/preview admin:read
GET /ojs/v1/admin/jobs/:id admin:read
POST /ojs/v1/admin/jobs/:id/retry admin:write
PUT /ojs/v1/admin/jobs/:id/steps/:name admin:write
POST /ojs/v1/admin/jobs/:id/cancel admin:write
GET /ojs/v1/admin/workers admin:read
POST /ojs/v1/admin/workers/directive admin:write
GET /ojs/v1/admin/workers/:id admin:read
POST /ojs/v1/admin/workers/:id/quiet admin:write
DELETE /ojs/v1/admin/workers/:id admin:write
`
  .trim()
  .split('\n')
  .map((line) => {
    const [method = '', path = '', scope = '', key] = line.split(' ');
    return { method, path, scope, takesIdempotencyKey: key === '+key' };
  });

type Rule = { method: string; path: string; scope: string };

/** The table of the page about access: what holds beside the rule above it. */
const RULES: Rule[] = accessPage
  .split('\n')
  .filter((line) => /^\| .*`(GET|POST|PUT|PATCH|DELETE) \//.test(line))
  .flatMap((line) => {
    const [, named = '', calls = ''] = line.split('|');
    const scope = { 'no key': 'public', 'any key': 'key' }[named.trim()] ?? named.replace(/[` ]/g, '');
    return [...calls.matchAll(/`([A-Z]+) (\/[^`]*)`/g)].map(([, method = '', path = '']) => ({ method, path, scope }));
  });

const covers = (rule: Rule, { method, path }: { method: string; path: string }) =>
  rule.method === method &&
  [rule.path, `/ojs/v1${rule.path}`].some((named) =>
    named.endsWith('/*') ? path.startsWith(named.slice(0, -1)) : path === named,
  );

/** The scope that the page about access says for a route. */
function scopeSaid(route: { method: string; path: string }): string {
  const side = route.path.startsWith('/ojs/v1/admin/') ? 'admin' : 'data';
  const rule = RULES.find((one) => covers(one, route));
  return rule?.scope ?? `${side}:${route.method === 'GET' ? 'read' : 'write'}`;
}

const KEY = { Authorization: 'Bearer k' };

/** Every scope but this one, and but those that include it. */
const allBut = (scope: string): Scope[] =>
  SCOPES.filter((other) => other !== scope && !(scope === 'metrics:read' && other === 'admin:read'));

/** A path of this route. */
const filledIn = (path: string) => path.replace(/:\w+/g, 'x');

describe('the routes', () => {
  it('each declare their scope and whether they remember answers', () => {
    const declared = ROUTES.map(({ method, path, scope, takesIdempotencyKey = false }) => {
      return { method, path, scope, takesIdempotencyKey };
    });
    const byName = (a: { method: string; path: string }, b: { method: string; path: string }) =>
      a.path < b.path ? -1 : a.path > b.path ? 1 : a.method < b.method ? -1 : 1;
    expect(declared.sort(byName)).toEqual([...EXPECTED].sort(byName));
  });

  it('each need the scope that the page about access says', () => {
    const said = ROUTES.map((route) => ({ ...route, scope: scopeSaid(route) }));
    const differing = said.filter(({ scope }, index) => scope !== ROUTES[index]?.scope);
    expect(differing.map(({ method, path, scope }) => `${method} ${path}: ${scope}`)).toEqual([]);
    // Each line of the table is about something.
    const meant = (rule: Rule) => ROUTES.some((route) => covers(rule, route));
    expect(RULES.length).toBeGreaterThan(20);
    expect(RULES.filter((rule) => !meant(rule))).toEqual([]);
  });

  it('each say under which name a write is recorded in the audit log, or that it is not', () => {
    const writes = ROUTES.filter(({ method }) => method !== 'GET');
    const silent = writes.filter(({ audit }) => !/^(none|[a-z_]+\.[a-z_]+)$/.test(audit ?? ''));
    expect(silent.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
    const asked = ROUTES.filter(({ method, audit }) => method === 'GET' && audit !== undefined);
    expect(asked).toEqual([]);
  });

  it('of operators are recorded, all that write', () => {
    const operators = ROUTES.filter(({ method, path }) => method !== 'GET' && path.startsWith('/ojs/v1/admin/'));
    const unrecorded = operators.filter(({ audit }) => audit === 'none').map(({ method, path }) => `${method} ${path}`);
    expect(unrecorded).toEqual([
      'POST /ojs/v1/admin/session',
      'DELETE /ojs/v1/admin/session',
      'POST /ojs/v1/admin/reset',
      'POST /ojs/v1/admin/retry/preview',
    ]);
  });

  it('are all that the application serves', () => {
    const served = createApp().routes.filter(({ method }) => method !== 'ALL');
    expect(served.map(({ method, path }) => `${method} ${path}`)).toEqual(
      ROUTES.map(({ method, path }) => `${method} ${path}`),
    );
  });

  it.each(SCOPES)('that need the scope %s refuse a key with all others', async (scope) => {
    const others = allBut(scope);
    const guarded = TestServer.with({ API_KEYS: JSON.stringify([{ key: 'k', scopes: others }]) });
    for (const route of EXPECTED.filter((expected) => expected.scope === scope)) {
      const { status, body } = await guarded.call(route.method, filledIn(route.path), undefined, KEY);
      const name = `${route.method} ${route.path}`;
      expect([name, status, body.error?.details]).toEqual([name, 403, { required_scope: scope }]);
    }
  });

  it.each([
    ...Object.entries(ROLES).map(([role, scopes]) => [role, { role }, scopes] as const),
    ['producer', { scopes: ['data:write'] }, ['data:write']] as const,
    ['worker', { scopes: ['data:read', 'data:write'] }, ['data:read', 'data:write']] as const,
    ['scraper', { scopes: ['metrics:read'] }, ['metrics:read']] as const,
    ['nobody', undefined, []] as const,
  ])('let a key of %s call what its scopes say, and nothing else', async (_, members, scopes: readonly string[]) => {
    const guarded = TestServer.with({ API_KEYS: JSON.stringify([{ key: 'other' }, { key: 'k', ...members }]) });
    for (const { method, path, scope } of EXPECTED) {
      if (scope === 'public') continue;
      // Refused before anything is done, but after the key was judged.
      const asked = `${filledIn(path)}?no_such_parameter=1`;
      const { status } = await guarded.call(method, asked, method === 'GET' ? undefined : '[', members && KEY);
      const isAllowed = members !== undefined && (scope === 'key' || scopes.includes(scope));
      const name = `${method} ${path}`;
      if (members === undefined) expect([name, status]).toEqual([name, 401]);
      else expect([name, status === 403]).toEqual([name, !isAllowed]);
    }
  });

  it('that are not public ask for a key, even where the path is known for another method or for none', async () => {
    const guarded = TestServer.with({ API_KEYS: 'k' });
    const closed = EXPECTED.filter(({ scope }) => scope !== 'public');
    const unknown = [
      { method: 'PATCH', path: '/ojs/v1/jobs' },
      { method: 'GET', path: '/ojs/v1/nothing' },
    ];
    for (const { method, path } of [...closed, ...unknown]) {
      const { status } = await guarded.call(method, filledIn(path));
      expect([method, path, status]).toEqual([method, path, 401]);
    }
    expect((await guarded.call('PUT', '/health')).status).toBe(405);
  });

  it('that do not take an Idempotency-Key refuse a POST that brings one', async () => {
    const headers = { 'Idempotency-Key': 'k' };
    const refused = { status: 422, body: { error: { details: { field: 'Idempotency-Key' } } } };
    for (const { method, path } of EXPECTED.filter((route) => route.method === 'POST' && !route.takesIdempotencyKey)) {
      expect([path, await server.call(method, filledIn(path), {}, headers)]).toMatchObject([path, refused]);
    }
    for (const { method, path } of EXPECTED.filter((route) => route.takesIdempotencyKey)) {
      expect([path, (await server.call(method, filledIn(path), '[]', headers)).status]).toEqual([path, 400]);
    }
    expect(await server.call('POST', '/ojs/v1/nothing', {}, headers)).toMatchObject(refused);
  });
});

describe('a path that no route has', () => {
  it.each([
    ['GET', '/ojs/v1/nothing', 'data:read'],
    ['HEAD', '/ojs/v1/nothing', 'data:read'],
    ['PUT', '/ojs/v1/nothing', 'data:write'],
    ['GET', '/ojs/v1/admin', 'admin:read'],
    ['GET', '/ojs/v1/admin/nothing', 'admin:read'],
    ['POST', '/ojs/v1/admin/nothing', 'admin:write'],
    ['POST', '/ojs/v1/administration', 'data:write'],
  ])('needs for %s %s the scope %s', async (method, path, scope) => {
    const statusFor = async (scopes: readonly string[]) => {
      const guarded = TestServer.with({ API_KEYS: JSON.stringify([{ key: 'k', scopes }]) });
      return (await guarded.call(method, path, undefined, KEY)).status;
    };
    const others = allBut(scope);
    expect(await statusFor(others)).toBe(403);
    expect(await statusFor([scope])).toBe(404);
  });
});
