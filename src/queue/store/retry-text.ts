/**
 * The text of a retry block. `heads` is a JSON array with an entry for each job:
 *
 *     [[5,"email.send",0,1700000001000,1,1,1700000000000,1700000000000,null,65,24,130]]
 *
 * Key, type, priority, due, attempt, claims, made, enqueued, chosen id; where its body begins in `data`, lengths of
 * body and history. Entries of `data` begin alike and end with the texts, in case heads are damaged.
 */
import { parseStored } from '../../durable/sql';
import { grouped } from '../../job/size';
import { rowOf as untriedRow } from './block';
import type { JobRow } from './job-row';

/** Characters of a block at most, unless a single job is larger. Few enough to read a block for one of its jobs. */
const MAX_CHARS = 64 * 1024;

export type Head = [
  key: number,
  type: string,
  priority: number,
  due_at: number,
  attempt: number,
  claims: number,
  created_at: number,
  enqueued_at: number,
  alias: string | null,
  /** Where its body begins, and the lengths of its body and of its history; 0: it has none. */
  start: number,
  body: number,
  history: number,
];

export type RetryText = { heads: string; data: string };

/** Characters of texts that are kept in memory. */
const MAX_CACHED = 4 * 1024 * 1024;

/** Jobs in parts that are a block each. */
export const parted = (rows: readonly JobRow[]): JobRow[][] => [
  ...grouped(rows, ({ body, history }) => body.length + (history?.length ?? 0), MAX_CHARS),
];

/** The text of jobs that wait in the due index, have no limit, and do not expire. */
export function encode(rows: readonly JobRow[]): RetryText {
  const heads: string[] = [];
  let data = '';
  for (const row of rows) {
    const { key, type, priority, due_at, attempt, claims, created_at, enqueued_at, alias, body, history } = row;
    const about = JSON.stringify([key, type, priority, due_at, attempt, claims, created_at, enqueued_at, alias]).slice(
      0,
      -1,
    );
    data += `${data === '' ? '[' : ','}${about},`;
    heads.push(`${about},${data.length},${body.length},${history?.length ?? 0}]`);
    data += `${body},${history}]`;
  }
  return { heads: `[${heads.join(',')}]`, data: `${data}]` };
}

function readHeads(text: string): Head[] | undefined {
  const heads = parseStored(text);
  return Array.isArray(heads) && heads.every(isHead) ? heads : undefined;
}

const NUMBERS = [0, 2, 3, 4, 5, 6, 7, 9, 10, 11] as const;

function isHead(head: unknown): head is Head {
  if (!Array.isArray(head) || typeof head[1] !== 'string') return false;
  return (
    NUMBERS.every((place) => Number.isSafeInteger(head[place])) && (head[8] === null || typeof head[8] === 'string')
  );
}

const UNREADABLE = 'unreadable';

const BEGINNING = /\[(\d{1,16}),"/g;

/** Jobs of a block with unreadable heads, from its data or keys; without a body each becomes a dead letter. */
function salvaged({ heads, data }: RetryText): Head[] {
  const entries = entriesOf(data);
  if (entries) return entries;
  const keys = new Set(Array.from(heads.matchAll(BEGINNING), ([, key]) => Number(key)));
  return [...keys].filter(Number.isSafeInteger).map((key) => [key, UNREADABLE, 0, 0, 0, 0, 0, 0, null, 0, 0, 0]);
}

function entriesOf(data: string): Head[] | undefined {
  const entries = parseStored(data);
  if (!Array.isArray(entries)) return undefined;
  const heads = entries.map((entry: unknown) => (Array.isArray(entry) ? [...entry.slice(0, 9), 0, 0, 0] : entry));
  return heads.every(isHead) ? heads : undefined;
}

/** A job as a row. @param data of its block; absent: no texts are needed */
export function rowOf(head: Head, data?: string): JobRow {
  const [key, type, priority, due_at, attempt, claims, created_at, enqueued_at, alias, start, body, history] = head;
  const end = start + body;
  const text = data?.slice(start, end) ?? '';
  return {
    ...untriedRow({ key, type, at: created_at, body: text, alias, priority, due_at }),
    ...{ attempt, claims, enqueued_at },
    history: data === undefined || history === 0 ? null : data.slice(end + 1, end + 1 + history),
  };
}

interface Texts {
  heads: readonly Head[];
  data: string;
}

/** The texts of blocks that were read last, bounded in characters. */
export class RetryTexts {
  private readonly kept = new Map<number, Texts>();
  private chars = 0;

  constructor(private readonly sql: SqlStorage) {}

  clear(): void {
    this.kept.clear();
    this.chars = 0;
  }

  /** @param text the heads of the block with this number */
  headsOf(block: number, text: string): readonly Head[] {
    const heads = readHeads(text);
    if (heads) return heads;
    console.error(`tocsin: the heads of retry block ${block} cannot be read`);
    return this.of(block).heads;
  }

  of(block: number): Texts {
    const known = this.kept.get(block);
    if (known) {
      this.kept.delete(block);
      this.kept.set(block, known);
      return known;
    }
    const stored = this.sql.exec<RetryText>('SELECT heads, data FROM retry_blocks WHERE block = ?', block).one();
    const texts = { heads: readHeads(stored.heads) ?? salvaged(stored), data: stored.data };
    this.kept.set(block, texts);
    this.chars += texts.data.length;
    for (const oldest of this.kept.keys()) {
      if (oldest === block || this.chars <= MAX_CACHED) break;
      this.drop(oldest);
    }
    return texts;
  }

  drop(block: number): void {
    this.chars -= this.kept.get(block)?.data.length ?? 0;
    this.kept.delete(block);
  }
}
