/** Logins by an identity provider: whose JWT counts, what it allows, and everything that is none. */
import { exportJWK, exportSPKI, SignJWT } from 'jose';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Attempts, attempts } from '../../../src/http/session/attempts';
import { unpaddedBase64UrlOf } from '../../../src/job/bytes';
import { clock, DAY, MINUTE, SECOND, T0 } from '../../support/clock';
import { Issuer } from '../../support/issuer';
import { freshName } from '../../support/queue';
import { type Json, server, TestServer, V1 } from '../../support/server';
import { StreamReader } from '../../support/streams';

const SESSION = `${V1}/admin/session`;
const ROLES = {
  claim: 'groups',
  admin: ['ops'],
  operator: ['team-a', 'team-b', 'team-c'],
  viewer: ['*'],
  bounds: { 'team-a': { queues: ['a-*'] }, 'team-b': { queues: ['b-*'] }, 'team-c': { queues: ['c'], types: ['c.*'] } },
};
const issuer = new Issuer();
const LOGIN = {
  issuer: issuer.url,
  audience: 'jobs',
  jwks: 'https://id.example/realm/keys',
  header: 'X-Login',
  roles: ROLES,
};
const [API_KEYS, TOKEN_SECRET] = ['root', 't'.repeat(32)];

const withLogin = (login: unknown = LOGIN, variables: Json = {}) =>
  TestServer.with({ LOGIN: login, API_KEYS, TOKEN_SECRET, ...variables });
const bearer = (jwt: string) => ({ Authorization: `Bearer ${jwt}` });
const code = async (of: TestServer, headers: Record<string, string>, path = SESSION, method = 'GET') => {
  const { status, body } = await of.call(method, path, undefined, headers);
  return [status, body.error?.code];
};

beforeAll(async () => {
  for (const alg of ['RS256', 'ES256', 'EdDSA', 'PS256']) await issuer.addKey(alg, alg);
  await issuer.addKey('one');
});
issuer.listenInEachTest();

