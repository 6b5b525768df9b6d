import { describe, expect, it } from 'vitest';
import { pseudonyms, readRedactionRules, redactor } from '../../src/access/redaction';

const shown = (rules: string, answer: unknown) => redactor(readRedactionRules(rules.split(' ')))(answer);
const args = (rules: string, value: unknown) => (shown(rules, { args: value }) as { args: unknown }).args;
const X = '[redacted]';

describe('a rule', () => {
  it('that is a name replaces every member of this name, however deep, in any case', () => {
    expect(args('password', [{ user: 'a', Password: 'p', deep: [{ list: [{ PASSWORD: [1, 2] }] }] }])).toEqual([
      { user: 'a', Password: X, deep: [{ list: [{ PASSWORD: X }] }] },
    ]);
    expect(args('password', [{ passwords: 1, pass: 2 }])).toEqual([{ passwords: 1, pass: 2 }]);
  });

  it('that is a path replaces what lies there, at any depth', () => {
    const card = { number: 1, holder: { number: 2 } };
    expect(args('card.number', [{ card, number: 3, deep: { card } }])).toEqual([
      { card: { number: X, holder: { number: 2 } }, number: 3, deep: { card: { number: X, holder: { number: 2 } } } },
    ]);
    expect(args('card.*', [{ card, number: 3 }])).toEqual([{ card: { number: X, holder: X }, number: 3 }]);
    expect(args('card.*.number', [{ card }])).toEqual([{ card: { number: 1, holder: { number: X } } }]);
    expect(args('a.a.b', [{ a: { a: { a: { b: 1 } } } }])).toEqual([{ a: { a: { a: { b: X } } } }]);
  });

  it('passes over the places of arrays, or names them', () => {
    const value = [{ cards: [{ number: 1 }, { number: 2 }] }, 'plain'];
    expect(args('args.cards.number', value)).toEqual([{ cards: [{ number: X }, { number: X }] }, 'plain']);
    expect(args('cards.1.number', value)).toEqual([{ cards: [{ number: 1 }, { number: X }] }, 'plain']);
    expect(args('args.1', value)).toEqual([{ cards: [{ number: 1 }, { number: 2 }] }, X]);
    expect(args('args.0.cards.0', value)).toEqual([{ cards: [X, { number: 2 }] }, 'plain']);
  });

  it('that is the name of a payload hides it and keeps its form', () => {
    const answer = { id: 'j', args: ['a', { b: 1 }], meta: { user: 'u' }, result: 42, progress_data: null };
    expect(shown('args meta result progress_data', answer)).toEqual({
      id: 'j',
      args: [X, X],
      meta: { user: X },
      result: X,
      progress_data: null,
    });
  });
});

describe('what is replaced', () => {
  it('is what applications and handlers say, wherever it lies', () => {
    const secret = { s: 1, open: 2 };
    const hidden = { s: X, open: 2 };
    const steps = (value: unknown) => ({ s: { result: value }, wait: { signal: { payload: value, at: 1 } } });
    const answer = (value: unknown) => ({
      jobs: [{ args: [value], meta: value, result: value, parent_results: [value], steps: steps(value) }],
      items: [{ data: { job_id: 'j', result: value } }, { progress: 0.5, data: value }],
      lines: [{ message: 's', fields: value }],
      checkpoint: { state: value, sequence: 1 },
      state: value,
      job_template: { type: 't', args: [value], options: { meta: value } },
    });
    expect(shown('s', answer(secret))).toEqual(answer(hidden));
  });

  it('is never what the protocol says', () => {
    const answer = {
      job: { id: 'j', type: 't', queue: 'q', state: 'active', attempt: 1, args: [] },
      pagination: { total: 1 },
      data: [{ timestamp: 't', failed: 1 }],
    };
    expect(shown('id type queue state attempt total timestamp failed job data *', answer)).toEqual(answer);
  });

  it('are texts and details of errors, not their code', () => {
    const error = { code: 'E', type: 'T', message: 'm', stack: 's', details: { card: 4, ok: 1 }, attempt: 1 };
    expect(shown('card', { error, errors: [error] })).toEqual({
      error: { ...error, details: { card: X, ok: 1 } },
      errors: [{ ...error, details: { card: X, ok: 1 } }],
    });
    expect(shown('error.stack code', { error })).toEqual({ error: { ...error, stack: X } });
    expect(shown('error', { errors: [error] })).toEqual({
      errors: [{ ...error, message: X, stack: X, details: X }],
    });
    const failure = { event_type: 'job.attempt_failed', data: { code: 'E', message: 'm' } };
    expect(shown('error.message', { retries: [{ error: 'm' }], events: [failure] })).toEqual({
      retries: [{ error: X }],
      events: [{ ...failure, data: { code: 'E', message: X } }],
    });
  });
});

