import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJob } from '../../../src/job/envelope/parse';
import { renderJob } from '../../../src/job/envelope/render';
import { writeJob } from '../../../src/job/envelope/write';
import type { JobBody, JobErrorEntry, JobHistory, JobRecord } from '../../../src/job/record';
import { JOB_STATES } from '../../../src/job/states';
import { flatCopyText, withFlatCopy } from '../../../src/ojs/answers';

const NOW = Date.UTC(2026, 0, 1);
const AT = '2026-01-01T00:00:00.000Z';

function recordOf(input: Record<string, unknown>, change: Partial<JobRecord> = {}): JobRecord {
  const { queue, job } = parseJob({ type: 'email.send', args: [], ...input }, { now: NOW });
  return {
    id: '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f',
    queue,
    type: job.type,
    state: 'available',
    priority: job.priority,
    attempt: 0,
    created_at: NOW,
    enqueued_at: NOW,
    body: job.body,
    history: {},
    ...change,
  };
}

const render = (record: JobRecord) => renderJob({ record, layers: {} }, {});

const failure: JobErrorEntry = {
  attempt: 1,
  occurred_at: NOW,
  duration_ms: 40,
  code: 'handler_error',
  type: 'SmtpError',
  message: 'refused',
  backoff_ms: 1000,
  reason: null,
};

describe('an envelope', () => {
  it('of a new job has exactly what is always present', () => {
    expect(render(recordOf({}))).toStrictEqual({
      specversion: '1.0',
      id: '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f',
      type: 'email.send',
      queue: 'default',
      state: 'available',
      args: [],
      meta: {},
      priority: 0,
      attempt: 0,
      max_attempts: 3,
      retry_effective: expect.objectContaining({ max_attempts: 3, max_interval: 'PT5M' }),
      created_at: AT,
      enqueued_at: AT,
    });
  });

  it.each([
    ['2099-12-31T23:59:59Z', '2099-12-31T23:59:59Z'],
    ['2099-12-31T23:59:59.5Z', '2099-12-31T23:59:59.5Z'],
    ['2099-12-31T23:59:59.500Z', '2099-12-31T23:59:59.500Z'],
    ['2099-12-31T23:59:59+01:00', '2099-12-31T22:59:59.000Z'],
    ['+PT1H', '2026-01-01T01:00:00.000Z'],
  ])('shows the expiry %s as %s: a UTC time stays as it was written', (written, shown) => {
    expect(render(recordOf({ expires_at: written })).expires_at).toBe(shown);
  });

  it('shows an expiry that was changed later, not the one that was written', () => {
    const record = recordOf({ expires_at: '2099-12-31T23:59:59Z' });
    const body = JSON.stringify({ ...JSON.parse(record.body), expires_at: NOW });
    expect(render({ ...record, body }).expires_at).toBe(AT);
  });

  it('shows the policy as written and the effective one, through all layers', () => {
    const record = recordOf({ retry: { initial_interval: '5s' }, max_attempts: 7 });
    const envelope = renderJob(
      { record, layers: { queue: { max_interval: 'PT1H', max_attempts: 4 } } },
      { DEFAULT_RETRY_LIMIT: '9' },
    );
    expect(envelope.retry).toEqual({ initial_interval: '5s' });
    expect(envelope.max_attempts).toBe(7);
    expect(envelope.retry_effective).toMatchObject({ max_attempts: 7, initial_interval: 'PT5S', max_interval: 'PT1H' });
  });

  it('of a failed job shows the failure and when it runs again', () => {
    const history: JobHistory = { error: failure, errors: [failure], started_at: NOW, retry_delay_ms: 1000 };
    const envelope = render(recordOf({}, { state: 'retryable', attempt: 1, due_at: NOW + 1000, history }));
    expect(envelope).toMatchObject({
      error: { code: 'handler_error', type: 'SmtpError', attempt: 1, occurred_at: AT, duration_ms: 40 },
      errors: [{ backoff_ms: 1000, reason: null }],
      retry_delay_ms: 1000,
      next_attempt_at: '2026-01-01T00:00:01.000Z',
    });
  });

  it('of a completed job keeps the history of errors but not the last error', () => {
    const history: JobHistory = { error: failure, errors: [failure], completed_at: NOW };
    const envelope = render(recordOf({}, { state: 'completed', history, result: '{"ok":true}' }));
    expect(envelope).not.toHaveProperty('error');
    expect(envelope).toMatchObject({ errors: [{ attempt: 1 }], completed_at: AT, result: { ok: true } });
  });

  it('lets no unknown member shadow a known one', () => {
    const record = recordOf({ x_a: 1 });
    const body = { ...JSON.parse(record.body), extra: { x_a: 1, state: 'completed' } };
    expect(render({ ...record, body: JSON.stringify(body) })).toMatchObject({ x_a: 1, state: 'available' });
  });

  it('writes a member named __proto__ as an ordinary one', () => {
    const input = JSON.parse('{"__proto__":{"polluted":1}}') as Record<string, unknown>;
    const envelope = render(recordOf(input));
    expect(JSON.stringify(envelope)).toContain('"__proto__":{"polluted":1}');
    expect(Reflect.get(envelope, 'polluted')).toBeUndefined();
  });

  it('is copied beside itself, without the members of the application and below those of the answer', () => {
    const input = { meta: { a: 1 }, x_note: 'own', job: 'own', warnings: 'own' };
    const envelope = render(recordOf(input, { progress: 0.5 }));
    const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>;
    const { x_note: _, job: __, warnings: ___, ...copy } = plain(envelope);
    const answer = plain(withFlatCopy(envelope, { state: 'told' }));
    expect(answer).toEqual({ ...copy, state: 'told', job: plain(envelope) });
  });

  it('never holds an undefined, a null time or an empty text of its own, in any state', () => {
    const time = fc.option(fc.integer({ min: 0, max: 4e12 }), { nil: undefined });
    fc.assert(
      fc.property(fc.constantFrom(...JOB_STATES), time, time, time, time, (state, started, ended, due, delay) => {
        const history = Object.fromEntries(
          Object.entries({ started_at: started, completed_at: ended, retry_delay_ms: delay }).filter(
            ([, value]) => value !== undefined,
          ),
        ) as JobHistory;
        const record = recordOf({}, { state, history, ...(due !== undefined && { due_at: due }) });
        for (const [name, value] of Object.entries(render(record))) {
          expect([undefined, null, '']).not.toContain(value);
          if (name.endsWith('_at')) expect(value).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        }
      }),
    );
  });

  it('gives back what was sent', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()), (args, meta) => {
        const sent = JSON.parse(JSON.stringify({ args, meta })) as { args: unknown[]; meta: Record<string, unknown> };
        const envelope = render(recordOf(sent));
        expect(JSON.stringify([envelope.args, envelope.meta])).toBe(JSON.stringify([sent.args, sent.meta]));
      }),
    );
  });
});

