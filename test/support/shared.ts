/** Around each file of tests that shares its Worker with others: neither its storage nor its memory has anything of theirs. */
import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, vi } from 'vitest';
import { server } from './server';

beforeAll(async () => {
  // The product's own reset reaches every object that it knows of, and this isolate forgets them. The runtime's takes whatever
  // else is in memory, but leaves the storage of objects that were evicted.
  await server.reset();
  await reset();
});

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});
