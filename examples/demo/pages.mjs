/** A small server that misbehaves, so that link checks fail without a network. */
import { createServer } from 'node:http';

/** How long the first visitor of a slow page waits, in ms: longer than any timeout of the demo's jobs. */
const SLOW_MS = 20_000;

/** Answers by the first part of the path and by how often this path was requested before. */
const MANNERS = {
  flaky: (visits) => (visits === 0 ? { status: 503 } : { status: 200 }),
  slow: (visits) => (visits === 0 ? { status: 200, afterMs: SLOW_MS } : { status: 200 }),
  dead: () => ({ status: 503 }),
};

/**
 * Serves pages on a free loopback port.
 * @returns {Promise<{url: string, close: () => void}>}
 */
export async function servePages() {
  const visits = new Map();
  const server = createServer((request, response) => {
    const before = visits.get(request.url) ?? 0;
    visits.set(request.url, before + 1);
    const manner = MANNERS[request.url.split('/')[1]];
    const { status, afterMs = 0 } = manner?.(before) ?? { status: 404 };
    const answer = () => response.writeHead(status, { 'Content-Type': 'text/plain' }).end(`${status}\n`);
    const timer = setTimeout(answer, afterMs);
    response.once('close', () => clearTimeout(timer));
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
