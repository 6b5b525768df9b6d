/** Connecting a worker to its queue: the upgrade is passed on to the object, which holds the socket from then on. */
import type { Env } from '../config';
import { askForSocket, wantedBy } from '../durable/upgrade';
import type { Outcome } from '../job/errors';
import type { Connection } from '../job/worker/socket';
import { queueStub } from './stubs';

/** Parameter of the upgrade: who connects. */
const WORKER = 'worker';

/** Asks a queue to take a worker. @returns its side of the socket, not accepted yet */
export const askToConnect = (env: Env, queue: string, worker: Connection): Promise<Outcome<WebSocket>> =>
  askForSocket(queueStub(env, queue), WORKER, worker);

/** Who connects by this upgrade; undefined: it is another one. */
export const wantedConnection = (request: Request): Connection | undefined => wantedBy(request, WORKER);
