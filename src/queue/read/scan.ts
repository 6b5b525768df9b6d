/**
 * Finds jobs by filter in sequence order, wherever they are; a job keeps its number, so a reader sees each at most
 * once.
 *
 * Calls are bounded and say where to continue. They read in key order first; if matches turn out rare and an index
 * knows the wanted states, they read the index.
 */

import { type Fragment, listed, rows } from '../../durable/sql';
import type { JobFilter } from '../../job/filter';
import { MAX_SEQUENCE, RANK_BIT, sequenceOf } from '../../job/ids';
import { grouped } from '../../job/size';
import { JOB_STATES, type JobState } from '../../job/states';
import type { ListPage } from '../../rpc/queue';
import { archivedBackwards } from '../store/archive';
import { asTable } from '../store/block';
import type { BlockTable } from '../store/block-table';
import { type JobRow, STATE } from '../store/job-row';
import type { StoredQueue } from '../store/parts';
import { stateOf } from '../store/rows';
import { conditionOnArchived, conditionOnRow, type InspectedRow, type Inspection, inspectionOf } from './filter';
import { find } from './find';
import { stats } from './stats';

export interface Hit {
  sequence: number;
  key: number;
  state: JobState;
  /** JSON of the archived job, when it has completed. */
  archived?: string;
  /** The value of `measure`, if the job has a row. */
  measure?: Measure;
}

export type Measure = number | string | null;

interface Candidate {
  sequence: number;
  /** Absent: it does not match. */
  hit?: Hit;
  /** What looking at it costs, in jobs; absent: 1. */
  cost?: number;
}

export interface ScanRequest {
  filter: JobFilter;
  /** Where to continue, exclusive: below this number, or above it when ascending. Absent: from the end. */
  from?: number | undefined;
  /** Oldest first. Completed jobs are left out then. */
  ascending?: boolean;
  /** An SQL expression over a row of `jobs`, to be evaluated for each match. */
  measure?: string;
  /** How many to find at most; absent: all. */
  limit?: number;
  /** How many jobs to look at, at most; a large one counts for several if its text is read. */
  budget: number;
}

/** `next`: where to continue; absent when everything was looked at. `spent`: of the budget. */
export type ScanResult = Pick<ListPage, 'next' | 'looked' | 'spent'>;

/** After this many jobs without a match an index is tried. */
const SPARSE_AFTER = 500;

/** Rows read by one statement; and of those whose text is read, which may be 1 MiB each. */
const PAGE = 250;
const TEXT_PAGE = 50;
const INDEX_PAGE = 1000;

/** An index is used up to this many rows: it has no order by number, so each page reads them all. */
const MAX_INDEXED = 20_000;

/** Characters of bodies given to one statement, unless a single one is larger: a value holds 2 MB. */
const MAX_GIVEN = 256 * 1024;

const SEQUENCE = `(key & ${MAX_SEQUENCE - 1})`;

/** Finds jobs in order and passes them to `visit`. @returns where the next call continues */
export function scan(q: StoredQueue, request: ScanRequest, now: number, visit: (hit: Hit) => void): ScanResult {
  const { filter, limit = Number.POSITIVE_INFINITY, budget } = request;
  const states = new Set<JobState>(filter.states ?? JOB_STATES);
  const reader = new Reader(q, filter, states, request.ascending === true, request.measure ?? 'NULL', now);
  if (filter.ids) {
    let last = request.from;
    let shown = 0;
    for (const hit of reader.byId(filter.ids, request.from)) {
      if (shown++ === limit) return { looked: shown, spent: shown, ...(last !== undefined && { next: last }) };
      visit(hit);
      last = hit.sequence;
    }
    return { looked: filter.ids.length, spent: filter.ids.length };
  }
  let from = request.from ?? (request.ascending ? -1 : MAX_SEQUENCE);
  let looked = 0;
  let spent = 0;
  let found = 0;
  let indexed = false;
  for (;;) {
    let switching = false;
    for (const { sequence, hit, cost = 1 } of reader.candidates(from, indexed)) {
      if (hit) {
        // One more than wanted was seen: the next page begins with it.
        if (found === limit) return { next: from, looked, spent };
        found++;
        visit(hit);
      }
      from = sequence;
      looked++;
      spent += cost;
      if (spent >= budget) return { next: from, looked, spent };
      switching = !indexed && looked >= SPARSE_AFTER && found < looked / 10 && reader.hasIndex();
      if (switching) break;
    }
    if (!switching) return { looked, spent };
    indexed = true;
  }
}

