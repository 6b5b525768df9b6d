/**
 * The creation of a queue, in the transaction that first writes to it:
 *
 *     try it, rolled back ──▶ register in the directory ──▶ tables, name and the operation, one transaction
 *
 * The trial keeps refused requests from the directory. Registering comes first because job ids carry the route. If
 * the operation is refused after all, everything is rolled back and the queue leaves the directory again.
 */
import type { AlarmClock } from '../durable/alarm-clock';
import { QUEUE, Schema } from '../durable/schema';
import { writeMeta } from '../durable/sql';
import { type Outcome, outcomeOf } from '../job/errors';
import { routeCandidate } from '../job/ids';
import type { DirectoryApi } from '../rpc/directory';
import type { QueueDefaults } from '../settings';
import type { QueueEngine } from './engine';
import { NO_HANDLERS } from './store/handlers';
import { QueueMemory } from './store/memory';
import type { QueueParts } from './store/parts';

/** What is done to a queue in a transaction at `now` (epoch ms). */
export type Operation<T> = (q: QueueParts, now: number) => T;

export interface Creation {
  readonly name: string;
  readonly storage: DurableObjectStorage;
  readonly clock: AlarmClock;
  readonly variables: Record<string, string | undefined>;
  readonly directory: Pick<DirectoryApi, 'queueDefaults' | 'register' | 'unregister'>;
  open(): QueueEngine;
  abandon(): void;
}

/** Thrown to roll a transaction back whose outcome is known. */
class RolledBack<T> extends Error {
  constructor(readonly outcome: Outcome<T>) {
    super('rolled back');
  }
}

/** Runs a transaction and rolls it back. @returns what it gave */
function rolledBack<T>(storage: DurableObjectStorage, run: () => Outcome<T>): Outcome<T> {
  try {
    storage.transactionSync(() => {
      throw new RolledBack(run());
    });
  } catch (error) {
    if (error instanceof RolledBack) return error.outcome as Outcome<T>;
    throw error;
  }
  throw new Error('unreachable');
}

function makeTables(
  { storage, name }: Creation,
  { route, defaults }: { route: number; defaults?: QueueDefaults | undefined },
  now: number,
): void {
  new Schema(storage, QUEUE, name).create();
  writeMeta(storage.sql, 'name', name);
  writeMeta(storage.sql, 'route', route);
  writeMeta(storage.sql, 'created_at', now);
  if (defaults) writeMeta(storage.sql, 'defaults', defaults);
}

/** The result that the operation would have in this queue, which does not exist yet. Nothing stays written. */
export async function tryCreation<T>(creation: Creation, operation: Operation<T>): Promise<Outcome<T>> {
  const defaults = (await creation.directory.queueDefaults()) ?? undefined;
  const now = Date.now();
  return rolledBack(creation.storage, () => {
    makeTables(creation, { route: routeCandidate(creation.name, 0), defaults }, now);
    const { storage, variables: retryVariables } = creation;
    const q = new QueueMemory({
      storage,
      variables: { retryVariables },
      handlers: () => NO_HANDLERS,
      isAwaited: () => false,
    });
    return outcomeOf(() => operation(q, now));
  });
}

/** Runs the first operation of a queue. @param creates does this result need a queue? If not, none is created */
export async function createQueue<T>(
  creation: Creation,
  operation: Operation<T>,
  creates: (value: T) => boolean,
): Promise<Outcome<T>> {
  const tried = await tryCreation(creation, operation);
  if (!tried.ok || !creates(tried.value)) return tried;
  const known = await creation.directory.register(creation.name);
  const armed = creation.clock.armedAt;
  const outcome = outcomeOf(() =>
    creation.storage.transactionSync(() => {
      makeTables(creation, known, Date.now());
      const engine = creation.open();
      return engine.writeNow((now) => operation(engine.q, now));
    }),
  );
  if (outcome.ok) return outcome;
  creation.clock.restore(armed);
  creation.abandon();
  await creation.directory.unregister(creation.name, Date.now());
  return outcome;
}
