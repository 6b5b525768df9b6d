/**
 * A simple loop: how many single enqueues an address answers in a second. To compare servers, not to know what one can do.
 *
 *     node bench/enqueue-loop.mjs http://127.0.0.1:8787 [connections: 16] [seconds: 5]      TOCSIN_KEY: the key, if there is one
 */
import { Agent, request } from 'node:http';

const [url = 'http://127.0.0.1:8787', connections = '16', seconds = '5'] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections) });
const body = JSON.stringify({ type: 'any.job', args: [1], queue: 'enqueue-loop' });
const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length };
if (process.env.TOCSIN_KEY) headers.Authorization = `Bearer ${process.env.TOCSIN_KEY}`;

function enqueue() {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/ojs/v1/jobs`, { method: 'POST', agent, headers }, (answer) => {
      answer.resume();
      answer.on('end', () => (answer.statusCode === 201 ? resolve() : reject(new Error(`${answer.statusCode}`))));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Before it counts. */
const WARM_UP = 50;
for (let sent = 0; sent < WARM_UP; sent++) await enqueue();
const began = performance.now();
const end = began + Number(seconds) * 1000;
let answered = 0;
await Promise.all(
  Array.from({ length: Number(connections) }, async () => {
    while (performance.now() < end) {
      await enqueue();
      answered++;
    }
  }),
);
console.log(`${Math.round((answered * 1000) / (performance.now() - began))} jobs/s`);
agent.destroy();
