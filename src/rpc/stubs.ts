/**
 * Typed stubs of the Durable Objects. Getting one creates nothing. A Worker that holds the queue needs no bindings for
 * them: the runtime offers the classes that it exports. A binding leads to the same objects.
 */
import { exports } from 'cloudflare:workers';
import { type DataLocation, type Env, locationOf } from '../config';
import { isMissingMethod } from '../durable/platform-errors';
import { ApiError, invalidConfiguration } from '../job/errors';
import { type AllowanceApi, DESK_PREFIX } from './allowances';
import { noteAwake } from './awake-queues';
import type { DirectoryApi } from './directory';
import type { UniqueLockApi } from './locks';
import type { QueueApi } from './queue';
import type { WorkflowApi } from './workflow';

/** The names of the directory's object, and of the one that looks after it. */
export const DIRECTORY = 'directory';
export const LOOKOUT = 'lookout';

/** The classes of objects, by the binding that may lead to them. */
const CLASSES = {
  QUEUES: 'QueueObject',
  DIRECTORY: 'DirectoryObject',
  UNIQUE_LOCKS: 'UniqueLockObject',
  WORKFLOWS: 'WorkflowObject',
} as const;

/**
 * The object of this name, in the place of the deployment. Its class answers what `Api` says. No other code makes
 * objects of names: one of another place would be another object.
 * @throws {ApiError} 500 `invalid_configuration` when the Worker does not export the class, or there are no places
 */
function named<Api = DurableObjectStub>(
  env: Env,
  binding: keyof typeof CLASSES,
  name: string,
  location: DataLocation | '' | undefined = locationOf(env),
): Api {
  const bound = env[binding] ?? (Reflect.get(exports, CLASSES[binding]) as DurableObjectNamespace | undefined);
  if (typeof bound?.getByName === 'function') return within(bound, location).getByName(name) as Api;
  const missing = CLASSES[binding];
  throw invalidConfiguration(
    `The Worker must export ${missing}, and name it in new_sqlite_classes of its migrations.`,
    { missing: [missing] },
  );
}

function within(namespace: DurableObjectNamespace, location: DataLocation | '' | undefined): DurableObjectNamespace {
  if (!location) return namespace;
  try {
    return namespace.jurisdiction(location);
  } catch (error) {
    const message = `DATA_LOCATION=${location}: this runtime cannot keep data in a place.`;
    const details = { variable: 'DATA_LOCATION', reason: String((error as Error).message) };
    const hint = "On a developer's machine leave it empty in .dev.vars; self-hosted, where it runs is the place.";
    throw new ApiError({ ...invalidConfiguration(message, details).data, hint });
  }
}

/** The object of one queue, for what is not RPC. */
export const queueStub = <Api = DurableObjectStub>(env: Env, name: string): Api => named(env, 'QUEUES', name);

export function queueObject(env: Env, name: string): QueueApi {
  noteAwake(name);
  return named(env, 'QUEUES', name);
}

const DISPOSE = Reflect.get(Symbol, 'dispose') as symbol;

/** Does the object of a queue, of whatever version, have this verb? Nothing is called. */
export async function hasVerb(env: Env, queue: string, verb: keyof QueueApi): Promise<boolean> {
  try {
    const found = (await queueObject(env, queue)[verb]) as unknown as Record<symbol, (() => void) | undefined>;
    found[DISPOSE]?.();
    return true;
  } catch (error) {
    if (isMissingMethod(error)) return false;
    throw error;
  }
}

/** The object that knows which queues exist, for what is not RPC. */
export const directoryStub = (env: Env): DurableObjectStub => named(env, 'DIRECTORY', DIRECTORY);

/** The object that knows which queues exist. */
export const directoryObject = (env: Env): DirectoryApi => named(env, 'DIRECTORY', DIRECTORY);

/** The directory outside of any place: with a place it knows that one, and nothing else. */
export const placelessDirectory = (env: Env): DirectoryApi => named(env, 'DIRECTORY', DIRECTORY, '');

/** The object that looks after the directory once a day: one more room of its class. */
export const lookoutObject = (env: Env): DirectoryApi => named(env, 'DIRECTORY', LOOKOUT);

export const idShard = (env: Env, name: string): DirectoryApi => named(env, 'DIRECTORY', name);

/** The object of one subscription: one more room of the class of the directory. */
export const webhookObject = (env: Env, id: string): DirectoryApi => named(env, 'DIRECTORY', `webhook ${id}`);

/** The object of one pool: one more room of the class of the directory. */
export const poolObject = (env: Env, name: string): DirectoryApi => named(env, 'DIRECTORY', `pool ${name}`);

export const workflowObject = (env: Env, id: string): WorkflowApi => named(env, 'WORKFLOWS', id);

export const lockObject = (env: Env, name: string): UniqueLockApi => named(env, 'UNIQUE_LOCKS', name);

/** The desk of a key's allowance: one more room of the class of lock objects. */
export const deskObject = (env: Env, key: string): AllowanceApi => named(env, 'UNIQUE_LOCKS', DESK_PREFIX + key);
