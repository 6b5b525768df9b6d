import { describe, expect, it } from 'vitest';
import { server } from '../../../support/server';

const CASES: [string, unknown, string][] = [
  ['no object', 5, 'rate_limit'],
  ['a list', [], 'rate_limit'],
  ['nothing', {}, 'rate_limit'],
  ['nothing but on_limit', { on_limit: 'drop' }, 'rate_limit'],
  ['a stranger', { key: 'k', burst: 1 }, 'rate_limit.burst'],
  ['an empty key', { key: '' }, 'rate_limit.key'],
  ['a key that begins with a dot', { key: '.k' }, 'rate_limit.key'],
  ['a key with a space', { key: 'a b' }, 'rate_limit.key'],
  ['a key with a slash', { key: 'a/b' }, 'rate_limit.key'],
  ['a key that is a number', { key: 7 }, 'rate_limit.key'],
  ['a key that is too long', { key: 'k'.repeat(256) }, 'rate_limit.key'],
  ['a concurrency of 0', { key: 'k', concurrency: 0 }, 'rate_limit.concurrency'],
  ['a negative concurrency', { key: 'k', concurrency: -1 }, 'rate_limit.concurrency'],
  ['half a place', { key: 'k', concurrency: 1.5 }, 'rate_limit.concurrency'],
  ['a concurrency in words', { key: 'k', concurrency: '5' }, 'rate_limit.concurrency'],
  ['an object for a concurrency', { key: 'k', concurrency: { limit: 5 } }, 'rate_limit.concurrency'],
  ['none per second', { key: 'k', max_per_second: 0 }, 'rate_limit.max_per_second'],
  ['two rates', { key: 'k', max_per_second: 1, rate: 5, period: 'minute' }, 'rate_limit.max_per_second'],
  ['a rate without a period', { key: 'k', rate: 5 }, 'rate_limit.period'],
  ['a rate of 0', { key: 'k', rate: 0, period: 'minute' }, 'rate_limit.rate'],
  ['a period without a rate', { key: 'k', concurrency: 1, period: 'minute' }, 'rate_limit.period'],
  ['a period beside an object', { rate: { limit: 1, period: 'day' }, period: 'day' }, 'rate_limit.period'],
  ['a period beside max_per_second', { max_per_second: 1, period: 'day' }, 'rate_limit.period'],
  ['a period of nothing', { rate: 1, period: 'PT0S' }, 'rate_limit.period'],
  ['a negative period', { rate: 1, period: -1 }, 'rate_limit.period'],
  ['a period in unknown words', { rate: 1, period: 'fortnight' }, 'rate_limit.period'],
  ['a rate without its limit', { rate: { period: 'day' } }, 'rate_limit.rate.limit'],
  ['a rate without its period', { rate: { limit: 1 } }, 'rate_limit.rate.period'],
  ['a rate with a stranger', { rate: { limit: 1, period: 'day', burst: 2 } }, 'rate_limit.rate.burst'],
  ['a throttle that is a number', { throttle: 5 }, 'rate_limit.throttle'],
  ['a throttle of 0', { throttle: { limit: 0, period: 'day' } }, 'rate_limit.throttle.limit'],
  ['a throttle without its period', { throttle: { limit: 5 } }, 'rate_limit.throttle.period'],
  ['an unknown on_limit', { key: 'k', concurrency: 1, on_limit: 'explode' }, 'rate_limit.on_limit'],
];

describe('rate_limit', () => {
  it.each(CASES)('with %s is refused, naming the member', async (_, rate_limit, field) => {
    const job = { type: 'test.limited', args: [], rate_limit };
    expect(await server.refusal('POST', '/ojs/v1/jobs', job)).toMatchObject({
      status: 400,
      code: 'invalid_request',
      field,
    });
    const inOptions = { type: 'test.limited', args: [], options: { rate_limit } };
    expect(await server.call('POST', '/ojs/v1/jobs/batch', { jobs: [inOptions] })).toMatchObject({
      status: 400,
      body: { error: { details: { field: `jobs[0].options.${field}`, index: 0 } } },
    });
  });

  it('is given back as it was written', async () => {
    const rate_limit = { key: 'a:B.c_d-9', rate: 5, period: 'minute', on_limit: 'wait' };
    const { job } = await server.ok(201, 'POST', '/ojs/v1/jobs', { type: 'test.limited', args: [], rate_limit });
    expect(job).toMatchObject({ rate_limit });
  });

  it('of null is none', async () => {
    const { job } = await server.ok(201, 'POST', '/ojs/v1/jobs', { type: 'test.limited', args: [], rate_limit: null });
    expect(job).not.toHaveProperty('rate_limit');
  });
});

describe('a queue setting', () => {
  it.each<[Record<string, unknown>, number, string]>([
    [{ rate_limit: 5 }, 400, 'rate_limit'],
    [{ rate_limit: {} }, 400, 'rate_limit.limit'],
    [{ rate_limit: { limit: 0, period: 'day' } }, 400, 'rate_limit.limit'],
    [{ rate_limit: { limit: 1 } }, 400, 'rate_limit.period'],
    [{ rate_limit: { concurrency: 0 } }, 400, 'rate_limit.concurrency'],
    [{ rate_limit: { limit: 1, period: 'day', key: 'k' } }, 400, 'rate_limit.key'],
    [{ max_size: 0 }, 400, 'max_size'],
    [{ max_size: -5 }, 400, 'max_size'],
    [{ max_size: '5' }, 400, 'max_size'],
    [{ max_size_bytes: 0 }, 400, 'max_size_bytes'],
    [{ overflow_policy: 'explode' }, 400, 'overflow_policy'],
    [{ overflow_policy: 'block' }, 422, 'overflow_policy'],
    [{ backpressure: 5 }, 400, 'backpressure'],
    [{ backpressure: { max_depth: 0 } }, 400, 'backpressure.max_depth'],
    [{ backpressure: { strategy: 'block' } }, 422, 'backpressure.strategy'],
    [{ backpressure: { warning_threshold: 1.1 } }, 400, 'backpressure.warning_threshold'],
    [{ backpressure: { warning_threshold: -0.1 } }, 400, 'backpressure.warning_threshold'],
    [{ backpressure: { min_depth: 1 } }, 422, 'backpressure.min_depth'],
    [{ max_size: 5, backpressure: { max_depth: 6 } }, 400, 'backpressure.max_depth'],
    [{ overflow_policy: 'reject', backpressure: { strategy: 'drop_oldest' } }, 400, 'backpressure.strategy'],
  ])('%j is refused, naming the member', async (config, status, field) => {
    expect(await server.refusal('PUT', '/ojs/v1/queues/limits-refused/config', config)).toMatchObject({
      status,
      field,
    });
  });
});
