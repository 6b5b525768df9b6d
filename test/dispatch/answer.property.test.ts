import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { failureOfStatus, readBatchAnswer, readSingleAnswer } from '../../src/dispatch/answer';
import { readLine } from '../../src/dispatch/run-messages';
import type { HandlerAnswer } from '../../src/dispatch/target';
import { boundedError } from '../../src/job/attempt/bounded-error';
import type { AttemptOutcome } from '../../src/job/attempt/outcome';
import { usableError } from '../../src/job/attempt/read-outcome';
import { MAX_RESULT_BYTES } from '../../src/job/envelope/names';
import { decideFailure } from '../../src/job/retry/decide';
import { resolveRetry } from '../../src/job/retry/resolve';

const NOW = 1_700_000_000_000;

const member = fc.constantFrom(
  ...['status', 'result', 'error', 'results', 'delivery_id', 'code', 'type', 'message', 'retryable', 'details'],
  ...['classes', 'kill', 'retry_in', 'retry_at', '__proto__', 'constructor', 'toString', 'stack'],
  ...['in', 'until', 'signal', 'steps', 'log', 'progress', 'checkpoint', 'enqueue', 'step', 'name', 'call', 'at'],
);
const word = fc.constantFrom(
  'completed',
  'failed',
  'snoozed',
  'again',
  'info',
  'DISCARD',
  'retry',
  'PT1S',
  '2020-01-01T00:00:00Z',
  'del_1',
  '',
  '-1',
);
/** JSON that looks like an answer often enough to reach every branch. */
const value: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.jsonValue(),
    word,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(member, tie('value'), { maxKeys: 5 }),
  ),
})).value;
const body = fc.oneof(
  value.map((json) => JSON.stringify(json) ?? ''),
  fc.string(),
  fc.string({ unit: 'binary' }),
);
const answer: fc.Arbitrary<HandlerAnswer> = fc.record({
  status: fc.oneof(fc.integer({ min: 200, max: 599 }), fc.constantFrom(200, 429, 503, 404)),
  retryAfter: fc.option(fc.oneof(fc.string(), word, fc.integer().map(String), fc.constant('1e400'))),
  body,
});
const ids = fc.uniqueArray(fc.constantFrom('del_1', 'del_2', 'del_3', '__proto__', ''), { minLength: 1 });

function expectOutcome(outcome: AttemptOutcome | undefined): void {
  if (outcome?.kind === 'completed') {
    if (outcome.result !== undefined) expect(() => JSON.parse(outcome.result as string)).not.toThrow();
    return;
  }
  if (outcome?.kind === 'released') return;
  if (outcome?.kind === 'snoozed') {
    const { in: after = 0, until = 0, signal } = outcome.snooze;
    for (const time of [after, until]) expect(Number.isSafeInteger(time) && time >= 0).toBe(true);
    expect(signal?.length ?? 1).toBeGreaterThan(0);
    for (const record of Object.values(JSON.parse(outcome.steps ?? '{}')))
      expect(Object.keys(record as object)).toHaveLength(1);
    return;
  }
  expect(outcome?.kind).toBe('failed');
  if (outcome?.kind !== 'failed') return;
  const { error: failure } = outcome;
  for (const name of ['code', 'type', 'message'] as const) {
    expect(['string', 'undefined']).toContain(typeof failure[name]);
  }
  expect(['boolean', 'undefined']).toContain(typeof failure.retryable);
  if (failure.at_least_ms !== undefined) expect(failure.at_least_ms).toBeGreaterThanOrEqual(0);
  // What an answer leads to can always be decided.
  const decision = decideFailure(resolveRetry({}), failure, 1, { now: NOW, random: () => 0.5, jobId: 'x' });
  if (decision.outcome === 'retry') expect(Number.isSafeInteger(decision.run_at)).toBe(true);
}