describe('a JWT of the identity provider', () => {
  it('is a login: as Bearer, in the query, in the header that the proxy sets', async () => {
    const queue = withLogin();
    const jwt = await issuer.sign({ email: 'olga@acme.example', groups: ['ops', 'others'] });
    const who = { name: 'olga@acme.example', role: 'admin', via: 'login', subject: 'u-1', open: false };
    expect(await queue.ok(200, 'GET', SESSION, undefined, bearer(jwt))).toMatchObject(who);
    expect(await queue.ok(200, 'GET', `${SESSION}?access_token=${jwt}`)).toMatchObject(who);
    expect(await queue.ok(200, 'GET', SESSION, undefined, { 'X-Login': jwt })).toMatchObject(who);
    expect(issuer.asked('/realm/keys')).toBe(1);
  });

  it.each(['RS256', 'ES256', 'EdDSA'])('may be signed with %s', async (alg) => {
    expect(await code(withLogin(), bearer(await issuer.sign({}, alg)))).toEqual([200, undefined]);
  });

  it('of Cloudflare Access comes in its header, from its keys', async () => {
    const access = new Issuer('https://team.cloudflareaccess.com', '/cdn-cgi/access/certs').listen();
    await access.addKey('one');
    const queue = withLogin({
      access: 'team.cloudflareaccess.com',
      audience: 'jobs',
      roles: { ...ROLES, claim: 'custom.groups' },
    });
    const shown = async (claims: Json) => {
      const jwt = await access.sign(claims);
      return await queue.ok(200, 'GET', SESSION, undefined, { 'Cf-Access-Jwt-Assertion': jwt });
    };
    expect(await shown({ email: 'a@b.example', custom: { groups: ['ops'] } })).toMatchObject({
      name: 'a@b.example',
      role: 'admin',
    });
    const program = { name: 'id.access', subject: 'id.access', role: 'viewer' };
    expect(await shown({ sub: '', common_name: 'id.access' })).toMatchObject(program);
    expect(access.asked('/realm/.well-known/openid-configuration')).toBe(0);
  });

  it('comes after a key, and before a cookie', async () => {
    const queue = withLogin();
    const jwt = await issuer.sign({ groups: ['ops'] });
    const both = { 'X-Login': jwt, Cookie: 'tocsin_key=root' };
    expect(await queue.ok(200, 'GET', SESSION, undefined, both)).toMatchObject({ via: 'login' });
    const { subject, ...key } = await queue.ok(200, 'GET', SESSION, undefined, { ...both, ...bearer('root') });
    expect([subject, key.via]).toEqual([undefined, 'key']);
    expect(await code(queue, { ...both, ...bearer('wrong') })).toEqual([401, 'unauthorized']);
    expect(await code(queue, { 'X-Login': 'wrong', Cookie: 'tocsin_key=root' })).toEqual([401, 'unauthorized']);
    // A proxy that lets somebody through whom it does not know.
    expect(await queue.ok(200, 'GET', SESSION, undefined, { ...both, 'X-Login': '' })).toMatchObject({ via: 'key' });
  });

  it('that a proxy adds counts only in requests of pages of this server, as a cookie does', async () => {
    const [queue, name] = [withLogin(), freshName()];
    await server.enqueue(name);
    const login = { 'X-Login': await issuer.sign({ groups: ['ops'] }) };
    const pause = async (headers: Record<string, string>) =>
      (await code(queue, { ...login, ...headers }, `${V1}/admin/queues/${name}/pause`, 'POST'))[0];
    expect(await pause({ Origin: 'http://localhost' })).toBe(200);
    expect(await pause({ 'Sec-Fetch-Site': 'same-origin' })).toBe(200);
    for (const foreign of [
      {},
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
      { 'Sec-Fetch-Site': 'same-site' },
    ]) {
      expect(await pause(foreign as Record<string, string>)).toBe(401);
    }
    expect(await code(queue, { ...login, Origin: 'https://evil.example' })).toEqual([401, 'unauthorized']);
  });

  it('may be as far off as clocks are', async () => {
    const [queue, now] = [withLogin(), Math.floor(Date.now() / SECOND)];
    for (const claims of [{ exp: now - 50 }, { nbf: now + 50 }]) {
      expect(await code(queue, bearer(await issuer.sign(claims)))).toEqual([200, undefined]);
    }
  });

  it('needs no API key beside it, and closes a server that would be open', async () => {
    const queue = withLogin(LOGIN, { API_KEYS: '', ALLOW_LOCALHOST: 'true' });
    expect(await code(queue, {})).toEqual([401, 'unauthorized']);
    expect(await code(queue, bearer(await issuer.sign()))).toEqual([200, undefined]);
    const begin = vi.spyOn(attempts, 'begin').mockImplementation(() => () => undefined);
    expect((await queue.call('POST', SESSION, { key: 'a guess' })).status).toBe(401);
    expect(begin).toHaveBeenCalledOnce();
    expect(await withLogin().ok(200, 'GET', `${V1}/admin/config`, undefined, bearer('root'))).toMatchObject({
      access: { open_to_localhost: false },
      variables: { LOGIN: { set: true } },
    });
  });
});

