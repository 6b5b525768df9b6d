/** Reads a Redis server over its protocol, so that Ruby applications need not install a client. */
import { isUtf8 } from 'node:buffer';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { messageOf } from '../../job/thrown';
import { withoutPassword } from '../connection';
import { CliError, usageError } from '../failure';

/** All that is sent: nothing of it writes. */
type Verb = 'AUTH' | 'HGETALL' | 'HMGET' | 'LLEN' | 'LRANGE' | 'SCAN' | 'SELECT' | 'SMEMBERS' | 'ZCARD' | 'ZRANGE';

export type Command = readonly [verb: Verb, ...args: (string | number)[]];

type Reply = string | number | null | Reply[];

const TIMEOUT_MS = 30_000;
/** Commands under way at once: each may be answered with a large job. */
const PIPELINED = 100;

const CR = 13;

export class Redis {
  readonly #chunks: AsyncIterator<Buffer>;
  #held: Buffer[] = [];
  #size = 0;

  /** Entries that lists and sets had when they were begun, and no longer when they were read: others took some. */
  missed = 0;

  private constructor(
    private readonly socket: Socket,
    private readonly shown: string,
  ) {
    this.#chunks = socket[Symbol.asyncIterator]();
  }

  /** Connects. @param url `redis://user:password@host:port/database`, or `rediss://` for TLS @throws {CliError} */
  static async open(url: string): Promise<Redis> {
    const shown = withoutPassword(url);
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    if (!parsed || !/^rediss?:$/.test(parsed.protocol)) {
      throw usageError(`${shown} is not an address of Redis.`, 'Write it like redis://localhost:6379/0.');
    }
    const host = parsed.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
    const port = Number(parsed.port || 6379);
    const isTls = parsed.protocol === 'rediss:';
    const socket = isTls ? connectTls({ host, port, servername: host }) : connect({ host, port });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    const redis = new Redis(socket, shown);
    try {
      await once(socket, isTls ? 'secureConnect' : 'connect');
    } catch (error) {
      throw redis.#failed(error);
    }
    // What breaks later is thrown where it is read.
    socket.on('error', () => undefined);
    const [user, password] = [parsed.username, parsed.password].map(decodeURIComponent) as [string, string];
    if (password !== '') await redis.ask('AUTH', ...(user === '' ? [password] : [user, password]));
    const database = parsed.pathname.slice(1) || (parsed.searchParams.get('db') ?? '');
    if (database !== '' && database !== '0') await redis.ask('SELECT', database);
    return redis;
  }

  async texts(...command: Command): Promise<string[]> {
    return ((await this.ask(...command)) as string[] | null) ?? [];
  }

  async number(...command: Command): Promise<number> {
    return Number(await this.ask(...command));
  }

