/**
 * Tests of a Worker that holds the queue, with Vitest in the Workers runtime; importing it adds matchers to `expect`.
 * @module tocsin/testing/vitest
 */
export * from '../index';
export type { ExpectedJob } from './matchers';

import './matchers';

export { TestQueue, type TestQueueOptions, testQueue } from './queue';