describe('what is no login', () => {
  it('is 401, logged, and counts as a failed login', async () => {
    const queue = withLogin();
    const [good, now] = [await issuer.sign({ groups: ['ops'] }), Math.floor(Date.now() / SECOND)];
    const [head, body, signature] = good.split('.') as [string, string, string];
    const part = (value: object) => unpaddedBase64UrlOf(new TextEncoder().encode(JSON.stringify(value)));
    const claims = { iss: issuer.url, aud: 'jobs', sub: 'u-1', groups: ['ops'], exp: now + 600 };
    const other = new Issuer();
    await other.addKey('one');
    const hmac = async (secret: string) =>
      await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(new TextEncoder().encode(secret));
    const { publicKey } = issuer.pair('one');
    await other.addKey('own');
    const own = await exportJWK(other.pair('own').publicKey);
    const forged: [string, string][] = [
      ['alg none', `${part({ alg: 'none' })}.${part(claims)}.`],
      ['alg None', `${part({ alg: 'None', kid: 'one' })}.${body}.${signature}`],
      ['no alg', `${part({ kid: 'one' })}.${body}.${signature}`],
      ['HS256 with the public key', await hmac(await exportSPKI(publicKey))],
      ['HS256 with the public key as JSON', await hmac(JSON.stringify(await exportJWK(publicKey)))],
      ['HS256 with the modulus', await hmac(String((await exportJWK(publicKey)).n))],
      ['HS256 with the secret of tokens', await hmac(TOKEN_SECRET)],
      ['another signature algorithm', await issuer.sign(claims, 'PS256')],
      ['the key of another issuer', await other.sign(claims)],
      ['a key that it brings itself', await other.sign(claims, 'own', { jwk: own, kid: undefined })],
      ['an unknown critical header', await issuer.sign(claims, 'one', { crit: ['exp2'], exp2: 1 })],
      ['another audience', await issuer.sign({ ...claims, aud: 'mail' })],
      ['no audience', await issuer.sign({ ...claims, aud: undefined })],
      ['another issuer', await issuer.sign({ ...claims, iss: `${issuer.url}/` })],
      ['expired', await issuer.sign({ ...claims, exp: now - 61 })],
      ['no end', await issuer.sign({ ...claims, exp: undefined })],
      ['not yet valid', await issuer.sign({ ...claims, nbf: now + 90 })],
      ['no subject', await issuer.sign({ ...claims, sub: undefined })],
      ['other claims', `${head}.${part({ ...claims, groups: ['root'] })}.${signature}`],
      ['a cut signature', `${head}.${body}.${signature.slice(0, -4)}`],
      ['no signature', `${head}.${body}.`],
      ['no JSON', 'a.b.c'],
      ['too long', `${head}.${'a'.repeat(20_000)}.${signature}`],
    ];
    const begin = vi.spyOn(attempts, 'begin').mockImplementation(() => () => undefined);
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    for (const [why, jwt] of forged) {
      begin.mockClear();
      const refused = [401, 'unauthorized'];
      expect([why, ...(await code(queue, bearer(jwt)))]).toEqual([why, ...refused]);
      expect([why, ...(await code(queue, { 'X-Login': jwt }))]).toEqual([why, ...refused]);
      expect([why, begin.mock.calls.length]).toEqual([why, 2]);
      const alone = withLogin(LOGIN, { TOKEN_SECRET: '' });
      expect([why, ...(await code(alone, bearer(jwt)))]).toEqual([why, ...refused]);
    }
    expect(warn).toHaveBeenCalledTimes(3 * forged.length);
    expect(JSON.stringify(warn.mock.calls)).not.toContain(body);
    expect(await code(queue, bearer(good))).toEqual([200, undefined]);
  });

  it('is refused for the rest of the minute where it comes from, while others log in', async () => {
    const limited = new Attempts();
    vi.spyOn(attempts, 'begin').mockImplementation((...given) => limited.begin(...given));
    const [queue, from] = [withLogin(), { 'CF-Connecting-IP': '192.0.2.8' }];
    for (let n = 0; n < 10; n++) await code(queue, { ...from, ...bearer('a.b.c') });
    expect(await code(queue, { ...from, 'X-Login': 'a.b.c' })).toEqual([429, 'rate_limited']);
    expect(await code(queue, { ...from, ...bearer(await issuer.sign()) })).toEqual([200, undefined]);
  });

  it('where LOGIN is not set', async () => {
    const queue = TestServer.with({ API_KEYS });
    const jwt = await issuer.sign({ groups: ['ops'] });
    expect(await code(queue, bearer(jwt))).toEqual([401, 'unauthorized']);
    expect(await code(queue, { 'X-Login': jwt, 'Cf-Access-Jwt-Assertion': jwt })).toEqual([401, 'unauthorized']);
    expect(issuer.arrivals).toEqual([]);
  });
});

