import type { Hono } from 'hono';
import type { AnyJobs, TocsinClient } from '../client/client';
import type { Env } from '../config';
import { declare } from '../declaration';
import { RUNNABLE, type Runnable } from '../handler/runnable';
import type { HandlerWorker, JobsOf } from '../handler/worker-types';
import { createApp } from '../http/app';
import { applied, applyBeside } from './applied';
import { type EntrypointClass, withQueue } from './default-export';
import { DEPLOYMENT } from './deployment';
import { inside, insideClient, knowHandlers } from './inside';
import { isOurs, mountable } from './mount';
import { readOptions, type TocsinOptions } from './options';

/** The deployment, as its own code uses it. */
export interface TocsinDeployment<Jobs extends Record<keyof Jobs, readonly unknown[]> = AnyJobs>
  extends Pick<TocsinClient<Jobs>, 'enqueue' | 'token'> {
  /** The queue's HTTP interface as a Hono app: `app.route('/tocsin', tocsin.app)`. Other paths fall through. */
  readonly app: Hono;
  /**
   * The default export of a Worker: `/ojs/` goes to the queue, everything else to `own.fetch`; without one the queue
   * serves every path. Other handlers (`scheduled`, `queue`, `email` …) stay, inherited ones too.
   * @throws {TypeError} where `own` is neither an object nor a class that extends `WorkerEntrypoint`
   */
  worker<E = unknown>(own?: ExportedHandler<E>): ExportedHandler<E>;
  /** A class of the same methods, RPC included. */
  worker<Class extends EntrypointClass>(own: Class): Class;
  /** Everything that a client can do, without network and key. To be used while a request or an event is served. */
  readonly client: TocsinClient<Jobs>;
}

/**
 * Makes this Worker hold the queue. Called once, while the module loads; the Worker also exports the classes of objects
 * and, with handlers of its own, the entrypoint `TocsinHandlers`.
 *
 * @throws {TypeError} naming the option that is wrong, so that a mistake stops the deploy
 * @example
 * const tocsin = createTocsin({ handlers, queues: { mail: { concurrency: 20 } } });
 * export { DirectoryObject, QueueObject, TocsinHandlers, UniqueLockObject, WorkflowObject } from 'tocsin/queue';
 * export default tocsin.worker({ fetch: app.fetch });
 */
export function createTocsin<Worker extends HandlerWorker>(
  options: TocsinOptions & { handlers: Worker },
): TocsinDeployment<JobsOf<Worker>>;
/** As above, for job types without a handler in this Worker. */
export function createTocsin<Jobs extends Record<keyof Jobs, readonly unknown[]> = AnyJobs>(
  options?: TocsinOptions,
): TocsinDeployment<Jobs>;
export function createTocsin(options: TocsinOptions = {}): TocsinDeployment {
  const { handlers, delivery, ...declared } = readOptions(options);
  declare({ ...declared, ...(handlers && { handlers: { ...delivery, ...ownHandlers(handlers) } }) });
  knowHandlers(handlers && RUNNABLE in handlers ? handlers : undefined);
  Object.defineProperty(globalThis, DEPLOYMENT, { value: inside, configurable: true });
  const served = createApp({ ready: applied });
  const serve = async (request: Request, env: Env): Promise<Response> => await served.fetch(request, env);
  return {
    app: mountable(serve),
    worker: (own: ExportedHandler<Env> | EntrypointClass = {}) =>
      withQueue(
        own,
        (request, env, hasOwn) => (hasOwn && !isOurs(new URL(request.url).pathname) ? undefined : serve(request, env)),
        applyBeside,
      ) as never,
    get client() {
      return insideClient();
    },
    enqueue: (type, args, how) => insideClient().enqueue(type, args, how),
    token: (options) => insideClient().token(options),
  };
}

function ownHandlers(worker: HandlerWorker & { [RUNNABLE]?: Runnable }) {
  const types = worker[RUNNABLE]?.registry.typeNames() ?? ['*'];
  return { types, fetch: worker.fetch.bind(worker) };
}
