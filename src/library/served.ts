/** The Worker's private interface for `tocsin serve`. A separate bundle: it finds the deployment by symbol. */
import { WorkerEntrypoint } from 'cloudflare:workers';
import { DEPLOYMENT, type Deployment } from './deployment';

/**
 * - `POST /rest?ms=1500`: hands out no jobs for this time; `{calls}` are under way
 * - `POST /schemas`: `{schemas}`, the newest version of each kind of object that the Worker can open
 * - `POST /wake`: applies the declarations now; `{problem}`: why requests are refused
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
