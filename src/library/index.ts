/**
 * The queue as a library: a Worker that imports it holds the queue.
 * @module tocsin/queue
 */
export * from '../handler/index';
export { createTocsin, type TocsinDeployment } from './create';
export { Tocsin, TocsinHandlers } from './entrypoints';
export { DirectoryObject, type ObjectClass, QueueObject, UniqueLockObject, WorkflowObject } from './objects';
export type { DeclaredCron, DeclaredLimit, TocsinOptions } from './options';