/** The rows with these keys that match, in any order. @param measure an SQL expression, evaluated for each match */
export function matchingRows(
  q: StoredQueue,
  filter: JobFilter,
  keys: readonly number[],
  measure: string,
  now: number,
): Hit[] {
  const reader = new Reader(q, filter, new Set(filter.states ?? JOB_STATES), false, measure, now);
  return [...reader.rowsOf(keys)].flatMap(({ hit }) => hit ?? []);
}

type Told = Pick<JobRow, 'key' | 'state' | 'due_at' | 'attempt'> &
  InspectedRow & { hit: number | null; measure: Measure };

class Reader {
  private readonly condition: Fragment;
  private readonly inspection: Inspection | undefined;

  constructor(
    private readonly q: StoredQueue,
    private readonly filter: JobFilter,
    private readonly states: ReadonlySet<JobState>,
    private readonly ascending: boolean,
    private readonly measure: string,
    private readonly now: number,
  ) {
    this.condition = conditionOnRow(filter, now, q.store.leases.active.keys());
    this.inspection = inspectionOf(filter, q.route);
  }

  /** Does an index know all rows in the states asked for, and not too many? The line of immediate jobs has none. */
  hasIndex(): boolean {
    if (this.states.has('available') && this.q.store.counts.line !== 0) return false;
    // Counting them only for this check would read them all.
    if (!this.q.store.tally.isCounted) return true;
    const { counts } = stats(this.q, this.now);
    // The index does not separate delayed jobs from retried ones.
    const asked = new Set(this.states);
    if (asked.has('scheduled') || asked.has('retryable')) asked.add('scheduled').add('retryable');
    asked.delete('completed');
    return [...asked].reduce((sum, state) => sum + counts[state], 0) <= MAX_INDEXED;
  }

  *candidates(from: number, indexed: boolean): Generator<Candidate> {
    const sources: Iterator<Candidate>[] = [];
    if ([...this.states].some((state) => state !== 'completed')) {
      if (indexed) sources.push(this.indexed(from), ...this.indexedBlocks(from));
      else {
        for (const rank of [0, RANK_BIT]) sources.push(this.rank(rank, from));
        const { line, due, retries, singles } = this.q.store.blocks;
        for (const table of [line, retries, singles]) sources.push(this.blocks(table, from));
        sources.push(this.blocks(due, RANK_BIT + from));
      }
    }
    const { error_words, fingerprints } = this.filter;
    const asksForFailure = error_words !== undefined || fingerprints !== undefined;
    if (this.states.has('completed') && !this.ascending && !asksForFailure) sources.push(this.archived(from));
    yield* merged(sources, this.ascending);
  }

  /** The jobs with these ids that match, newest first. */
  *byId(ids: readonly string[], from = this.ascending ? -1 : MAX_SEQUENCE): Generator<Hit> {
    const found = ids.flatMap((id) => find(this.q, id) ?? []);
    const keys = found.flatMap(({ row }) => (row ? [row.key] : []));
    const hits = [...this.rowsOf(keys)].flatMap(({ hit }) => hit ?? []);
    const archived = conditionOnArchived(this.filter);
    for (const { archived: job } of found) {
      if (!job || !this.states.has('completed')) continue;
      const json = JSON.stringify(job);
      const statement = `SELECT 1 FROM (SELECT ? AS value) AS job WHERE ${archived.sql}`;
      if (rows(this.q.store.sql, statement, json, ...archived.bindings).length === 0) continue;
      if (this.inspection && !this.inspection.fitsArchived(json)) continue;
      hits.push({ sequence: sequenceOf(job.k), key: job.k, state: 'completed', archived: json });
    }
    const sign = this.ascending ? 1 : -1;
    const unique = new Map(hits.map((hit) => [hit.key, hit]));
    const rest = [...unique.values()].filter(({ sequence }) => (sequence - from) * sign > 0);
    yield* rest.sort((a, b) => (a.sequence - b.sequence) * sign);
  }

