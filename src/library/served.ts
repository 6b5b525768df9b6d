/**
 * The interface of `tocsin serve` to the Worker, over a socket that only its own user reaches. It is bundled apart from
 * the module of the Worker, which may hold another copy of this library: it finds that one's deployment under its
 * symbol.
 */
import { WorkerEntrypoint } from 'cloudflare:workers';
import { DEPLOYMENT, type Deployment } from './deployment';

/**
 * - `POST /rest?ms=1500`: for this time no more jobs are handed out; `{calls}` are under way
 * - `POST /schemas`: `{schemas}`, the newest version of each kind of object that the Worker can open
 * - `POST /wake`: what the code declares takes effect, although no one has called yet.
 *   `{problem}`: why requests are refused
 */
export class TocsinServed extends WorkerEntrypoint {
  override async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const deployment = (globalThis as unknown as Record<symbol, Deployment | undefined>)[DEPLOYMENT];
    if (!deployment) return Response.json({ error: 'This Worker holds no queue.' }, { status: 501 });
    if (pathname === '/rest')
      return Response.json({ calls: deployment.rest(Date.now() + Number(searchParams.get('ms'))) });
    if (pathname === '/schemas') return Response.json({ schemas: deployment.schemas ?? {} });
    const { server } = deployment.client;
    const { status } = await server.health();
    const problem = await server.deployment().then(
      () => undefined,
      (error: Error) => error.message,
    );
    return Response.json({ status, problem });
  }
}