describe('an envelope that is written', () => {
  const text = (record: JobRecord, timeoutMs?: number) =>
    writeJob({ record, layers: {} }, {}, JSON.parse(record.body) as JobBody, undefined, timeoutMs);
  /** Of a job whose body nobody has parsed. */
  const spliced = (record: JobRecord, timeoutMs?: number) =>
    writeJob({ record, layers: {} }, {}, undefined, undefined, timeoutMs);

  it('is the one that is rendered, whatever the job says and however it has fared', () => {
    // What the places of args and meta in the text could be mistaken for.
    const lookalike = fc.constantFrom<unknown>(
      ...[
        ',"meta":{',
        ',"meta":{}}',
        '"args":[]',
        '\\\\",\\"meta\\":{',
        { meta: {} },
        { args: [], meta: { meta: {} } },
        [{ meta: { a: 1 } }],
      ],
    );
    const hostile = fc.oneof(fc.jsonValue(), lookalike, fc.array(lookalike), fc.dictionary(fc.string(), lookalike));
    const said = fc.record(
      {
        args: fc.array(hostile),
        meta: fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('meta', 'args', '__proto__', '1')), hostile),
        options: fc.record(
          { priority: fc.integer({ min: -100, max: 100 }), tags: fc.constantFrom(['a'], ['"args":[]', ',"meta":{']) },
          { requiredKeys: [] },
        ),
        x_more: hostile,
        scheduled_at: fc.constant('+PT1H'),
      },
      { requiredKeys: ['args'] },
    );
    const fared = fc.record<Partial<JobRecord>>(
      {
        state: fc.constantFrom(...JOB_STATES),
        attempt: fc.integer({ min: 0, max: 9 }),
        history: fc.constantFrom<JobHistory>({}, { started_at: NOW }, { error: failure, errors: [failure] }),
        worker_id: fc.string(),
        delivery_id: fc.constant('some-1'),
        due_at: fc.constantFrom(NOW + 5, NOW + 3_600_000),
        checkpoint: fc.constant({ state: { page: 2 }, sequence: 3 }),
      },
      { requiredKeys: ['state', 'attempt', 'history'] },
    );
    fc.assert(
      fc.property(said, fared, fc.option(fc.nat(), { nil: undefined }), (input, change, timeout_ms) => {
        const record = recordOf(JSON.parse(JSON.stringify(input)), change);
        const rendered = { ...render(record), ...(timeout_ms !== undefined && { timeout_ms }) };
        expect(JSON.parse(text(record, timeout_ms))).toStrictEqual(JSON.parse(JSON.stringify(rendered)));
        expect(JSON.parse(spliced(record, timeout_ms))).toStrictEqual(JSON.parse(JSON.stringify(rendered)));
        if ('x_more' in input) return;
        for (const own of [{}, { warnings: ['"},{'] }]) {
          const flat = flatCopyText(spliced(record, timeout_ms), own);
          expect(JSON.parse(flat)).toStrictEqual(JSON.parse(JSON.stringify(withFlatCopy(rendered, own))));
        }
      }),
    );
  });

  it('has the payload as it is stored', () => {
    const body = '{"type":"email.send","args":[12345678901234567890, "\\u00e9"],"meta":{}}';
    expect(text(recordOf({}, { body }))).toContain('"args":[12345678901234567890, "\\u00e9"],"meta":{},');
  });

  it('takes the text of another shape for what it is', () => {
    const body = '{"args":[1],"type":"email.send","meta":{"type":"email.send","args":[2]}}';
    const record = recordOf({}, { body });
    expect(JSON.parse(text(record))).toStrictEqual(JSON.parse(JSON.stringify(render(record))));
    expect(JSON.parse(spliced(record))).toStrictEqual(JSON.parse(JSON.stringify(render(record))));
  });

  it('of a job with options has its arguments as they are stored, too', () => {
    const body = '{"type":"email.send","args":[12345678901234567890],"meta":{"n":98765432109876543210},"tags":["a"]}';
    expect(spliced(recordOf({}, { body }))).toContain(
      '"args":[12345678901234567890],"meta":{"n":98765432109876543210},',
    );
  });

  it('of a body that cannot be read is that of a job without arguments', () => {
    for (const body of ['', '{', '{"type":"email.send","args":[1', '{"type":"email.send","args":[1],"meta":{']) {
      expect(JSON.parse(spliced(recordOf({}, { body }))), body).toMatchObject({ args: [], meta: {} });
    }
  });
});
