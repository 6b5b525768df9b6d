/** A worker that pulls says how an attempt failed in the words of a pushed handler, and they mean the same. */
import { describe, expect, it } from 'vitest';
import { clock, SECOND } from '../../../support/clock';
import { type Json, server } from '../../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

/** A job whose first attempt fails so. */
async function failing(error: unknown): Promise<Json> {
  const id = await server.enqueue('q', { options: { retry: { max_attempts: 5, jitter: false } } });
  await server.takeOne('q');
  await server.nack(id, { error });
  return server.job(id);
}

describe('a nack', () => {
  it.each([
    ['retryable: false ends the job', { code: 'e', retryable: false }, { state: 'discarded' }],
    ['kill makes it a dead letter', { code: 'e', kill: true }, { state: 'discarded', dead_letter: true }],
    ['a string is its message', 'no luck', { state: 'retryable', error: { message: 'no luck' } }],
    ['details are kept', { message: 'm', details: { stack: 'at x' } }, { error: { details: { stack: 'at x' } } }],
    ['the first class is the type', { message: 'm', classes: ['A', 'B'] }, { error: { type: 'A' } }],
  ])('in which %s', async (_, error, expected) => {
    expect(await failing(error)).toMatchObject(expected);
  });

  it('that says when, is retried then', async () => {
    expect(await failing({ code: 'e', retry_in: 'PT7S' })).toMatchObject({ retry_delay_ms: 7 * SECOND });
    const at = new Date(Date.now() + 90 * SECOND).toISOString();
    expect(await failing({ code: 'e', retry_at: at })).toMatchObject({ next_attempt_at: at });
  });

  it('whose classes name an error for good ends the job', async () => {
    expect(await failing({ message: 'm', classes: ['Mine', 'UnrecoverableError'] })).toMatchObject({
      state: 'discarded',
    });
  });

  it('of any length is taken, and cut', async () => {
    const long = '€'.repeat(1_000_000);
    const job = await failing({
      code: long,
      type: long,
      message: long,
      classes: Array.from({ length: 200 }, () => 'c'.repeat(1_000)),
    });
    const { code, type, message } = job.error as { code: string; type: string; message: string };
    expect([code.length, type.length, message.length]).toEqual([255, 255, 8192]);
    expect(job).toMatchObject({ state: 'retryable', attempt: 1 });
    expect(await failing(long)).toMatchObject({ error: { message: long.slice(0, 8192) } });
  });
});
