/** A misspelt member of an option is refused with the name that was probably meant, wherever the option stands. */
import { expect, it } from 'vitest';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';

const job = (options: Json) => ['POST', '/jobs', { type: 'a.b', args: [], options }] as const;
const config = (settings: Json) => ['PUT', `/queues/${freshName()}/config`, settings] as const;
const alert = { name: 'late', metric: 'depth', above: 3 };

it.each([
  [...job({ retry: { attempts: 5 } }), 'max_attempts'],
  [...job({ retry: { max_attemps: 5 } }), 'max_attempts'],
  [...job({ retry: { jitter: { kind: 'multiply', mn: 1 } } }), 'min'],
  [...job({ rate_limit: { key: 'stripe', concurency: 5 } }), 'concurrency'],
  [...job({ unique: { keyz: ['type'] } }), 'keys'],
  [...config({ concurency: 3 }), 'concurrency'],
  [...config({ retry: 5 }), 'default_retry'],
  [...config({ rate_limit: { limitt: 5 } }), 'limit'],
  [...config({ groups: { ordr: 'fair' } }), 'order'],
  [...config({ groups: { limits: { acme: { concurency: 5 } } } }), 'concurrency'],
  [...config({ retention: { complete: 'P1D' } }), 'completed'],
  [...config({ dead_letter: { retention: { age: 'P1D' } } }), 'max_age'],
  [...config({ backpressure: { depth: 5 } }), 'max_depth'],
  ['PUT', '/rate-limits/stripe', { concurency: 3 }, 'concurrency'],
  ['POST', '/admin/alerts', { ...alert, abov: 3 }, 'above'],
  ['POST', '/admin/retry/preview', { layers: { queue: { attempts: 3 } } }, 'max_attempts'],
])('%s %s %j', async (method, path, body, meant) => {
  const { status, body: answer } = await server.call(method, V1 + path, body);
  expect([status < 500, status >= 400, answer.error?.message]).toEqual([
    true,
    true,
    expect.stringContaining(`Did you mean "${meant}"?`),
  ]);
});

it('a policy that is not an object is refused with an example', async () => {
  const { body } = await server.call('POST', `${V1}/jobs`, { type: 'a.b', args: [], options: { retry: 5 } });
  expect(body.error?.message).toContain('must be an object, such as {"max_attempts": 5}');
});
