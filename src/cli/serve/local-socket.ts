/** Sockets in the state folder for processes of this machine: JSON lines; a request lasts as long as its connection. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, renameSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { atMost } from '../../handler/timing';
import { CliError } from '../failure';

/** How the process behind a socket describes itself. */
export interface Occupant {
  id: string;
  pid: number;
  /** Absent: a command that uses the folder for a moment. */
  url?: string;
  /** It asks for the lock and does not have it yet. */
  isCandidate?: boolean;
}

export type Answerer = (request: string) => Promise<{ answer: object; ended?: () => void }>;

export interface OpenSocket {
  /** False once the socket file was removed or replaced. */
  isThere(): boolean;
  close(): void;
}

/** A socket with a listener answers within this time, ms. */
const ANSWER_MS = 2_000;

/** Longest path of a socket, bytes; systems differ a little. */
const MAX_SOCKET_PATH = 100;

export const isWindows = process.platform === 'win32';

/** Calls `use`, which must bind or connect synchronously, with a path that is short enough for a socket. */
export function reach<T>(path: string, use: (path: string) => T): T {
  if (isWindows || Buffer.byteLength(path) <= MAX_SOCKET_PATH) return use(path);
  const before = process.cwd();
  process.chdir(dirname(path));
  try {
    return use(basename(path));
  } finally {
    process.chdir(before);
  }
}

/**
 * Listens at a socket, replacing the one there. It is named once it listens, so a socket that refuses connections is
 * dead. Closing removes the name only while it is this socket's. @param self answers `who`
 */
export async function answerAt(path: string, self: () => Occupant, answer: Answerer): Promise<OpenSocket> {
  const server = createServer((socket) => serve(socket, self, answer));
  // A connection that cannot be accepted is that one's failure.
  server.on('error', () => undefined);
  if (isWindows) {
    await once(server.listen(path), 'listening');
    return { isThere: () => true, close: () => server.close() };
  }
  // Node removes the path that it bound when it closes, even if that names another socket by then. So it binds one
  // that is never used again.
  const bound = join(dirname(path), `.${randomBytes(9).toString('base64url')}`);
  await reach(bound, (short) => once(server.listen(short), 'listening'));
  chmodSync(bound, 0o600);
  const own = inode(bound);
  renameSync(bound, path);
  const isThere = () => inode(path) === own;
  return {
    isThere,
    close: () => {
      if (isThere()) rmSync(path, { force: true });
      server.close();
    },
  };
}

const inode = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino;

/** Calls `take` with each whole line of a text that comes in pieces. */
export function byLine(take: (line: string) => void): (piece: string) => void {
  let rest = '';
  return (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) take(line);
  };
}

function serve(socket: Socket, self: () => Occupant, answer: Answerer): void {
  let ended: (() => void) | undefined;
  let isOver = false;
  socket.setEncoding('utf8');
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    isOver = true;
    ended?.();
    ended = undefined;
  });
  const take = async (request: string) => {
    if (request === 'who') return void socket.write(`${JSON.stringify(self())}\n`);
    const given = await answer(request).catch((error: Error) => ({
      answer: { error: error.message },
      ended: undefined,
    }));
    ended?.();
    ended = given.ended;
    if (isOver) ended?.();
    else socket.write(`${JSON.stringify(given.answer)}\n`);
  };
  const read = byLine((line) => void take(line));
  socket.on('data', read);
}

/** Who listens at a socket; undefined: no process. One that does not answer in time counts, too. */
export async function occupantOf(path: string): Promise<Partial<Occupant> | undefined> {
  const door = await knock(path);
  if (!door) return undefined;
  try {
    return await door.ask('who');
  } catch {
    // It ended between the two, or it stands still.
    return door.isOver() ? undefined : {};
  } finally {
    door.close();
  }
}

export interface Door {
  /** @throws {CliError} where it says no, or nothing in time */
  ask(request: string, withinMs?: number): Promise<Record<string, unknown>>;
  isOver(): boolean;
  close(): void;
}

/** What a connection fails with where no one listens. */
const NO_ONE = ['ENOENT', 'ENOTDIR', 'ECONNREFUSED', 'ECONNRESET', 'ENOTSOCK'];

/** Connects. @returns undefined where no one listens @throws {CliError} where that cannot be found out */
export async function knock(path: string): Promise<Door | undefined> {
  const socket = reach(path, (short) => connect(short));
  const failed = await once(socket, 'connect').then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error,
  );
  if (failed && NO_ONE.includes(failed.code ?? '')) return undefined;
  if (failed) throw new CliError(`${path} cannot be reached: ${failed.message}.`, 'Another user may serve the folder.');
  let isOver = false;
  const waiting: ((line: string | undefined) => void)[] = [];
  socket.setEncoding('utf8');
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    isOver = true;
    for (const give of waiting.splice(0)) give(undefined);
  });
  const read = byLine((line) => waiting.shift()?.(line));
  socket.on('data', read);
  return {
    isOver: () => isOver,
    close: () => socket.destroy(),
    async ask(request, withinMs = ANSWER_MS) {
      const answered = new Promise<string | undefined>((resolve) => {
        if (isOver) resolve(undefined);
        else waiting.push(resolve);
      });
      socket.write(`${request}\n`);
      const line = (await atMost(withinMs, answered)) ? await answered : undefined;
      if (line === undefined) throw new CliError('The process that serves this folder does not answer.');
      const answer = JSON.parse(line) as Record<string, unknown>;
      if (typeof answer.error === 'string') throw new CliError(answer.error);
      return answer;
    },
  };
}
