/** Typed stubs of the Durable Objects. Getting one creates nothing. */
import type { Env } from '../config';
import type { DirectoryApi } from './directory';
import type { IdsApi } from './ids';
import type { UniqueLockApi } from './locks';
import type { QueueApi } from './queue';
import type { WorkflowApi } from './workflow';

/** The object of one queue. */
export function queueObject(env: Env, name: string): QueueApi {
  return env.QUEUES.getByName(name) as unknown as QueueApi;
}

/** The object that knows which queues exist. */
export function directoryObject(env: Env): DirectoryApi {
  return env.DIRECTORY.getByName('directory') as unknown as DirectoryApi;
}

/** The shard of the directory with this name. */
export function idShard(env: Env, name: string): IdsApi {
  return env.DIRECTORY.getByName(name) as unknown as IdsApi;
}

/** The object of one workflow. */
export function workflowObject(env: Env, id: string): WorkflowApi {
  return env.WORKFLOWS.getByName(id) as unknown as WorkflowApi;
}

/** The lock object with this name. */
export function lockObject(env: Env, name: string): UniqueLockApi {
  return env.UNIQUE_LOCKS.getByName(name) as unknown as UniqueLockApi;
}
