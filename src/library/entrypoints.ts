import { WorkerEntrypoint } from 'cloudflare:workers';
import type { JobPatch } from '../client/patch';
import type { TocsinService } from '../client/service';
import type { Env } from '../config';
import { declaration } from '../declaration';
import type { EnqueueOptions } from '../producer/job';
import { applyBeside } from './applied';
import { insideClient, insideFetch } from './inside';

/** Runs the deployment's own handlers; only the queue and explicit service bindings can call it. */
export class TocsinHandlers extends WorkerEntrypoint {
  override async fetch(request: Request): Promise<Response> {
    // Of a deployment that only has schedules, the jobs that they bring may be all that a new version sees.
    applyBeside(this.env as Env, this.ctx);
    const { handlers } = declaration();
    if (handlers) return await handlers.fetch(request, this.env, this.ctx);
    return Response.json({ error: { code: 'not_found', message: 'This Worker has no handlers.' } }, { status: 404 });
  }
}

/**
 * For Workers of the same account, bound with `entrypoint = "Tocsin"`: RPC, or a client over the binding. Every Worker
 * with the binding may do all of this, so no key is needed.
 */
export class Tocsin extends WorkerEntrypoint implements TocsinService {
  /** The whole HTTP interface, without a key: `new TocsinClient({ service: env.TOCSIN })`. */
  override async fetch(request: Request): Promise<Response> {
    return await insideFetch(request);
  }

  async enqueue(type: string, args: readonly unknown[], options?: EnqueueOptions) {
    return await insideClient().enqueue(type, args, options);
  }

  async enqueueMany(...given: Parameters<TocsinService['enqueueMany']>) {
    return await insideClient().enqueueMany(...given);
  }

  async get(id: string) {
    return await insideClient().get(id);
  }

  async cancel(id: string) {
    return await insideClient().cancel(id);
  }

  async patch(id: string, change: JobPatch) {
    return await insideClient().patch(id, change);
  }

  async count(...given: Parameters<TocsinService['count']>) {
    return await insideClient().count(...given);
  }
}
