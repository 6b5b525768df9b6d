/** Connecting a worker to its queue: the upgrade goes on to the object, which holds the socket from then on. */
import type { Env } from '../config';
import type { ErrorData, Outcome } from '../job/errors';
import type { Connection } from '../job/worker/socket';
import { queueStub } from './stubs';

/** Parameter of the upgrade: who connects, as JSON. */
const WORKER = 'worker';

/** Asks a queue to take a worker. @returns its side of the socket, not accepted yet */
export async function askToConnect(env: Env, queue: string, worker: Connection): Promise<Outcome<WebSocket>> {
  const url = new URL('https://object.internal/');
  url.searchParams.set(WORKER, JSON.stringify(worker));
  const answer = await queueStub(env, queue).fetch(url, { headers: { Upgrade: 'websocket' } });
  if (answer.webSocket) return { ok: true, value: answer.webSocket };
  return { ok: false, error: (await answer.json()) as ErrorData };
}

/** Who connects by this upgrade; undefined: it is another one. */
export function wantedConnection(request: Request): Connection | undefined {
  const wanted = new URL(request.url).searchParams.get(WORKER);
  return wanted === null ? undefined : (JSON.parse(wanted) as Connection);
}
