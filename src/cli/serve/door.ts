/** A process with a state folder: it holds the lock and a socket for other commands, mended if `run` is emptied. */
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Answerer, answerAt, isWindows, type Occupant, type OpenSocket, occupantOf } from './local-socket';
import { InUse, takeLock } from './lock';

const WATCH_MS = 1_000;

export interface OpenDoor {
  /** Looks after the sockets now. @returns false where another process uses the folder by now */
  check(): Promise<boolean>;
  close(): void;
}

/** Locks a folder and listens at its door. @param lost another process has it: end @throws {InUse} if so already */
export async function openDoor(
  path: string,
  folder: string,
  self: Omit<Occupant, 'id'>,
  answer: Answerer,
  lost: (error: InUse) => void = () => undefined,
): Promise<OpenDoor> {
  if (isWindows) return await openPipe(path, folder, self, answer);
  const run = dirname(path);
  const described = { ...self, id: randomUUID() };
  const open = async () => {
    // Earlier versions have this socket alone.
    const other = await occupantOf(path);
    if (other) throw new InUse(folder, other);
    return await answerAt(path, () => described, answer);
  };
  let lock = await takeLock({ run, folder, self, answer });
  let door: OpenSocket;
  try {
    door = await open();
  } catch (error) {
    lock.close();
    throw error;
  }
  let isClosed = false;
  const mend = async () => {
    if (isClosed) return;
    if (!lock.isThere()) {
      mkdirSync(run, { recursive: true, mode: 0o700 });
      const taken = await takeLock({ run, folder, self, answer, isOwner: true });
      lock.close();
      lock = taken;
    }
    if (!door.isThere()) {
      const opened = await open();
      door.close();
      door = opened;
    }
  };
  let last = Promise.resolve(true);
  const check = () => {
    last = last.then(mend).then(
      () => true,
      (error: Error) => {
        // What else fails, such as a full disk, is tried again.
        if (error instanceof InUse) lost(error);
        return !(error instanceof InUse);
      },
    );
    return last;
  };
  const watch = setInterval(() => void check(), WATCH_MS);
  watch.unref();
  return {
    check,
    close: () => {
      isClosed = true;
      clearInterval(watch);
      door.close();
      lock.close();
    },
  };
}

/** The system lets one process have a pipe of a name, until that ends. */
async function openPipe(path: string, folder: string, self: Omit<Occupant, 'id'>, answer: Answerer): Promise<OpenDoor> {
  try {
    const door = await answerAt(path, () => ({ ...self, id: path }), answer);
    return { check: () => Promise.resolve(true), close: door.close };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new InUse(folder, (await occupantOf(path)) ?? {});
  }
}
