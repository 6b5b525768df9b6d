/** An identity provider on this machine: its page of people, and the ends of the authorization code flow. */
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

/** Who may log in, with their groups. */
const PEOPLE = {
  ada: { email: 'ada@acme.example', groups: ['team-a'] },
  otto: { email: 'otto@acme.example', groups: [] },
};

/** The variable `LOGIN` of a queue that trusts it. */
export const loginAt = (issuer) => ({
  ...{ issuer, audience: 'jobs', client_id: 'dashboard' },
  roles: { claim: 'groups', operator: ['team-a'], bounds: { 'team-a': { queues: ['a-*'] } } },
});

/** @param {number} port @param {string} secret of its client */
export async function startIssuer(port, secret) {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' }];
  const url = `http://127.0.0.1:${port}`;
  const begun = new Map();

  async function redeem(request) {
    const form = new URLSearchParams(
      await Array.fromAsync(request.setEncoding('utf8')).then((parts) => parts.join('')),
    );
    const login = begun.get(form.get('code'));
    begun.delete(form.get('code'));
    const challenge = createHash('sha256').update(form.get('code_verifier')).digest('base64url');
    const isRight =
      login?.code_challenge === challenge &&
      login.redirect_uri === form.get('redirect_uri') &&
      request.headers.authorization === `Basic ${btoa(`dashboard:${secret}`)}`;
    if (!isRight) return [400, { error: 'invalid_grant' }];
    const claims = { nonce: login.nonce, ...PEOPLE[login.person] };
    const token = new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'one' }).setIssuedAt();
    token.setIssuer(url).setAudience('dashboard').setSubject(login.person).setExpirationTime('5m');
    return [200, { id_token: await token.sign(privateKey), token_type: 'Bearer' }];
  }

  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, url);
    const json = (status, body) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    if (pathname === '/keys') return json(200, { keys });
    if (pathname === '/token') return json(...(await redeem(request)));
    if (pathname === '/.well-known/openid-configuration') {
      const ends = { authorization_endpoint: `${url}/people`, token_endpoint: `${url}/token`, jwks_uri: `${url}/keys` };
      return json(200, { issuer: url, ...ends });
    }
    const asked = Object.fromEntries(searchParams);
    if (pathname === '/people') {
      const links = Object.keys(PEOPLE).map((person) => {
        const code = randomUUID();
        begun.set(code, { ...asked, person });
        return `<p><a href="${asked.redirect_uri}?code=${code}&state=${asked.state}">${person}</a>`;
      });
      response.writeHead(200, { 'Content-Type': 'text/html' });
      return response.end(`<!doctype html><html lang="en"><title>People</title>${links.join('')}`);
    }
    return response.writeHead(404).end();
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { url, stop: () => new Promise((resolve) => server.close(resolve).closeAllConnections()) };
}
