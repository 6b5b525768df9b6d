/** The queue as its own Worker's code reaches it: through the application, without network or key. */
import { env } from 'cloudflare:workers';
import { allObjects, resetAll } from '../across/objects';
import { TocsinClient } from '../client/client';
import { type Env, ignoreLocation } from '../config';
import { SUPPORTED } from '../durable/schema';
import type { HandlerWorker } from '../handler/worker-types';
import { createApp } from '../http/app';
import { rest } from '../queue/store/shutdown';
import { applied, applyQuietly, forgetApplied } from './applied';
import type { Deployment } from './deployment';

const ORIGIN = 'https://tocsin.inside';

const app = createApp({ trusted: true, ready: applied });

export const insideFetch = async (request: Request): Promise<Response> =>
  await app.fetch(request, env as unknown as Env);

let client: TocsinClient | undefined;
let handlers: HandlerWorker | undefined;

/** The deployment's own handlers: what they register holds for jobs that its own code enqueues. */
export function knowHandlers(own: HandlerWorker | undefined): void {
  handlers = own;
  client = undefined;
}

export function insideClient(): TocsinClient {
  client ??= new TocsinClient({
    url: ORIGIN,
    handlers,
    fetch: (input, init) => insideFetch(new Request(input, init as RequestInit)),
  });
  return client;
}

export const inside: Deployment = {
  get client() {
    return insideClient();
  },
  objects: () => allObjects(env as unknown as Env),
  rest,
  schemas: SUPPORTED,
  async reset() {
    ignoreLocation();
    await resetAll(env as unknown as Env);
    forgetApplied();
    await applyQuietly(env as unknown as Env);
  },
};