describe('durable steps', () => {
  const secret = { password: 'p', plain: 1 };
  const hidden = { password: X, plain: 1 };

  it.each(['error', 'errors', 'sample', 'state', 'data', 'progress', 'steps', 'change', 'charge', 'args'])(
    'hide what they hold, also one that is called %s',
    (name) => {
      const steps = {
        progress: { result: 1 },
        [name]: { result: secret },
        ended: { error: secret },
        told: { signal: { payload: secret, at: 1 } },
      };
      expect(shown('password', { job_id: 'j', steps })).toEqual({
        job_id: 'j',
        steps: {
          progress: { result: 1 },
          [name]: { result: hidden },
          ended: { error: hidden },
          told: { signal: { payload: hidden, at: 1 } },
        },
      });
      expect(shown('result', { steps: { [name]: { result: 'x' } } })).toEqual({ steps: { [name]: { result: X } } });
    },
  );
});

describe('a change that was stored as text', () => {
  it('is not shown to a key that may not see all of it', () => {
    const entry = { action: 'job.patch', change: { truncated: true, text: '{"args":[{"password":"p' }, status: 200 };
    expect(shown('password', { entries: [entry] })).toEqual({
      entries: [{ ...entry, change: { truncated: true, text: X } }],
    });
  });
});

describe('hostile names', () => {
  it('are names like any other', () => {
    const value = JSON.parse('[{"__proto__": {"password": 1, "a": 2}, "constructor": {"prototype": 3}, "": {"": 4}}]');
    const text = JSON.stringify(args('password constructor.prototype', value));
    expect(text).toBe(
      '[{"__proto__":{"password":"[redacted]","a":2},"constructor":{"prototype":"[redacted]"},"":{"":4}}]',
    );
    expect(JSON.stringify(args('__proto__', value))).toContain('"__proto__":"[redacted]"');
    expect(({} as { password?: unknown }).password).toBeUndefined();
  });

  it('leave what is given as it is', () => {
    const answer = Object.freeze({ args: Object.freeze([Object.freeze({ password: 1 })]) });
    shown('password', answer);
    expect(answer.args[0]).toEqual({ password: 1 });
  });

  it.each(['', 'a..b', '.a', 'a b', 'pass*', 'a.b*', 'x'.repeat(300), Array(20).fill('a').join('.')])(
    'a rule cannot be %j',
    (rule) => {
      expect(() => readRedactionRules([rule])).toThrow('must be names joined by dots');
    },
  );
});

describe('the rules for what says whose a job is', () => {
  const of = (text: string) => pseudonyms('')(text);

  it('replace tags of jobs, in templates and in the audit log too, by pseudonyms', () => {
    const answer = (tags: unknown, tag: unknown) => ({
      job: { tags, job_template: { options: { tags } } },
      items: [{ action: 'jobs.cancel', filter: { tag, queue: 'q' }, change: { tags } }],
    });
    expect(shown('tags', answer(['a', 'b'], 'a'))).toEqual(answer([of('a'), of('b')], of('a')));
    expect(shown('tags', { tags: null, args: [{ tags: ['a'] }] })).toEqual({ tags: null, args: [{ tags: X }] });
    expect(shown('rate_limit.key', answer(['a'], 'a'))).toEqual(answer(['a'], 'a'));
  });

  it('replace the keys of limits, in texts only where they are named as keys', () => {
    const answer = (key: string) => ({
      rate_limit: { key, rate: 1 },
      waiting_for: {
        reason: 'key_limit',
        detail: `It waits for a place under the key ${key}. DELETE /rate-limits/${key}/override.`,
        key,
      },
      items: [
        { action: 'limit.override', target: key },
        { action: 'queue.pause', target: 'a' },
      ],
    });
    expect(shown('rate_limit.key', answer('a'))).toEqual(answer(of('a')));
    expect(shown('tags', answer('a'))).toEqual(answer('a'));
  });

  it.each(['group', 'rate_limit.key'])('replace the groups of jobs under %s, not those of schedules', (rule) => {
    const answer = (group: string) => ({
      job: {
        group,
        waiting_for: { reason: 'group', detail: `An earlier job of the group "${group}", x, runs.`, group },
      },
      items: [{ group, waiting: 1 }],
      cron: { name: 'a', cron: '0 3 * * *', group: 'a', job_template: { options: { group } } },
      change: { filter: { group } },
    });
    expect(shown(rule, answer('a'))).toEqual(answer(of('a')));
    expect(shown('tags', answer('a'))).toEqual(answer('a'));
  });

  it('hide all that an object of an earlier release says of a group', () => {
    const answer = (detail: string) => ({ waiting_for: { reason: 'group_paused', detail } });
    expect(shown('group', answer('An operator has paused the group "a".'))).toEqual(answer(X));
  });

  it.each([{ reason: 5 }, { reason: 'group', group: null }, { key: 1, detail: {} }])('take %j for no wait', (said) => {
    for (const rule of ['group', 'rate_limit.key']) {
      expect(shown(rule, { waiting_for: said, rate_limit: said })).toEqual({ waiting_for: said, rate_limit: said });
    }
  });

  it('are not mixed up with other rules, whatever those end with', () => {
    const answer = { tags: ['a'], rate_limit: { key: 'k' } };
    expect(shown('key * job.tags args.tags', answer)).toEqual(answer);
  });

  it('make the same pseudonym of the same text, and others with another secret', () => {
    expect(of('a')).toMatch(/^\[redacted:[0-9a-f]{12}\]$/);
    expect(of('b')).not.toBe(of('a'));
    expect(pseudonyms('other')('a')).not.toBe(of('a'));
  });
});
