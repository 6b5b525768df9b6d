/** The small HTTP server on loopback to which handlers report their runs. */
import { createServer } from 'node:http';
import { briefly } from './identity.mjs';
import { PUSH_TIMEOUT_MS } from './queues.mjs';

export function startCollector(ledger) {
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('error', () => undefined);
    request.on('end', () => {
      if (request.url === '/durable') {
        ledger.addDurable(JSON.parse(text));
        response.end('{}');
        return;
      }
      const { token, attempt, life, started_at, parent_results, outcome } = JSON.parse(text);
      if (request.url === '/start') {
        const run = { token, attempt, life, via: 'push', startedAt: Date.parse(started_at), leaseMs: PUSH_TIMEOUT_MS };
        ledger.addRun({ ...run, ...(parent_results && { parents: briefly(parent_results) }) });
      } else {
        ledger.endRun({ token, attempt, life }, outcome);
      }
      response.end('{}');
    });
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}
