import { describe, expect, it } from 'vitest';
import { defineHandlers } from '../../src/handler';
import { Registry } from '../../src/handler/registry';

const run = () => undefined;

describe('a mistake in the handlers is a TypeError that names the type', () => {
  it.each<[string, unknown]>([
    ['an upper-case type name', { 'Email.Send': run }],
    ['a type name with an empty part', { 'email..send': run }],
    ['a type name of 256 characters', { ['a'.repeat(256)]: run }],
    ['a handler that is a string', { 'email.send': 'run' }],
    ['a handler that is null', { 'email.send': null }],
    ['a definition without handler', { 'email.send': { timeoutMs: 5 } }],
    ['an unknown option', { 'email.send': { handler: run, timeout: 5 } }],
    ['a negative timeout', { 'email.send': { handler: run, timeoutMs: -1 } }],
    ['a timeout above 15 minutes', { 'email.send': { handler: run, timeoutMs: 900_001 } }],
    ['a fraction of an attempt', { 'email.send': { handler: run, maxAttempts: 1.5 } }],
    ['another answer to drift', { 'email.send': { handler: run, onDrift: 'ignore' } }],
    ['a concurrency of 0', { 'email.send': { handler: run, concurrency: 0 } }],
    ['a retry policy that is a number', { 'email.send': { handler: run, retry: 3 } }],
    ['an unknown policy field', { 'email.send': { handler: run, retry: { attempts: 3 } } }],
    ['two maximums of attempts', { 'email.send': { handler: run, maxAttempts: 3, retry: { maxAttempts: 4 } } }],
    ['a policy that is not JSON', { 'email.send': { handler: run, retry: { max_attempts: 3n } } }],
  ])('%s', (_, handlers) => {
    const [type] = Object.keys(handlers as object);
    expect(() => new Registry(handlers)).toThrow(TypeError);
    expect(() => new Registry(handlers)).toThrow(JSON.stringify(type));
  });

  it.each([[undefined], [null], ['handlers'], [[]], [{}]])('%j instead of handlers', (handlers) => {
    expect(() => new Registry(handlers)).toThrow(TypeError);
  });

  it('an unknown option of the Worker is named', () => {
    const options = { fetch: () => new Response(), basePath: '/x' };
    expect(() => defineHandlers(run, options)).toThrow(/basePath/);
  });
});

describe('a correct definition', () => {
  it('takes settings at the ends of their ranges', () => {
    const entry = { handler: run, timeoutMs: 900_000, maxAttempts: 0, concurrency: 1 };
    expect(new Registry({ 'a_b.c-d': entry }).announcement().types).toEqual([
      { type: 'a_b.c-d', timeout_ms: 900_000, max_attempts: 0, concurrency: 1 },
    ]);
  });

  it('ignores settings that are undefined', () => {
    const entry = { handler: run, timeoutMs: undefined, retry: undefined, other: undefined };
    expect(new Registry({ a: entry }).announcement().types).toEqual([{ type: 'a' }]);
  });

  it('announces the policy as it was when the module loaded', () => {
    const retry = { maxAttempts: 3, on_crash: 'retry' };
    const registry = new Registry({ a: { handler: run, retry } });
    retry.maxAttempts = 9;
    expect(registry.announcement().types).toEqual([{ type: 'a', retry: { max_attempts: 3, on_crash: 'retry' } }]);
  });
});
