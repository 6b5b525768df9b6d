import { describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { server, TestServer, V1 } from '../../support/server';

server.emptyBeforeEach();

describe('whose pages may follow', () => {
  const status = async (from: TestServer, path: string, headers: Record<string, string>) => {
    const response = await from.send(new Request(`http://localhost${V1}${path}`, { headers }));
    await response.body?.cancel();
    response.webSocket?.accept();
    response.webSocket?.close();
    return response.status;
  };
  const Upgrade = 'websocket';
  const foreign = { Origin: 'https://evil.example' };
  const own = { Origin: 'http://localhost' };

  it('without a key: those of the server itself, and those that the deployment names', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const stream = `/queues/${queue}/events`;
    expect(await status(server, stream, foreign)).toBe(403);
    expect(await status(server, '/ws', { Upgrade, ...foreign })).toBe(403);
    expect(await status(server, stream, own)).toBe(200);
    expect(await status(server, '/ws', { Upgrade, ...own })).toBe(101);
    const open = TestServer.with({ ALLOWED_ORIGINS: 'https://app.example' });
    expect(await status(open, '/ws', { Upgrade, Origin: 'https://app.example' })).toBe(101);
  });

  it('with keys: a cookie is worth nothing to a foreign page, a key of its own is', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const stream = `/queues/${queue}/events`;
    const keys = [
      { key: 'reader', scopes: ['data:read'] },
      { key: 'writer', scopes: ['data:write'] },
    ];
    const guarded = TestServer.with({ API_KEYS: JSON.stringify(keys) });
    const Cookie = 'tocsin_key=reader';
    for (const [path, headers] of [
      [stream, {}],
      ['/ws', { Upgrade }],
    ] as const) {
      const open = path === '/ws' ? 101 : 200;
      expect(await status(guarded, path, { ...headers })).toBe(401);
      expect(await status(guarded, path, { ...headers, Cookie })).toBe(open);
      expect(await status(guarded, path, { ...headers, Cookie, ...own })).toBe(open);
      expect(await status(guarded, path, { ...headers, Cookie, ...foreign })).toBe(401);
      expect(await status(guarded, `${path}?access_token=reader`, { ...headers, ...foreign })).toBe(open);
      expect(await status(guarded, `${path}?access_token=writer`, headers)).toBe(403);
    }
  });
});
