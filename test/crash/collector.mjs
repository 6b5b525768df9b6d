/** The small HTTP server on loopback to which handlers report their runs. */
import { createServer } from 'node:http';
import { briefly } from './identity.mjs';
import { PUSH_TIMEOUT_MS } from './queues.mjs';

/** Where handlers tell everything they do, and the list of the ledger that has it. */
const TOLD = { '/durable': 'durable', '/children': 'children' };

export function startCollector(ledger) {
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('error', () => undefined);
    request.on('end', () => {
      const list = TOLD[request.url];
      if (list) {
        ledger.addTold(list, JSON.parse(text));
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
