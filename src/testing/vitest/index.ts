/**
 * Tests of a Worker that holds the queue, with Vitest in the Workers runtime: its queues with a controlled clock, and
 * matchers for them. Importing it adds the matchers to `expect`.
 * @module tocsin/testing/vitest
 */
export * from '../index';
export type { ExpectedJob } from './matchers';

import './matchers';

export { TestQueue, type TestQueueOptions, testQueue } from './queue';
