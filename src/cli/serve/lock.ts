/**
 * The lock of a state folder: its owner listens at a socket, which refuses connections once its process has ended.
 *
 *     candidate   listens at `lock-<id>`, a name that is never used again
 *                 → refused, where another socket is that of an owner, or of a candidate with a smaller id
 *                 → waits, while there are candidates with larger ids: they are refused, or looked before it came
 *                 → owner, when no other socket answers
 *     owner       until it closes its socket, or its process ends
 *
 * Of two candidates, the later one finds the other, so never both own it. Dead sockets never answer again; anyone may
 * remove them.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CliError } from '../failure';
import { type Answerer, answerAt, type Occupant, type OpenSocket, occupantOf } from './local-socket';

const PREFIX = 'lock-';
/** Candidates are looked at again after this time, ms. */
const LOOK_MS = 5;
/** A candidate that is neither refused nor owner after this time stands still, ms. */
const PATIENCE_MS = 10_000;

export class InUse extends CliError {
  constructor(folder: string, { pid, url }: Partial<Occupant>) {
    super(
      `${folder} is in use${pid === undefined ? '' : ` by process ${pid}`}${url ? `, which serves ${url}` : ''}.`,
      'One process serves a folder. End that one, or name another folder with --state.',
      'in_use',
    );
  }
}

export interface LockOptions {
  run: string;
  folder: string;
  self: Omit<Occupant, 'id'>;
  answer: Answerer;
  /** This process had the lock, and its socket was removed: it goes before all candidates. */
  isOwner?: boolean;
}

/** Takes the lock. @throws {InUse} where another process has it */
export async function takeLock({ run, folder, self, answer, isOwner = false }: LockOptions): Promise<OpenSocket> {
  const id = randomBytes(9).toString('base64url');
  let isCandidate = !isOwner;
  const socket = await answerAt(join(run, PREFIX + id), () => ({ ...self, id, isCandidate }), answer);
  const stronger = (one: Partial<Occupant>) => !one.isCandidate || (!isOwner && (one.id ?? '') < id);
  try {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      const others = await othersIn(run, PREFIX + id);
      const winner = others.find(stronger) ?? (performance.now() > end ? others[0] : undefined);
      if (winner) throw new InUse(folder, winner);
      if (others.length === 0) break;
      await pause(LOOK_MS);
    }
    isCandidate = false;
    return socket;
  } catch (error) {
    socket.close();
    throw error;
  }
}

/** All others that answer. The sockets of those that have ended are removed. */
async function othersIn(run: string, own: string): Promise<Partial<Occupant>[]> {
  const names = readdirSync(run).filter((name) => name.startsWith(PREFIX) && name !== own);
  const found = await Promise.all(
    names.map(async (name) => {
      const other = await occupantOf(join(run, name));
      if (!other) rmSync(join(run, name), { force: true });
      return other ?? [];
    }),
  );
  return found.flat();
}