  private *rank(rank: number, from: number): Generator<Candidate> {
    let bound = rank + from;
    const page = this.inspection ? TEXT_PAGE : PAGE;
    const order = `ORDER BY key ${this.ascending ? 'ASC' : 'DESC'} LIMIT ${page}`;
    for (;;) {
      const range = this.ascending
        ? { sql: 'key > ? AND key < ?', bindings: [bound, rank + MAX_SEQUENCE] }
        : { sql: 'key >= ? AND key < ?', bindings: [rank, bound] };
      const rows = this.rows(`${range.sql} ${order}`, range.bindings);
      yield* rows;
      const last = rows.at(-1);
      if (rows.length < page || !last) return;
      bound = rank + last.sequence;
    }
  }

  /** Rows in the order of their numbers, of those in the wanted states by some index. */
  private *indexed(from: number): Generator<Candidate> {
    const { q, states, ascending } = this;
    const parts: string[] = [];
    const ended: number[] = [];
    if (states.has('cancelled')) ended.push(STATE.cancelled);
    if (states.has('discarded')) ended.push(...(this.filter.dead === true ? [] : [STATE.discarded]), STATE.dead);
    if (ended.length > 0) parts.push(`SELECT key FROM jobs WHERE state IN (${ended}) AND ended_at IS NOT NULL`);
    if (states.has('pending')) parts.push('SELECT key FROM jobs WHERE state = 1');
    const due = states.has('available');
    const later = states.has('scheduled') || states.has('retryable');
    if (due || later) {
      const moment = Math.floor(this.now);
      const when = due && later ? '' : due ? ` AND due_at <= ${moment}` : ` AND due_at > ${moment}`;
      // The index begins with the priority: without one, every entry would be read to find those on one side of now.
      const everywhere = `priority IN (${[...q.store.priorities].join(', ')})`;
      parts.push(`SELECT key FROM jobs WHERE due_at IS NOT NULL AND ${everywhere}${when}`);
    }
    const running = listed([...(states.has('active') ? q.store.leases.active.keys() : []), ...q.store.locks.keys()]);
    parts.push(`SELECT value AS key FROM ${running.sql}`);
    const [beyond, order] = ascending ? ['>', 'ASC'] : ['<', 'DESC'];
    const query = `SELECT DISTINCT key FROM (${parts.join(' UNION ALL ')}) WHERE ${SEQUENCE} ${beyond} ?
      ORDER BY ${SEQUENCE} ${order} LIMIT ${INDEX_PAGE}`;
    for (;;) {
      const keys = rows<{ key: number }>(q.store.sql, query, ...running.bindings, from).map(({ key }) => key);
      yield* this.rowsOf(keys);
      const last = keys.at(-1);
      if (keys.length < INDEX_PAGE || last === undefined) return;
      from = sequenceOf(last);
    }
  }

  /** The jobs with these keys that have not completed, page by page, each page in order. */
  *rowsOf(keys: readonly number[]): Generator<Candidate> {
    const page = this.inspection ? TEXT_PAGE : INDEX_PAGE;
    const sign = this.ascending ? 1 : -1;
    for (let at = 0; at < keys.length; at += page) {
      const part = keys.slice(at, at + page);
      const own = this.rows('key IN (SELECT value FROM json_each(?))', [JSON.stringify(part)]);
      const inBlocks = this.inBlocks(part.filter((key) => this.q.store.blocks.holds(key)));
      yield* [...own, ...inBlocks].sort((a, b) => (a.sequence - b.sequence) * sign);
    }
  }

  private *blocks(table: Pick<BlockTable, 'pages'>, from: number, isRunning = true): Generator<Candidate> {
    const page = this.inspection ? TEXT_PAGE : PAGE;
    for (const keys of table.pages(from, this.ascending, page)) {
      yield* this.inBlocks(isRunning ? keys : keys.filter((key) => !this.q.store.leases.active.has(key)));
    }
  }