  /** A hash. Empty: there is none. */
  async hash(key: string): Promise<Record<string, string>> {
    const flat = await this.texts('HGETALL', key);
    return Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? '']] : [])));
  }

  /** These members of many hashes, a bounded number at once. Members that are not there are left out. */
  async *hashes(keys: readonly string[], members: readonly string[]): AsyncGenerator<Record<string, string>> {
    for (let from = 0; from < keys.length; from += PIPELINED) {
      const some = keys.slice(from, from + PIPELINED);
      this.#send(some.map((key) => ['HMGET', key, ...members] as const));
      const replies: Reply[] = [];
      for (const _ of some) replies.push(await this.#answer());
      for (const reply of replies) {
        const values = (reply as (string | null)[] | null) ?? [];
        yield Object.fromEntries(members.flatMap((name, at) => (values[at] == null ? [] : [[name, values[at]]])));
      }
    }
  }

  /** A sorted set from its lowest score on, page by page, with the scores. */
  async *sorted(key: string, page: number): AsyncGenerator<[member: string, score: number][]> {
    let left = await this.number('ZCARD', key);
    for (let from = 0; ; from += page) {
      const flat = await this.texts('ZRANGE', key, from, from + page - 1, 'WITHSCORES');
      left -= flat.length / 2;
      if (flat.length > 0) {
        yield flat.flatMap((member, at) => (at % 2 === 0 ? [[member, Number(flat[at + 1])] as [string, number]] : []));
      }
      if (flat.length < 2 * page) break;
    }
    this.missed += Math.max(0, left);
  }

  /** A list from its right end on, page by page: the old end of a queue, so that additions move nothing. */
  async *fromRight(key: string, page: number): AsyncGenerator<string[]> {
    let left = await this.number('LLEN', key);
    for (let from = 0; ; from += page) {
      const some = await this.texts('LRANGE', key, -(from + page), -(from + 1));
      left -= some.length;
      if (some.length > 0) yield some.reverse();
      if (some.length < page) break;
    }
    this.missed += Math.max(0, left);
  }

  /** All keys that match a pattern, each at least once. */
  async *keys(pattern: string): AsyncGenerator<string> {
    let cursor = '0';
    do {
      const [next, keys] = (await this.ask('SCAN', cursor, 'MATCH', pattern, 'COUNT', 1000)) as [string, string[]];
      yield* keys;
      cursor = next;
    } while (cursor !== '0');
  }

  /** Sends a command. @throws {CliError} where it is refused, or the connection breaks */
  async ask(...command: Command): Promise<Reply> {
    this.#send([command]);
    return await this.#answer();
  }

  close(): void {
    this.socket.destroy();
  }

  #send(commands: readonly Command[]): void {
    const bulk = (value: string | number) => `$${Buffer.byteLength(String(value))}\r\n${value}\r\n`;
    this.socket.write(commands.map((words) => `*${words.length}\r\n${words.map(bulk).join('')}`).join(''));
  }

  async #answer(): Promise<Reply> {
    try {
      return await this.#reply();
    } catch (error) {
      throw this.#failed(error);
    }
  }

  async #reply(): Promise<Reply> {
    const line = await this.#line();
    const rest = line.slice(1);
    switch (line[0]) {
      case '+':
        return rest;
      case ':':
        return Number(rest);
      case '$':
        return rest === '-1' ? null : textOf((await this.#take(Number(rest) + 2)).subarray(0, Number(rest)));
      case '*': {
        if (rest === '-1') return null;
        const items: Reply[] = [];
        for (let left = Number(rest); left > 0; left--) items.push(await this.#reply());
        return items;
      }
      default:
        // The key of another program whose name happens to match: the expected one is missing.
        if (line.startsWith('-WRONGTYPE')) return null;
        throw new Error(line[0] === '-' ? rest : `an answer that is not Redis's: ${line.slice(0, 40)}`);
    }
  }

  /** Lines are short: a sign and a number, or a message. */
  async #line(): Promise<string> {
    for (let looked = 0; ; ) {
      const all = this.#held.length === 1 ? (this.#held[0] as Buffer) : Buffer.concat(this.#held);
      this.#held = [all];
      const end = all.indexOf(CR, looked);
      if (end >= 0 && all.length >= end + 2) return (await this.#take(end + 2)).toString('utf8', 0, end);
      looked = Math.max(0, all.length - 1);
      await this.#more();
    }
  }

  async #take(bytes: number): Promise<Buffer> {
    while (this.#size < bytes) await this.#more();
    const all = this.#held.length === 1 ? (this.#held[0] as Buffer) : Buffer.concat(this.#held);
    this.#held = [all.subarray(bytes)];
    this.#size -= bytes;
    return all.subarray(0, bytes);
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#chunks.next();
    if (done) throw new Error('the connection was closed');
    this.#held.push(value);
    this.#size += value.length;
  }

  #failed(error: unknown): CliError {
    this.close();
    const message = messageOf(error) || String((error as { code?: unknown }).code);
    const hint = /NOAUTH|WRONGPASS/.test(message)
      ? 'Name the password in the address: redis://user:password@…'
      : undefined;
    return new CliError(`Redis at ${this.shown}: ${message}`, hint, 'source_failed');
  }
}

/** Bytes as text. Invalid UTF-8 becomes half surrogate pairs, so that the check of its job refuses it. */
function textOf(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  return bytes.toString('latin1').replace(/[\x80-\xff]/g, (char) => String.fromCharCode(0xdc00 + char.charCodeAt(0)));
}

/** A text as a pattern that matches it alone. */
export const literally = (text: string): string => text.replace(/[\\*?[\]^]/g, '\\$&');
