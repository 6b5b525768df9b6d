import { describe, expect, it } from 'vitest';
import { clock, DAY, iso, SECOND, T0 } from '../support/clock';
import { TestServer, V1 } from '../support/server';

clock.startAtT0();

/** The answer when every call of the directory rejects with this. */
const answerTo = (error: unknown) =>
  TestServer.with({ DIRECTORY: { getByName: () => ({ list: () => Promise.reject(error) }) } }).call(
    'GET',
    `${V1}/queues`,
  );

const flagged = (flags: object, message = 'internal error') => Object.assign(new Error(message), flags);

describe('an error of the platform', () => {
  it.each([
    ['a reset', flagged({ durableObjectReset: true, remote: true }, 'Durable Object reset.'), 'reset', 1],
    ['a reset under load', flagged({ durableObjectReset: true, overloaded: true }), 'overloaded', 5],
    ['an overload', flagged({ overloaded: true }), 'overloaded', 5],
    ['a lost connection', new Error('Network connection lost.'), 'connection_lost', 1],
    ['a transient error', flagged({ retryable: true }), 'connection_lost', 1],
    ['a missing method', new TypeError('The RPC receiver does not implement the method "a".'), 'other_version', 10],
    ['a method that is none', new TypeError('"a" is not a function.'), 'other_version', 10],
  ])('that passes is 503 and says when to try again: %s', async (_, error, reason, after) => {
    const { status, headers, body } = await answerTo(error);
    expect({ status, after: headers.get('Retry-After') }).toEqual({ status: 503, after: String(after) });
    expect(body.error).toMatchObject({ code: 'unavailable', retryable: true, details: { reason } });
  });

  it.each(['rows written', 'rows read', 'duration'])('names a daily limit that is used up: %s', async (limit) => {
    clock.set(T0 + DAY / 2 - 90 * SECOND);
    const error = new Error(`Exceeded allowed ${limit} in Durable Objects free tier.`);
    const { status, headers, body } = await answerTo(error);
    expect({ status, after: headers.get('Retry-After') }).toEqual({ status: 503, after: '90' });
    const details = { limit, resets_at: iso(T0 + DAY / 2) };
    expect(body.error).toMatchObject({ code: 'daily_limit_exceeded', retryable: true, details });
    expect(body.error?.message).toContain(limit);
  });

  it('names a class that was created without SQLite', async () => {
    const error = flagged({ durableObjectReset: true }, 'This Durable Object is not backed by SQLite storage, so …');
    const { status, body } = await answerTo(error);
    expect(status).toBe(500);
    expect(body.error).toMatchObject({ code: 'invalid_configuration', retryable: false });
    expect(body.error?.message).toContain('new_sqlite_classes');
  });

  it('is not mistaken for a defect, nor a defect for it', async () => {
    const { status, body } = await answerTo(new TypeError('{}.foo is not a function'));
    expect(status).toBe(500);
    expect(body.error).toMatchObject({ code: 'backend_error' });
  });
});

describe('the health of a deployment', () => {
  const of = (health: () => Promise<unknown>) =>
    TestServer.with({ DIRECTORY: { getByName: () => ({ health }) } }).call('GET', '/health');

  it('names what its objects cannot do for now, and until when', async () => {
    clock.set(T0 + DAY / 2 - 90 * SECOND);
    const used = new Error('Exceeded allowed rows read in Durable Objects free tier.');
    const { status, headers, body } = await of(() => Promise.reject(used));
    expect({ status, after: headers.get('Retry-After') }).toEqual({ status: 503, after: '90' });
    const reason = { code: 'daily_limit_exceeded', message: expect.stringContaining('rows read') };
    expect(body).toMatchObject({ status: 'unhealthy', backend: { status: 'unreachable', reason } });
  });

  it('is not well while writes fail, though reads do not', async () => {
    await answerTo(new Error('Exceeded allowed rows written in Durable Objects free tier.'));
    const workers = { total: 0, active: 0, stale: 0 };
    const well = async () => ({ queues: { total: 1, paused: 0 }, workers });
    const { status, body } = await of(well);
    expect(status).toBe(503);
    expect(body).toMatchObject({ backend: { status: 'limited', reason: { code: 'daily_limit_exceeded' } } });
    clock.advance(DAY);
    expect((await of(well)).status).toBe(200);
  });
});