describe('the roles of a login', () => {
  const grant = async (claims: Json, roles: Json = ROLES) =>
    await withLogin({ ...LOGIN, roles }).call('GET', SESSION, undefined, bearer(await issuer.sign(claims)));

  it('follow from the claim: the highest one counts', async () => {
    expect((await grant({ groups: ['team-a', 'ops'] })).body).toMatchObject({ role: 'admin' });
    expect((await grant({ groups: 'team-a' })).body).toMatchObject({ role: 'operator', bounds: { queues: ['a-*'] } });
    for (const groups of [undefined, [], ['*'], [7, null], { ops: true }, 'op', ['ops ']]) {
      expect((await grant({ groups })).body).toMatchObject({ role: 'viewer' });
    }
  });

  it('are at a path within the claims, or under a name with dots', async () => {
    const at = (claim: string) => ({ claim, admin: ['ops'] });
    const name = 'https://acme.example/groups';
    expect((await grant({ [name]: ['ops'] }, at(name))).status).toBe(200);
    expect((await grant({ realm_access: { roles: ['ops'] } }, at('realm_access.roles'))).status).toBe(200);
    expect((await grant({ realm_access: ['ops'] }, at('realm_access.roles.constructor'))).status).toBe(403);
  });

  it('are none for all others: 403, and no failed login', async () => {
    const begin = vi.spyOn(attempts, 'begin');
    const answer = await grant({ groups: ['sales'] }, { claim: 'groups', viewer: ['ops'] });
    expect(answer).toMatchObject({ status: 403, body: { error: { code: 'no_role', details: { claim: 'groups' } } } });
    expect(begin).not.toHaveBeenCalled();
  });

  it('have the bounds of all groups of a person, where those are bounds together; else of the first', async () => {
    expect((await grant({ groups: ['team-b', 'team-a'] })).body.bounds).toEqual({ queues: ['b-*', 'a-*'] });
    expect((await grant({ groups: ['team-c', 'team-a'] })).body.bounds).toEqual({ queues: ['c'], types: ['c.*'] });
    expect((await grant({ groups: ['team-a', 'team-c'] })).body.bounds).toEqual({ queues: ['a-*'] });
  });

  it('are those of a key with bounds', async () => {
    const name = freshName();
    const [mine, others] = [`a-${name}`, `z-${name}`];
    const ids = [await server.enqueue(mine), await server.enqueue(others)];
    const [queue, jwt] = [withLogin(), await issuer.sign({ groups: ['team-a'] })];
    const call = async (method: string, path: string, body?: unknown) =>
      await queue.call(method, V1 + path, body, bearer(jwt));
    const { body } = await call('GET', '/admin/jobs?per_page=100');
    expect((body.items as Json[]).map((item) => item.queue).filter((each) => String(each).includes(name))).toEqual([
      mine,
    ]);
    const status = async (...given: Parameters<typeof call>) => (await call(...given)).status;
    expect(await status('GET', `/jobs/${ids[0]}`)).toBe(200);
    expect(await status('GET', `/jobs/${ids[1]}`)).toBe(404);
    expect(await status('POST', `/queues/${others}/pause`)).toBe(404);
    expect(await status('GET', '/admin/audit')).toBe(403);
    const refused = await call('POST', '/jobs', { type: 'test.x', args: [], options: { queue: others } });
    expect(refused).toMatchObject({
      status: 403,
      body: { error: { code: 'outside_key', details: { bounds: { queues: ['a-*'] } } } },
    });
    expect(await status('POST', '/jobs', { type: 'test.x', args: [], options: { queue: mine } })).toBe(201);
  });

  it('keep what is remembered of one person from another', async () => {
    const [queue, name] = [withLogin(), `a-${freshName()}`];
    const enqueue = async (sub: string) => {
      const headers = { ...bearer(await issuer.sign({ sub, groups: ['team-a'] })), 'Idempotency-Key': name };
      return (await queue.call('POST', `${V1}/jobs`, { type: 'test.x', args: [], options: { queue: name } }, headers))
        .body.id;
    };
    const [first, again, other] = [await enqueue('u-1'), await enqueue('u-1'), await enqueue('u-2')];
    expect([again === first, other === first]).toEqual([true, false]);
  });

  it('make no socket of a worker, which would outlive the login', async () => {
    const headers = {
      ...bearer(await issuer.sign({ groups: ['ops'] })),
      Upgrade: 'websocket',
      'Sec-WebSocket-Protocol': 'tocsin.worker.v1',
    };
    const answer = await withLogin().call('GET', `${V1}/workers/socket?queue=x`, undefined, headers);
    expect(answer.status).toBe(403);
  });

  it('are in the audit log, with the person', async () => {
    const [queue, name] = [withLogin(), freshName()];
    await server.enqueue(name);
    const headers = bearer(await issuer.sign({ email: 'o@acme.example', groups: ['ops'] }));
    await queue.ok(200, 'POST', `${V1}/admin/queues/${name}/pause`, undefined, headers);
    const { items } = await queue.ok(200, 'GET', `${V1}/admin/audit?queue=${name}`, undefined, bearer('root'));
    const actor = { name: 'o@acme.example', role: 'admin', key_hint: null, via: 'login', subject: 'u-1' };
    expect(items?.map((entry) => entry.actor)).toEqual([actor]);
  });
});

