/** The queue as a part of somebody's Worker. */
import { Hono } from 'hono';
import { routePath } from 'hono/route';
import type { TocsinClient } from '../client/client';
import type { Env } from '../config';
import { declare } from '../declaration';
import { RUNNABLE, type Runnable } from '../handler/runnable';
import type { HandlerWorker, JobsOf } from '../handler/worker-types';
import { createApp } from '../http/app';
import type { JobEnvelope } from '../producer/envelope';
import type { EnqueueOptions } from '../producer/job';
import { applied } from './applied';
import { DEPLOYMENT } from './deployment';
import { inside, insideClient } from './inside';
import { readOptions, type TocsinOptions } from './options';

/** Arguments of jobs by type. */
type AnyJobs = Record<string, readonly unknown[]>;

/** The deployment, as its own code uses it. */
export interface TocsinDeployment<Jobs extends Record<keyof Jobs, readonly unknown[]> = AnyJobs> {
  /**
   * The queue's HTTP interface as a Hono app: `app.route('/tocsin', tocsin.app)`. Requests for other paths go on to the routes
   * that follow.
   */
  readonly app: Hono;
  /**
   * The default export of a Worker: requests below `/ojs/` go to the queue, all others to `own.fetch`. Without one of its own
   * the queue serves every path.
   */
  worker<E = unknown>(own?: ExportedHandler<E>): ExportedHandler<E>;
  /** Everything that a client can do, without network and key. To be used while a request or an event is served. */
  readonly client: TocsinClient<Jobs>;
  /** As `client.enqueue`. */
  enqueue<Type extends keyof Jobs & string>(
    type: Type,
    args: Jobs[Type],
    options?: EnqueueOptions,
  ): Promise<JobEnvelope<Jobs[Type]>>;
}

/**
 * Makes this Worker hold the queue. Called once, while the module loads; the Worker also exports the classes of objects and,
 * with handlers of its own, the entrypoint `TocsinHandlers`.
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
/** As above, for jobs whose types no handler in this Worker says. */
export function createTocsin<Jobs extends Record<keyof Jobs, readonly unknown[]> = AnyJobs>(
  options?: TocsinOptions,
): TocsinDeployment<Jobs>;
export function createTocsin(options: TocsinOptions = {}): TocsinDeployment {
  const { handlers, delivery, ...declared } = readOptions(options);
  declare({ ...declared, ...(handlers && { handlers: { ...delivery, ...ownHandlers(handlers) } }) });
  Object.defineProperty(globalThis, DEPLOYMENT, { value: inside, configurable: true });
  const served = createApp({ ready: applied });
  const serve = async (request: Request, env: Env): Promise<Response> => await served.fetch(request, env);
  return {
    app: mountable(serve),
    worker: (own = {}) => ({
      ...own,
      fetch: (request, env, ctx) =>
        own.fetch && !isOurs(new URL(request.url).pathname) ? own.fetch(request, env, ctx) : serve(request, env as Env),
    }),
    get client() {
      return insideClient();
    },
    enqueue: (type, args, how) => insideClient().enqueue(type, args, how),
  };
}

/** What the queue needs of handlers made by `defineHandlers`. */
function ownHandlers(worker: HandlerWorker & { [RUNNABLE]?: Runnable }) {
  const types = worker[RUNNABLE]?.registry.typeNames() ?? ['*'];
  return { types, fetch: worker.fetch.bind(worker) };
}

/** Paths of a Worker that has others as well. */
function isOurs(path: string): boolean {
  return isBelow('/ojs', path);
}

function isBelow(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function isRoot(path: string): boolean {
  return path === '' || path === '/';
}

function wantsPage({ method, headers }: Request): boolean {
  return (method === 'GET' || method === 'HEAD') && headers.get('Accept')?.includes('text/html') === true;
}

/** The queue below any path of another app, whatever copy of Hono that is. */
function mountable(serve: (request: Request, env: Env) => Promise<Response>): Hono {
  return new Hono().all('*', async (c, next) => {
    const base = baseOf(routePath(c), c.req.path);
    const path = c.req.path.slice(base.length);
    // Below a path of its own the dashboard is the queue's too, and a browser that opens this path is led there.
    const isDashboard = base !== '' && (isBelow('/ui', path) || (isRoot(path) && wantsPage(c.req.raw)));
    if (!isOurs(path) && !isDashboard) return await next();
    if (base === '') return await serve(c.req.raw, c.env as Env);
    const url = new URL(c.req.url);
    url.pathname = url.pathname.slice(base.length);
    const response = await serve(new Request(url, c.req.raw), c.env as Env);
    return moved(response, base);
  });
}

/** The answer with its paths as they are outside: where to look next, and where a cookie holds. */
function moved(response: Response, base: string): Response {
  const location = response.headers.get('Location');
  const cookies = response.headers.getSetCookie();
  if (!location?.startsWith('/') && cookies.length === 0) return response;
  const outside = new Response(response.body, response);
  if (location?.startsWith('/')) outside.headers.set('Location', base + location);
  outside.headers.delete('Set-Cookie');
  for (const cookie of cookies)
    outside.headers.append('Set-Cookie', cookie.replace(/; Path=\/(?=;|$)/, `; Path=${base}/`));
  return outside;
}

/** The part of a path that stands before what the mounted app serves. @param route such as `/tocsin/*` */
function baseOf(route: string, path: string): string {
  const segments = route.replace(/\/?\*$/, '').split('/').length;
  return path.split('/').slice(0, segments).join('/');
}
