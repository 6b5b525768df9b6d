/**
 * How often a browser may try to log in. Each attempt counts from its beginning until its key turns out to be right. So
 * an address that guesses, or leaves its requests unfinished, is refused for the rest of the minute. Other addresses
 * are not affected.
 */
import { type ApiError, refusal } from '../../job/errors';

const PERIOD_MS = 60_000;
/** Failed attempts of an address in a period. */
const PER_ADDRESS = 10;
/** Those of all addresses, in an isolate: beyond, an address that has failed once is refused. */
const PER_ISOLATE = 200;
/** Addresses that are remembered. */
const MAX_ADDRESSES = 10_000;

export class Attempts {
  private readonly failed = new Map<string, number>();
  private total = 0;
  private until = 0;

  /**
   * Counts an attempt.
   * @param address of the client; undefined: unknown, so only the number of all attempts counts
   * @returns to be called when the key was right
   * @throws {ApiError} 429
   */
  begin(address: string | undefined, now: number): () => void {
    if (now >= this.until || now < this.until - PERIOD_MS) this.startPeriod(now);
    const from = address === undefined ? '' : networkOf(address);
    const mine = this.failed.get(from) ?? 0;
    const isOver = (from !== '' && mine >= PER_ADDRESS) || (mine > 0 && this.total >= PER_ISOLATE);
    if (isOver) throw tooMany(this.until - now);
    this.count(from, 1);
    const { until } = this;
    return () => {
      if (this.until === until) this.count(from, -1);
    };
  }

  private startPeriod(now: number): void {
    this.failed.clear();
    this.total = 0;
    this.until = now + PERIOD_MS;
  }

  private count(from: string, by: number): void {
    const attempts = (this.failed.get(from) ?? 0) + by;
    this.total += by;
    this.failed.delete(from);
    if (attempts > 0) this.failed.set(from, attempts);
    const [oldest] = this.failed.size > MAX_ADDRESSES ? this.failed.keys() : [];
    if (oldest !== undefined) this.failed.delete(oldest);
  }
}

/** One client has a whole IPv6 network of 64 bits. */
function networkOf(address: string): string {
  const cut = address.slice(0, 64);
  if (!cut.includes(':')) return cut;
  const [head = '', tail = ''] = cut.split('::');
  const groups = head.split(':').filter(Boolean);
  const rest = tail.split(':').filter(Boolean);
  const zeros = cut.includes('::') ? Array<string>(Math.max(8 - groups.length - rest.length, 0)).fill('0') : [];
  return [...groups, ...zeros, ...rest].slice(0, 4).join(':').toLowerCase();
}

const tooMany = (ms: number): ApiError =>
  refusal(429, 'rate_limited', 'Too many failed attempts to log in.', {
    retryable: true,
    hint: 'Wait for the time in Retry-After. Requests with "Authorization: Bearer <key>" are not counted.',
    headers: { 'Retry-After': String(Math.ceil(ms / 1_000)) },
  });

export const attempts = new Attempts();