describe('any answer', () => {
  it('to a single delivery has exactly one outcome', () => {
    fc.assert(fc.property(answer, (given) => expectOutcome(readSingleAnswer(given, NOW))));
  });

  it('to a batch gives every delivery, and no one else, exactly one outcome', () => {
    fc.assert(
      fc.property(answer, ids, (given, deliveries) => {
        const outcomes = readBatchAnswer(given, deliveries, NOW);
        expect([...outcomes.keys()].sort()).toEqual([...deliveries].sort());
        for (const outcome of outcomes.values()) expectOutcome(outcome);
      }),
    );
  });

  it('with well-formed results gives each delivery its own', () => {
    const result = fc.oneof(
      fc.record({ status: fc.constant('completed'), result: fc.jsonValue() }),
      fc.record({
        status: fc.constant('failed'),
        error: fc.record({ code: fc.string({ minLength: 1 }), message: fc.string() }),
      }),
    );
    fc.assert(
      fc.property(fc.array(result, { maxLength: 20 }), fc.array(value), (results, noise) => {
        const entries = results.map((entry, n) => ({ delivery_id: `d${n}`, ...entry }));
        const given = { status: 200, retryAfter: null, body: JSON.stringify({ results: [...noise, ...entries] }) };
        const outcomes = readBatchAnswer(given, [...entries.map(({ delivery_id }) => delivery_id), 'left out'], NOW);
        for (const entry of entries) {
          const outcome = outcomes.get(entry.delivery_id);
          expect(outcome?.kind).toBe(entry.status);
          if (outcome?.kind === 'failed' && 'error' in entry) expect(outcome.error).toMatchObject(entry.error);
        }
        expect(outcomes.get('left out')).toMatchObject({ kind: 'failed', error: { code: 'invalid_response' } });
      }),
    );
  });
});

describe('any line of an answer that is said as it goes', () => {
  it('says one thing about one delivery, or nothing', () => {
    const text = fc.oneof(
      body,
      value.map((json) => JSON.stringify({ delivery_id: 'del_1', call: 1, step: json, progress: json })),
      fc.dictionary(member, value, { maxKeys: 5 }).map((json) => JSON.stringify({ delivery_id: 'del_1', ...json })),
      fc
        .dictionary(member, value, { maxKeys: 3 })
        .map((json) => JSON.stringify({ delivery_id: 'del_1', call: 7, ...json, ...{ status: undefined } })),
    );
    fc.assert(
      fc.property(text, fc.boolean(), (line, isWhole) => {
        const heard = readLine({ text: line, isWhole }, NOW);
        if (!heard) return;
        expect(typeof heard.id).toBe('string');
        if (heard.kind === 'outcome') expectOutcome(heard.outcome);
        if (heard.kind === 'wrong')
          expect(heard.error).toMatchObject({ code: expect.any(String), status: expect.any(Number) });
        if (heard.kind === 'log') for (const { message } of heard.lines) expect(typeof message).toBe('string');
      }),
    );
  });
});

describe('the status of an answer', () => {
  it('outside 2xx is never a success, whatever the body says', () => {
    fc.assert(
      fc.property(fc.integer({ min: 300, max: 599 }), body, (status, text) => {
        expect(readSingleAnswer({ status, retryAfter: null, body: text }, NOW).kind).toBe('failed');
      }),
    );
  });

  it('decides about retrying unless the body does', () => {
    const retried = [408, 425, 429, 500, 501, 599];
    const refused = [401, 403, 404, 405];
    for (let status = 300; status < 600; status++) {
      const failure = failureOfStatus({ status, retryAfter: null, body: '' }, NOW);
      expect([status, failure.retryable]).toEqual([status, retried.includes(status) || status >= 500]);
      expect([status, failure.target_rejected === true]).toEqual([status, refused.includes(status)]);
    }
  });
});

describe('a result', () => {
  const read = (result: string) =>
    readSingleAnswer({ status: 200, retryAfter: null, body: JSON.stringify({ status: 'completed', result }) }, NOW);

  it('is kept up to 1 MiB of JSON, counted in bytes', () => {
    expect(read('x'.repeat(MAX_RESULT_BYTES - 2)).kind).toBe('completed');
    for (const large of ['x'.repeat(MAX_RESULT_BYTES - 1), 'ü'.repeat(MAX_RESULT_BYTES / 2)]) {
      expect(read(large)).toMatchObject({ kind: 'failed', error: { code: 'result_too_large', retryable: false } });
    }
  });
});

