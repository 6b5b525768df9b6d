/** The variable `LOGIN`: what is wrong in it is an error of the deployment, which is closed then. */
import { describe, expect, it } from 'vitest';
import { freshName } from '../support/queue';
import { type Json, server, TestServer, V1 } from '../support/server';

const ROLES = { claim: 'groups', viewer: ['*'] };
const LOGIN = { issuer: 'https://id.example', audience: 'jobs', roles: ROLES };
const ACCESS = { access: 'team.cloudflareaccess.com', audience: 'a1', roles: ROLES };
const SECRETS = { LOGIN_SECRET: 'secret', TOKEN_SECRET: 't'.repeat(32) };

const ask = async (LOGIN: unknown, more: Json = {}, headers: Record<string, string> = {}) => {
  const queue = TestServer.with({ LOGIN, API_KEYS: 'root', ALLOW_LOCALHOST: 'true', ...more });
  const { status, body } = await queue.call('GET', `${V1}/queues`, undefined, headers);
  const { code, message, details } = body.error ?? {};
  return { status, code, message, variable: details?.variable };
};

describe('LOGIN', () => {
  it('with a mistake keeps no attempt from being reported', async () => {
    const id = await server.enqueue(freshName('login'), { options: {} });
    const { attempt } = await server.takeOne((await server.job(id)).queue as string);
    const queue = TestServer.with({ LOGIN: '{}', API_KEYS: 'root' });
    const report = { job_id: id, attempt };
    const headers = { Authorization: 'Bearer root' };
    expect((await queue.call('POST', `${V1}/workers/ack`, report, headers)).status).toBe(200);
  });

  it.each<[string, unknown, Json?]>([
    ['the value must be an object', 'no JSON'],
    ['the value must be an object', '[]'],
    ['the value must be an object', 7],
    ['audience must be', {}],
    ['audience must be', { ...LOGIN, audience: '' }],
    ['audience must be', { ...LOGIN, audience: ['a'] }],
    ['issuer must be', { ...LOGIN, issuer: undefined }],
    ['issuer must be', { ...LOGIN, issuer: 'http://id.example' }],
    ['issuer must be', { ...LOGIN, issuer: 'id.example' }],
    ['issuer must be', { ...LOGIN, issuer: 'https://id.example/?tenant=1' }],
    ['issuer must be', { ...LOGIN, issuer: 'https://me@id.example' }],
    ['jwks must be', { ...LOGIN, jwks: 'ftp://id.example/keys' }],
    ['header must be', { ...LOGIN, header: 'Authorization' }],
    ['header must be', { ...LOGIN, header: 'cookie' }],
    ['header must be', { ...LOGIN, header: 'X Login' }],
    ['name must be', { ...LOGIN, name: '' }],
    ['"audience"', { ...LOGIN, audiance: 'x' }],
    ['issuer is not known here; use access, audience, roles', { ...ACCESS, issuer: 'https://id.example' }],
    ['access must be', { ...ACCESS, access: 'https://team.cloudflareaccess.com' }],
    ['access must be', { ...ACCESS, access: null }],
    ['roles must be', { ...LOGIN, roles: undefined }],
    ['roles must be', { ...LOGIN, roles: ['ops'] }],
    ['roles must list', { ...LOGIN, roles: { claim: 'groups' } }],
    ['roles.claim must be', { ...LOGIN, roles: { viewer: ['*'] } }],
    ['Did you mean "operator"?', { ...LOGIN, roles: { ...ROLES, operators: ['x'] } }],
    ['roles.toString is not known', { ...LOGIN, roles: { ...ROLES, toString: ['x'] } }],
    ['roles.admin must be an array', { ...LOGIN, roles: { ...ROLES, admin: 'ops' } }],
    ['roles.admin must have', { ...LOGIN, roles: { ...ROLES, admin: [] } }],
    ['roles.admin[0] must be', { ...LOGIN, roles: { ...ROLES, admin: [''] } }],
    ['roles.bounds must be', { ...LOGIN, roles: { ...ROLES, bounds: ['a'] } }],
    ['roles.bounds.a must be', { ...LOGIN, roles: { ...ROLES, bounds: { a: {} } } }],
    ['roles.bounds.a must be an object', { ...LOGIN, roles: { ...ROLES, bounds: { a: ['a-*'] } } }],
    ['roles.bounds.* must be a value', { ...LOGIN, roles: { ...ROLES, bounds: { '*': { queues: ['a'] } } } }],
    ['Did you mean "queues"?', { ...LOGIN, roles: { ...ROLES, bounds: { a: { queue: ['a'] } } } }],
    ['queues[0] must be', { ...LOGIN, roles: { ...ROLES, bounds: { a: { queues: ['a*b'] } } } }],
    ['client_id and the secret LOGIN_SECRET', { ...LOGIN, client_id: 'c' }],
    ['client_id and the secret LOGIN_SECRET', LOGIN, SECRETS],
    ['client_id and the secret LOGIN_SECRET', ACCESS, SECRETS],
  ])('with a mistake closes the deployment, with a key or without: %s', async (message, value, more = {}) => {
    for (const login of [value, typeof value === 'object' ? JSON.stringify(value) : value]) {
      for (const headers of [{}, { Authorization: 'Bearer root' }] as Record<string, string>[]) {
        for (const API_KEYS of ['root', '']) {
          const answer = await ask(login, { API_KEYS, ...more }, headers);
          expect(answer).toMatchObject({ status: 500, code: 'invalid_configuration', variable: 'LOGIN' });
          expect(answer.message).toContain(message);
        }
      }
    }
  });

  it('with a client needs the secret that signs sessions', async () => {
    const answer = await ask({ ...LOGIN, client_id: 'c' }, { ...SECRETS, TOKEN_SECRET: '' });
    expect(answer).toMatchObject({ status: 500, code: 'invalid_configuration', variable: 'TOKEN_SECRET' });
  });

  it.each<[unknown, Json?]>([
    [LOGIN],
    [JSON.stringify(ACCESS)],
    [{ ...LOGIN, client_id: 'c' }, SECRETS],
    [
      {
        ...LOGIN,
        issuer: 'http://localhost:9000',
        jwks: 'http://127.0.0.1:9000/keys?v=1',
        header: 'X-Login',
        name: 'sub',
      },
    ],
  ])('is an object, or JSON: %j', async (value, more) => {
    expect(await ask(value, more, { Authorization: 'Bearer root' })).toMatchObject({ status: 200 });
    expect(await ask(value, { API_KEYS: '', ...more })).toMatchObject({ status: 401 });
  });
});
