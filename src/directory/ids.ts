/**
 * A shard of the directory: which queues may have a job under an id that does not name its queue.
 *
 *     note the id here ──▶ the queue takes the job ──▶ … ──▶ the job is removed ──▶ a round finds the row vacant
 *
 * An outdated row costs one question to a queue; a daily round removes vacant ones.
 */
import { derived, type MessageKind, type RelayHost } from '../durable/outbox-relay';
import type { Schema } from '../durable/schema';
import type { IdPlace } from '../rpc/ids';

const ROUND_MS = 24 * 3_600_000;

/** A job noted longer ago than this has been taken by its queue, or never will be, ms. */
const CERTAIN_AFTER_MS = 3_600_000;

/** Rows looked at in one step of a round, steps in one event, and the pause to the next event, ms. */
const ROUND_STEP = 500;
const ROUND_STEPS = 20;
const NEXT_STEP_MS = 1_000;

interface Round {
  /** When it continues, epoch ms. */
  at: number;
  after: IdPlace;
}

type Noted = { id: string; queue: string; noted_at: number };

const START: IdPlace = { id: '', queue: '' };

export interface IdsHost extends Pick<RelayHost, 'now' | 'wakeAt'> {
  /** Those of these ids that a queue knows. */
  knownIds(queue: string, ids: string[]): Promise<string[]>;
}

export class IdRegister {
  private round: Round | null | undefined;

  constructor(
    private readonly host: IdsHost,
    private readonly tables: Schema,
  ) {}

  /** Notes places, a row each, unless noted for another queue. @param lookedInto note it anyway @returns the others */
  note(places: readonly IdPlace[], lookedInto: boolean): IdPlace[] {
    const now = this.host.now();
    const queueOf = new Map(places.map(({ id, queue }) => [id, queue]));
    const others = this.find([...queueOf.keys()]).filter(({ id, queue }) => queueOf.get(id) !== queue);
    const doubtful = new Set(lookedInto ? [] : others.map(({ id }) => id));
    const clear = JSON.stringify(places.filter(({ id }) => !doubtful.has(id)));
    const note = `INSERT INTO ids (id, queue, noted_at)
      SELECT json_extract(value, '$.id'), json_extract(value, '$.queue'), ? FROM json_each(?) WHERE true
      ON CONFLICT (id, queue) DO UPDATE SET noted_at = excluded.noted_at`;
    this.tables.transaction(() => {
      this.tables.rows(note, now, clear);
      if (!this.planned()) this.plan({ at: now + ROUND_MS, after: START });
    });
    return others;
  }

  find(ids: readonly string[]): IdPlace[] {
    const query = 'SELECT id, queue FROM ids WHERE id IN (SELECT value FROM json_each(?))';
    return this.tables.rows<{ id: string; queue: string }>(query, JSON.stringify(ids));
  }

  /** When the round continues, epoch ms; undefined: there is nothing to check. */
  due(): number | undefined {
    return this.planned()?.at;
  }

  /** Continues a due round, bounded. Rejects when a queue could not be asked; the round continues later. */
  async goRound(): Promise<void> {
    const round = this.planned();
    if (!round || round.at > this.host.now()) return;
    // However this event ends, the round continues after it.
    this.plan({ ...round, at: this.host.now() + NEXT_STEP_MS });
    let after: IdPlace | undefined = round.after;
    for (let step = 0; after && step < ROUND_STEPS; step++) after = await this.removeVacant(after);
    if (after) this.plan({ at: this.host.now() + NEXT_STEP_MS, after });
    else if (this.tables.rows('SELECT 1 FROM ids LIMIT 1').length > 0)
      this.plan({ at: this.host.now() + ROUND_MS, after: START });
    else this.plan(null);
  }

