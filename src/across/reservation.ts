/**
 * An enqueue's side of the lock objects: reserves fingerprints, has open tickets decided, releases. Locks are asked
 * in the order of names, so that batches never wait for each other.
 */
import type { Env } from '../config';
import { ApiError, type Outcome, unavailable, unwrap } from '../job/errors';
import { type OpenTicket, REGISTER, shardOf, type UniqueLockApi, type Wanted } from '../rpc/locks';
import { lockObject, queueObject } from '../rpc/stubs';

/** How long an enqueue waits for others of the same fingerprint, ms. */
const WAIT_MS = 10_000;
/** How long a reservation lasts if it is not ended: of one job, of a batch; ms. */
const TTL_MS = { job: 5_000, batch: 15_000 };

export async function resetLocks(env: Env): Promise<void> {
  const [register, ...shards] = await lockObjects(env);
  await Promise.all(shards.map(({ lock }) => lock.reset()));
  await register?.lock.reset();
}

/** The lock objects: the register of them, and those that it knows. */
export async function lockObjects(env: Env): Promise<{ name: string; lock: UniqueLockApi }[]> {
  const register = lockObject(env, REGISTER);
  const shards = (await register.shards()).map((name) => ({ name, lock: lockObject(env, name) }));
  return [{ name: REGISTER, lock: register }, ...shards];
}

export class Reservations {
  private readonly reservedAt: string[] = [];
  private readonly decided: string[] = [];
  /** Is the result of what was sent under the ticket known? Before something is sent, it is. */
  private isKnown = true;
  private vacant: Wanted[] = [];

  /** @param ticket UUIDv7 under which the enqueue travels @param coordinator the queue that can give it up */
  constructor(
    private readonly env: Env,
    readonly ticket: string,
    readonly coordinator: string,
  ) {}

  /**
   * Reserves fingerprints, each for its job's queue.
   * @param isNeedless of one fingerprint: asked when another enqueue of it ended, with the queues that may have a job
   * @returns the queues that may have such jobs; undefined: no reservation is needed
   * @throws {ApiError} 503 when others keep them for too long
   */
  async reserve(
    wanted: readonly Wanted[],
    isNeedless?: (holders: readonly Wanted[]) => Promise<boolean>,
  ): Promise<Wanted[] | undefined> {
    const deadline = Date.now() + WAIT_MS;
    const shards = Map.groupBy(wanted, ({ fingerprint }) => shardOf(fingerprint));
    const holders: Wanted[] = [];
    for (const name of [...shards.keys()].sort()) {
      // Noted before the call: a lost answer may have been a yes.
      this.reservedAt.push(name);
      const ask = async () =>
        unwrap(
          await lockObject(this.env, name).reserve({
            ticket: this.ticket,
            coordinator: this.coordinator,
            wanted: shards.get(name) ?? [],
            ttl_ms: wanted.length === 1 ? TTL_MS.job : TTL_MS.batch,
            wait_ms: Math.max(1, deadline - Date.now()),
            peek: isNeedless !== undefined,
          }),
        );
      let reservation = await ask();
      while (!reservation.granted) {
        if (await isNeedless?.(reservation.holders)) {
          this.reservedAt.pop();
          return undefined;
        }
        reservation = await ask();
      }
      for (const ticket of reservation.open) await this.decide(ticket);
      holders.push(...reservation.holders);
    }
    return holders;
  }

  /** Has an earlier enqueue decided: afterwards its jobs exist, or never will. */
  private async decide({ ticket, coordinator, queue }: OpenTicket): Promise<void> {
    const at = (name: string) => queueObject(this.env, name);
    const decision = unwrap(await at(coordinator).batchDecision(ticket));
    if (queue !== coordinator) {
      const decided: Outcome<void> = await (decision === 'committed'
        ? at(queue).commitBatch(ticket)
        : at(queue).abortBatch(ticket));
      if (!decided.ok) throw unavailable('An earlier enqueue of the same unique job could not be finished.');
    }
    this.decided.push(ticket);
  }

  /** These queues have no job with the fingerprint after all. */
  foundVacant(vacant: readonly Wanted[]): void {
    this.vacant = [...vacant];
  }

  /** Sends jobs under the ticket. A refusal decides about them; any other error may hide an answer. */
  async use<T>(send: () => Promise<T>): Promise<T> {
    this.isKnown = false;
    try {
      const sent = await send();
      this.isKnown = true;
      return sent;
    } catch (error) {
      this.isKnown = error instanceof ApiError;
      throw error;
    }
  }

  /** Ends the reservations. Those that cannot be reached end by themselves. */
  async release(): Promise<void> {
    await Promise.allSettled(
      this.reservedAt.map((name) =>
        lockObject(this.env, name).release({
          ticket: this.ticket,
          known: this.isKnown,
          decided: this.decided,
          vacant: this.vacant.filter(({ fingerprint }) => shardOf(fingerprint) === name),
        }),
      ),
    );
  }
}
