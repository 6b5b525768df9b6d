/** Up to where waiting jobs that have expired were looked for. */
import { cell } from '../../durable/sql';

export class Expiry {
  /** No waiting job expires before this, epoch ms: a lower bound. */
  next = Number.POSITIVE_INFINITY;
  /** Of the jobs that expire at that very moment, those up to this key are done. */
  untilKey = 0;

  constructor(private readonly sql: SqlStorage) {}

  /** Reads when the first job expires. */
  load(): void {
    const first = 'SELECT min(expires_at) FROM jobs WHERE expires_at IS NOT NULL AND ended_at IS NULL';
    this.goOnAt(cell(this.sql, first) ?? Number.POSITIVE_INFINITY);
  }

  /** A waiting job expires at `at`, epoch ms. */
  awaits(at: number): void {
    if (at <= this.next) this.goOnAt(at);
  }

  /** All that expires before `at` is done, and of what expires then the jobs up to a key. */
  goOnAt(at: number, untilKey = 0): void {
    this.next = at;
    this.untilKey = untilKey;
  }
}
