/** The queue as a library, without its dashboard. @module tocsin/queue/headless */
export * from '../handler/index';
export { createTocsin, type TocsinDeployment } from './create';
export { Tocsin, TocsinHandlers } from './entrypoints';
export { DirectoryObject, type ObjectClass, QueueObject, UniqueLockObject, WorkflowObject } from './objects';
export type { DeclaredAlert, DeclaredWebhook, Variable } from './observers';
export type { DeclaredCron, DeclaredLimit, TocsinOptions } from './options';
