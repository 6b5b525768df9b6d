import type { DurableObject } from 'cloudflare:workers';
import { DirectoryObject as Directory } from '../directory/object';
import { UniqueLockObject as UniqueLock } from '../locks/object';
import { QueueObject as Queue } from '../queue/object';
import { WorkflowObject as Workflow } from '../workflow/object';

export type ObjectClass = new (ctx: DurableObjectState, env: never) => DurableObject<unknown>;

/** One for each queue: its jobs. */
export const QueueObject: ObjectClass = Queue;
/** Knows which queues there are. */
export const DirectoryObject: ObjectClass = Directory;
/** Keeps jobs unique that are unique over several queues. */
export const UniqueLockObject: ObjectClass = UniqueLock;
/** One for each workflow. */
export const WorkflowObject: ObjectClass = Workflow;
