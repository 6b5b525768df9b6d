/** Around each file of tests that shares its Worker with others: nothing of theirs is stored, remembered, or set in handler Workers. */
import { reset } from 'cloudflare:test';
import { afterAll, beforeAll, vi } from 'vitest';
import { restoreHandlers } from './handlers';
import { server } from './server';

beforeAll(async () => {
  // The product's own reset reaches every object that it knows of, and this isolate forgets them. The runtime's takes whatever
  // else is in memory, but leaves the storage of objects that were evicted.
  await server.reset();
  await reset();
  await restoreHandlers();
});

afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});
