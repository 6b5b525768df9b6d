/**
 * The socket at which a running `serve` answers. It tells that a folder is in use, and other commands ask there. A line
 * of JSON each way; what was asked for lasts as long as the connection.
 */
import { randomUUID } from 'node:crypto';
import { chmodSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { CliError } from '../failure';

/** How a `serve` describes itself. */
export interface Occupant {
  /** Of this opening of the door. */
  id: string;
  pid: number;
  /** Absent: a command that uses the folder for a moment. */
  url?: string;
}

/** What a request gets: an answer, and what to do when its connection ends. */
export type Answerer = (request: string) => Promise<{ answer: object; ended?: () => void }>;

/** A socket that somebody listens at answers within this time, ms. */
const ANSWER_MS = 2_000;

/**
 * Listens at the socket, in the place of one that no one listens at.
 * @throws {CliError} where another process uses the folder
 */
export async function openDoor(path: string, folder: string, self: Omit<Occupant, 'id'>, answer: Answerer) {
  const id = randomUUID();
  const inUse = ({ pid, url }: Partial<Occupant>) =>
    new CliError(
      `${folder} is in use${pid === undefined ? '' : ` by process ${pid}`}${url ? `, which serves ${url}` : ''}.`,
      'One process serves a folder. End that one, or name another folder with --state.',
      'in_use',
    );
  const before = inode(path);
  const other = await occupantOf(path);
  if (other) throw inUse(other);
  // A faster process has made a new one.
  if (before !== undefined && inode(path) === before) rmSync(path, { force: true });
  const server = createServer((socket) => serve(socket, { ...self, id }, answer));
  try {
    await listening(server, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') throw inUse((await occupantOf(path)) ?? {});
    throw error;
  }
  if (process.platform !== 'win32') chmodSync(path, 0o600);
  const found = await occupantOf(path);
  if (found?.id !== id) {
    server.close();
    throw inUse(found ?? {});
  }
  return {
    close: () => {
      server.close();
      rmSync(path, { force: true });
    },
  };
}

function inode(path: string): number | undefined {
  try {
    return statSync(path).ino;
  } catch {
    return undefined;
  }
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => resolve());
  });
}

function serve(socket: Socket, self: Occupant, answer: Answerer): void {
  let ended: (() => void) | undefined;
  let isOver = false;
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    isOver = true;
    ended?.();
    ended = undefined;
  });
  socket.on('data', (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) void take(line);
  });
  const take = async (request: string) => {
    if (request === 'who') return void socket.write(`${JSON.stringify(self)}\n`);
    const given = await answer(request).catch((error: Error) => ({
      answer: { error: error.message },
      ended: undefined,
    }));
    ended?.();
    ended = given.ended;
    if (isOver) ended?.();
    else socket.write(`${JSON.stringify(given.answer)}\n`);
  };
}

/** Who uses a folder; undefined: no one. */
export async function occupantOf(path: string): Promise<Occupant | undefined> {
  const door = await knock(path);
  if (!door) return undefined;
  try {
    return (await door.ask('who')) as unknown as Occupant;
  } finally {
    door.close();
  }
}

/** A connection to a running `serve`. */
export interface Door {
  /** @throws {CliError} where it says no, or nothing in time */
  ask(request: string, withinMs?: number): Promise<Record<string, unknown>>;
  /** Has the connection ended? */
  isOver(): boolean;
  close(): void;
}

/** Connects. @returns undefined where no one listens */
export async function knock(path: string): Promise<Door | undefined> {
  const socket = connect(path);
  const isOpen = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  if (!isOpen) return undefined;
  let isOver = false;
  let rest = '';
  const waiting: ((line: string | undefined) => void)[] = [];
  socket.setEncoding('utf8');
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    isOver = true;
    for (const give of waiting.splice(0)) give(undefined);
  });
  socket.on('data', (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) waiting.shift()?.(line);
  });
  return {
    isOver: () => isOver,
    close: () => socket.destroy(),
    async ask(request, withinMs = ANSWER_MS) {
      const answered = new Promise<string | undefined>((resolve) => {
        if (isOver) resolve(undefined);
        else waiting.push(resolve);
      });
      socket.write(`${request}\n`);
      const late = new AbortController();
      const line = await Promise.race([
        answered,
        pause(withinMs, undefined, { signal: late.signal }).catch(() => undefined),
      ]);
      late.abort();
      if (line === undefined) throw new CliError('The process that serves this folder does not answer.');
      const answer = JSON.parse(line) as Record<string, unknown>;
      if (typeof answer.error === 'string') throw new CliError(answer.error);
      return answer;
    },
  };
}
