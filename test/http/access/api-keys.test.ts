/** What is not understood in `API_KEYS` and the lists of rules closes the deployment: it never gives more rights. */
import { describe, expect, it } from 'vitest';
import { readApiKeys } from '../../../src/access/access';
import { TestServer, V1 } from '../../support/server';

const SECRET = 'kX3-a-long-secret';

const entry = (members: object) => JSON.stringify([{ key: SECRET, ...members }]);

const WRONG: [what: string, keys: unknown, message: RegExp][] = [
  ['a misspelt role', entry({ rolle: 'viewer' }), /unknown member.*Did you mean "role"\?/],
  ['a misspelt scopes', entry({ scope: ['metrics:read'] }), /unknown member.*Did you mean "scopes"\?/],
  ['a role in upper case', entry({ Role: 'viewer' }), /unknown member/],
  ['a member named like the key', JSON.stringify([{ [SECRET]: 'admin' }]), /unknown member/],
  ['an unknown role', entry({ role: 'viewr' }), /role must be.*Did you mean "viewer"\?/],
  ['a role that is null', entry({ role: null }), /role must be/],
  ['the name of a member of every object as role', entry({ role: 'constructor' }), /role must be/],
  ['an unknown scope', entry({ scopes: ['data:wirte'] }), /unknown scope.*Did you mean "data:write"\?/],
  ['the key as a scope', entry({ scopes: [SECRET] }), /unknown scope/],
  ['scopes that are text', entry({ scopes: 'data:read' }), /list of scopes/],
  ['no scopes', entry({ scopes: [] }), /list of scopes/],
  ['a name that is a number', entry({ name: 7 }), /name must be text/],
  ['bounds that are null', entry({ queues: null }), /queues must be a list of patterns/],
  ['bounds without a pattern', entry({ types: [] }), /types must have at least one entry/],
  ['bounds that are text', entry({ groups: 'acme' }), /groups must be/],
  ['a pattern that is cut in its middle', entry({ queues: ['a*b'] }), /must be a name, or the beginning of names/],
  ['a misspelt bound', entry({ queue: ['a'] }), /unknown member.*Did you mean "queues"\?/],
  ['a key with a blank', JSON.stringify([{ key: `${SECRET} x` }]), /blanks/],
  ['a key with a line break', JSON.stringify([{ key: `${SECRET}\n` }]), /blanks/],
  ['an entry without a key', JSON.stringify([{ name: 'Ada', role: 'admin' }]), /has no key/],
  ['an entry that is a list', JSON.stringify([[SECRET]]), /must be an object/],
  ['an entry that is text', JSON.stringify([SECRET]), /must be an object/],
  ['one key twice', JSON.stringify([{ key: SECRET, role: 'viewer' }, { key: SECRET }]), /entries 0 and 1/],
  ['one key twice in a list', `${SECRET},${SECRET}`, /entries 0 and 1/],
  ['an object without brackets', `{"key":"${SECRET}","role":"viewer"}`, /within \[ \]/],
  ['the end of an object', `${SECRET} "role":"viewer"}`, /within \[ \]/],
  ['members that are assigned', `key=${SECRET},role=viewer`, /within \[ \]/],
  ['the word for a key that a script lacks', 'undefined', /missing value/],
  ['such a word in an entry', JSON.stringify([{ key: 'null', role: 'admin' }]), /missing value/],
  ['an empty list', '[]', /at least one key/],
  ['nothing but separators', ' , ', /at least one key/],
  ['torn JSON', `[{"key":"${SECRET}"`, /not valid JSON/],
  ['a number', 7, /JSON array/],
];

describe('API_KEYS', () => {
  it.each(WRONG)('with %s refuses every request, and quotes nothing of it', async (_, keys, message) => {
    const closed = TestServer.with({ API_KEYS: keys, ALLOW_LOCALHOST: 'true' });
    for (const token of [undefined, SECRET, '"role":"viewer"}', 'role=viewer', 'undefined']) {
      const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      for (const [method, path] of [
        ['GET', `${V1}/jobs`],
        ['POST', `${V1}/jobs`],
        ['POST', `${V1}/workers/ack`],
        ['GET', `${V1}/admin/session`],
      ] as const) {
        const answer = await closed.call(method, path, method === 'POST' ? {} : undefined, headers);
        expect(answer).toMatchObject({ status: 500, body: { error: { code: 'invalid_configuration' } } });
        expect(answer.body.error?.message).toMatch(message);
        expect(JSON.stringify(answer.body)).not.toContain(SECRET);
      }
    }
    const ready = await closed.call('GET', '/ready');
    expect(ready).toMatchObject({
      status: 503,
      body: { status: 'unhealthy', problem: expect.stringMatching(message) },
    });
    expect((await closed.call('GET', '/health')).status).toBe(200);
  });

  it('gives each key what its entry says', () => {
    const scopesOf = (members: object) => readApiKeys(entry(members))[0]?.scopes;
    expect(scopesOf({})).toContain('admin:purge');
    expect(scopesOf({ role: 'viewer', name: 'Vera' })).toEqual(['data:read', 'admin:read', 'metrics:read']);
    expect(scopesOf({ scopes: ['metrics:read'] })).toEqual(['metrics:read']);
    expect(scopesOf({ role: 'viewer', scopes: ['data:write'] })).toContain('data:write');
    expect(readApiKeys('one, two three').map(({ key }) => key)).toEqual(['one', 'two', 'three']);
    expect(readApiKeys('')).toEqual([]);
  });
});

describe('a list of rules', () => {
  it.each([
    [{ REDACT: ['password'] }, 'REDACT'],
    [{ REDACT: '["password"]' }, 'REDACT'],
    [{ ALLOWED_ORIGINS: ['https://app.example'] }, 'ALLOWED_ORIGINS'],
    [{ ALLOWED_TARGET_HOSTS: ['app.example'] }, 'ALLOWED_TARGET_HOSTS'],
    [{ HANDLERS: '[]' }, 'HANDLERS'],
  ])('%j is refused, not overlooked', async (variables, variable) => {
    const server = TestServer.with({ ...variables, API_KEYS: SECRET });
    const answer = await server.call('GET', `${V1}/jobs`, undefined, { Authorization: `Bearer ${SECRET}` });
    expect(answer).toMatchObject({ status: 500, body: { error: { details: { variable } } } });
    expect((await server.call('GET', '/ready')).body.problem).toContain(variable);
  });
});
