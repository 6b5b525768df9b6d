/** Around each file of tests that shares its Worker with others: neither its storage nor its memory has anything of theirs. */
import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, vi } from 'vitest';
import { forgetStored } from '../../src/durable/memory';

beforeAll(async () => {
  await reset();
  forgetStored();
});

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});
