/** The small HTTP server on loopback to which the handler Worker reports its runs. */
import { createServer } from 'node:http';
import { PUSH_TIMEOUT_MS } from './queues.mjs';

export function startCollector(ledger) {
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('error', () => undefined);
    request.on('end', () => {
      const { token, attempt, started_at, outcome } = JSON.parse(text);
      if (request.url === '/start') {
        ledger.addRun({ token, attempt, via: 'push', startedAt: Date.parse(started_at), leaseMs: PUSH_TIMEOUT_MS });
      } else {
        ledger.endRun(token, attempt, outcome);
      }
      response.end('{}');
    });
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}