  /** The jobs of blocks that are in the wanted states by the due index; leases know those that run. */
  private indexedBlocks(from: number): Iterator<Candidate>[] {
    const { states } = this;
    const { due, retries } = this.q.store.blocks;
    const [isDue, isLater] = [states.has('available'), states.has('scheduled')];
    const again = isDue || isLater || states.has('retryable') ? [this.blocks(retries, from, false)] : [];
    if (!isDue && !isLater) return again;
    const when = isDue && isLater ? undefined : isDue ? { until: this.now } : { after: this.now };
    const pages: BlockTable['pages'] = (start, ascending, size) => due.pagesOf(start, ascending, size, when);
    return [...again, this.blocks({ pages }, RANK_BIT + from, false)];
  }

  private inBlocks(keys: readonly number[]): Candidate[] {
    const { condition, inspection, measure } = this;
    const { blocks } = this.q.store;
    // If the filter does not need their bodies, none is read.
    if (condition.sql === '1' && !inspection && (measure === 'NULL' || measure === 'created_at')) {
      return keys.flatMap((key) => {
        const row = blocks.head(key);
        return row ? [this.candidate({ ...row, hit: 1, measure: row.created_at })] : [];
      });
    }
    const found: Candidate[] = [];
    // Their bodies may be 1 MiB each: no more of them are read than one statement is given.
    const rows = definedOnly(keys, (key) => blocks.row(key));
    for (const group of grouped(rows, charsOf, MAX_GIVEN)) found.push(...this.told(asTable(group)));
    return found;
  }

  private rows(where: string, bindings: (string | number)[]): Candidate[] {
    return this.told({ sql: 'jobs', bindings: [] }, { sql: `WHERE ${where}`, bindings });
  }

  private told(table: Fragment, where: Fragment = { sql: '', bindings: [] }): Candidate[] {
    const { condition, inspection, measure } = this;
    const columns = inspection ? `, ${inspection.columns}` : '';
    const rows = this.q.store.sql.exec<Told>(
      `SELECT key, state, due_at, attempt, ${condition.sql} AS hit, ${measure} AS measure${columns}
       FROM ${table.sql} AS jobs ${where.sql}`,
      ...condition.bindings,
      ...table.bindings,
      ...where.bindings,
    );
    // One at a time: what is read of a row for its inspection may be large.
    return Array.from(rows, (row) => this.candidate(row));
  }

  private candidate(row: Told): Candidate {
    const hit = this.hitOf(row);
    const cost = this.inspection ? { cost: this.inspection.costOf(row) } : {};
    return { sequence: sequenceOf(row.key), ...(hit && { hit }), ...cost };
  }

  private hitOf(row: Told): Hit | undefined {
    const seen = row.hit ? this.q.store.locks.seen(row) : undefined;
    if (!seen) return undefined;
    const state = stateOf(seen, this.q.store.leases.active.has(row.key), this.now);
    if (!this.states.has(state) || this.inspection?.fits(row) === false) return undefined;
    return { sequence: sequenceOf(row.key), key: row.key, state, measure: row.measure };
  }

  private *archived(from: number): Generator<Candidate> {
    for (const { key, json } of archivedBackwards(this.q.store.sql, from, conditionOnArchived(this.filter))) {
      const sequence = sequenceOf(key);
      const cost = this.inspection && json !== null ? { cost: this.inspection.costOf({ key, body: json }) } : {};
      const fits = json !== null && this.inspection?.fitsArchived(json) !== false;
      if (fits) yield { sequence, hit: { sequence, key, state: 'completed', archived: json }, ...cost };
      else yield { sequence, ...cost };
    }
  }
}

const charsOf = ({ body, history }: JobRow): number => body.length + (history?.length ?? 0);

function* definedOnly<K, T>(keys: readonly K[], read: (key: K) => T | undefined): Generator<T> {
  for (const key of keys) {
    const value = read(key);
    if (value !== undefined) yield value;
  }
}

/** Several sources, each in order, as one in order. */
function* merged(sources: readonly Iterator<Candidate>[], ascending: boolean): Generator<Candidate> {
  const sign = ascending ? -1 : 1;
  const heads = sources.map((source) => source.next());
  for (;;) {
    let best = -1;
    let first: Candidate | undefined;
    for (const [index, head] of heads.entries()) {
      if (head.done || (first && (head.value.sequence - first.sequence) * sign <= 0)) continue;
      best = index;
      first = head.value;
    }
    if (!first) return;
    yield first;
    heads[best] = (sources[best] as Iterator<Candidate>).next();
  }
}