  /** One step. @returns the last row that was looked at; undefined at the end */
  private async removeVacant(after: IdPlace): Promise<IdPlace | undefined> {
    const page = 'SELECT id, queue, noted_at FROM ids WHERE (id, queue) > (?, ?) ORDER BY id, queue LIMIT ?';
    const found = this.tables.rows<Noted>(page, after.id, after.queue, ROUND_STEP);
    const before = this.host.now() - CERTAIN_AFTER_MS;
    const old = Map.groupBy(
      found.filter(({ noted_at }) => noted_at <= before),
      ({ queue }) => queue,
    );
    for (const [queue, group] of old) {
      const ids = group.map(({ id }) => id);
      const known = new Set(await this.host.knownIds(queue, ids));
      const vacant = JSON.stringify(ids.filter((id) => !known.has(id)));
      // An id that was noted again since the question was asked stays.
      const drop = `DELETE FROM ids WHERE queue = ? AND noted_at <= ? AND id IN (SELECT value FROM json_each(?))`;
      this.tables.rows(drop, queue, before, vacant);
    }
    return found.length < ROUND_STEP ? undefined : found.at(-1);
  }

  private planned(): Round | null {
    if (this.round !== undefined) return this.round;
    if (!this.tables.exist()) return null;
    this.round = this.tables.fact<Round>('ids_round') ?? null;
    return this.round;
  }

  private plan(round: Round | null): void {
    this.tables.writeFact('ids_round', round ?? undefined);
    this.round = round;
    if (round) this.host.wakeAt(round.at);
  }
}

/** Queues that are listed at once. */
const AT_ONCE = 10;

export interface ListingHost {
  /** The next ids after this one that clients chose in a queue; none: that was all. */
  chosenIds(queue: string, after: string): Promise<string[]>;
  noteIds(places: IdPlace[]): Promise<unknown>;
}

/**
 * Queues of an earlier release took client-chosen ids without noting them in shards: lists them, once per queue, in
 * bounded turns. Until then an unknown id may still exist.
 */
export class IdListing {
  readonly messages: MessageKind<void>;
  /** How far a queue was read. Only in memory: noting an id again does no harm. */
  private readonly readTo = new Map<string, string>();
  /** Queues up to this route were begun in this pass. */
  private from = -1;

  constructor(
    private readonly host: ListingHost,
    private readonly tables: Schema,
  ) {
    this.messages = derived({ kind: 'ids of', open: () => this.open(), deliver: (queue) => this.listNext(queue) });
  }

  get left(): number {
    return this.tables.count('SELECT count(*) AS n FROM queues WHERE ids_listed = 0');
  }

  /** Those that were begun, and the next ones. */
  private open(): string[] {
    const next = this.next();
    if (next.length === 0 && this.from >= 0) this.from = -1;
    return [...new Set([...this.readTo.keys(), ...(next.length > 0 ? next : this.next())])];
  }

  private next(): string[] {
    const some = 'SELECT name FROM queues WHERE ids_listed = 0 AND route > ? ORDER BY route LIMIT ?';
    return this.tables.rows<{ name: string }>(some, this.from, AT_ONCE).map(({ name }) => name);
  }

  private async listNext(queue: string): Promise<void> {
    try {
      const ids = await this.host.chosenIds(queue, this.readTo.get(queue) ?? '');
      const last = ids.at(-1);
      if (last !== undefined) {
        await this.host.noteIds(ids.map((id) => ({ id, queue })));
        this.readTo.set(queue, last);
        return;
      }
    } catch (error) {
      this.passOver(queue);
      throw error;
    }
    this.readTo.delete(queue);
    this.tables.rows('UPDATE queues SET ids_listed = 1 WHERE name = ?', queue);
  }

  /** A queue that cannot be reached does not delay those behind it. */
  private passOver(queue: string): void {
    this.readTo.delete(queue);
    const [row] = this.tables.rows<{ route: number }>('SELECT route FROM queues WHERE name = ?', queue);
    this.from = Math.max(this.from, row?.route ?? -1);
  }
}