describe('an error', () => {
  it('keeps what is usable and drops the rest', () => {
    expect(usableError('gone')).toEqual({ code: 'handler_error', message: 'gone' });
    expect(usableError(null)).toEqual({ code: 'handler_error', message: '' });
    expect(usableError({ code: 1, type: 't', classes: ['A', 2, 'B'], kill: 'yes', retryable: 0 })).toEqual({
      type: 't',
      classes: ['A', 'B'],
    });
  });
});

describe('what an answer says that nests too deeply to be stored', () => {
  const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  const answered = (entry: string): HandlerAnswer =>
    ({ status: 200, body: entry, isCut: false, retryAfter: null }) as HandlerAnswer;
  const said = (members: string) => readSingleAnswer(answered(`{"status":"completed",${members}}`), NOW);

  it.each([
    ['half of an emoji', '{"text":"\\ud83d"}', 'result_not_text'],
    ['a number beyond doubles', '[1e400]', 'result_out_of_range'],
  ])('with %s fails its own job, as the report of a worker does', (_, result, code) => {
    const unkept = { kind: 'failed', error: { code, type: code, retryable: false } };
    expect(said(`"result":${result}`)).toMatchObject(unkept);
    const batch = `{"results":[{"delivery_id":"a","status":"completed","result":${result}},{"delivery_id":"b","status":"completed","result":1}]}`;
    const outcomes = readBatchAnswer(answered(batch), ['a', 'b'], NOW);
    expect(outcomes.get('a')).toMatchObject(unkept);
    expect(outcomes.get('b')).toEqual({ kind: 'completed', result: '1' });
  });

  it.each([101, 3_000, 100_000])('is refused, and never treated as a success: %s levels', (levels) => {
    const deep = nested(levels);
    const tooDeep = { kind: 'failed', error: { code: 'result_too_deep', retryable: false } };
    expect(said(`"result":${deep}`)).toMatchObject(tooDeep);
    // With a number that only a text keeps exactly.
    expect(said(`"result":${deep},"other":12345678901234567890`)).toMatchObject(tooDeep);
    const batch = `{"results":[{"delivery_id":"a","status":"completed","result":${deep}},{"delivery_id":"b","status":"completed","result":1}]}`;
    const outcomes = readBatchAnswer(answered(batch), ['a', 'b'], NOW);
    expect(outcomes.get('a')).toMatchObject(tooDeep);
    expect(outcomes.get('b')).toEqual({ kind: 'completed', result: '1' });
    const refused = { kind: 'failed', error: { code: 'invalid_request' } };
    expect(said(`"checkpoint":${deep}`)).toMatchObject(refused);
    expect(said(`"steps":{"a":{"result":${deep}}}`)).toMatchObject(refused);
    expect(said(`"progress":{"progress":1,"data":{"a":${deep}}}`)).toMatchObject(refused);
    const log = said(`"log":[{"message":"x","fields":{"a":${deep}}}]`);
    expect(log.log).toMatchObject([{ message: 'x', fields: { truncated: true } }]);
    const line = (call: string) => readLine({ text: `{"delivery_id":"a","call":1,${call}}`, isWhole: true }, NOW);
    expect(line(`"step":{"name":"a","result":${deep}}`)).toMatchObject({ kind: 'wrong' });
    expect(line(`"checkpoint":${deep}`)).toMatchObject({ kind: 'wrong' });
    expect(line(`"progress":{"progress":1,"data":{"a":${deep}}}`)).toMatchObject({ kind: 'wrong' });
    const told = readSingleAnswer(answered(`{"status":"failed","error":{"message":"no","details":${deep}}}`), NOW);
    expect(boundedError((told as { error: object }).error)).toMatchObject({
      message: 'no',
      details: { truncated: true, max_depth: 100 },
    });
  });

  it('is kept up to 100 levels', () => {
    expect(said(`"result":${nested(100)}`)).toEqual({ kind: 'completed', result: nested(100) });
  });
});