describe('the keys of the provider', () => {
  const get = async (queue: TestServer, kid = 'one') => (await code(queue, bearer(await issuer.sign({}, kid))))[0];
  const asked = () => issuer.asked('/realm/keys');

  it('are found by its document where LOGIN does not say', async () => {
    const { jwks: _, ...login } = LOGIN;
    expect(await get(withLogin(login))).toBe(200);
    issuer.document = { issuer: 'https://evil.example' };
    expect(await get(withLogin(login))).toBe(503);
    issuer.document = { jwks_uri: 'http://id.example/realm/keys' };
    expect(await get(withLogin(login))).toBe(503);
    issuer.document = {};
  });

  it('are asked for every ten minutes, and once for many requests', async () => {
    clock.set(T0);
    const queue = withLogin();
    for (let n = 0; n < 20; n++) expect(await get(queue)).toBe(200);
    clock.advance(9 * MINUTE);
    await get(queue);
    expect(asked()).toBe(1);
    clock.advance(MINUTE);
    await get(queue);
    expect(asked()).toBe(2);
  });

  it('are there for all requests that come together first', async () => {
    const [queue, jwt] = [withLogin(), await issuer.sign()];
    const answers = await Promise.all(Array.from({ length: 5 }, () => code(queue, bearer(jwt))));
    expect(answers.map(([status]) => status)).toEqual([200, 200, 200, 200, 200]);
  });

  it('are asked for again for one that is not known, each 30 seconds at most', async () => {
    clock.set(T0);
    const queue = withLogin();
    await get(queue);
    await issuer.addKey('new');
    expect([await get(queue, 'new'), asked()]).toEqual([401, 1]);
    clock.advance(30 * SECOND);
    expect([await get(queue, 'new'), asked()]).toEqual([200, 2]);
    // One that is withdrawn ends with the next list.
    issuer.published = issuer.published.filter((kid) => kid !== 'one');
    expect(await get(queue)).toBe(200);
    clock.advance(10 * MINUTE);
    expect(await get(queue)).toBe(401);
    for (let n = 0; n < 20; n++) await get(queue);
    expect(asked()).toBe(3);
    issuer.published.push('one');
  });

  it('count for a day where it cannot be reached, then logins get 503, and keys continue', async () => {
    clock.set(T0);
    const queue = withLogin();
    await get(queue);
    issuer.down = true;
    clock.advance(DAY - MINUTE);
    for (let n = 0; n < 5; n++) expect(await get(queue)).toBe(200);
    expect(asked()).toBe(2);
    clock.advance(MINUTE);
    const answer = await queue.call('GET', SESSION, undefined, bearer(await issuer.sign()));
    expect(answer).toMatchObject({ status: 503, body: { error: { code: 'unavailable', retryable: true } } });
    expect(answer.headers.get('Retry-After')).toBe('30');
    expect(await code(queue, bearer('root'))).toEqual([200, undefined]);
    issuer.down = false;
    clock.advance(30 * SECOND);
    expect(await get(queue)).toBe(200);
  });

  it('are 503 from the start where it has never answered', async () => {
    clock.set(T0);
    issuer.down = true;
    const [queue, begin] = [withLogin(), vi.spyOn(attempts, 'begin')];
    expect([await get(queue), await get(queue), asked()]).toEqual([503, 503, 1]);
    expect(begin).not.toHaveBeenCalled();
  });

  it.each([
    ['text', 'no JSON'],
    ['another object', '{"keys":"many"}'],
    ['more than is read', `{"keys":[],"x":"${'x'.repeat(300_000)}"}`],
  ])('are none in %s', async (_, text) => {
    vi.mocked(fetch).mockImplementation(async () => new Response(text));
    expect(await get(withLogin())).toBe(503);
  });
});

describe('a stream', () => {
  it('ends with its login', async () => {
    const queue = withLogin();
    vi.useFakeTimers({
      now: Date.now(),
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'],
    });
    const exp = Math.floor(Date.now() / SECOND) + 20;
    const jwt = await issuer.sign({ groups: ['ops'], exp });
    const stream = await StreamReader.open('/events/stream', bearer(jwt), queue);
    vi.advanceTimersByTime(15 * SECOND);
    await vi.waitFor(() => expect(stream.comments).toHaveLength(1));
    expect(stream.isOver).toBe(false);
    vi.advanceTimersByTime(15 * SECOND);
    await vi.waitFor(() => expect(stream.isOver).toBe(true));
  });
});
