/** Workers that wait for jobs, as the documents have it: in the order of their arrival, over fetches and sockets alike. */
import type { JobKind, Model, ModelJob } from './model';
import { openings } from './model-queue';
import type { Text } from './texts';

/** What the workers of each name take. */
export const WORKERS: Record<string, readonly JobKind[] | undefined> = {
  ann: undefined,
  bob: undefined,
  xen: ['x'],
  yak: ['y'],
  zoe: ['x', 'y'],
};

export type WorkerName = keyof typeof WORKERS;

/** Jobs that a socket may be ready for, and that one claim takes. */
export const MAX_READY = 1_000;
export const MAX_CLAIM = 100;

/** A claim that waits. */
export interface ModelWaiter {
  name: string;
  worker: string;
  count: number;
  visibility: number;
  /** Epoch ms. */
  deadline: number;
  /** The socket that it stands for. */
  socket?: string;
}

export interface ModelSocket {
  name: string;
  worker: string;
  visibility: number;
  ready: number;
  /** Jobs that were claimed for it and that it has not been sent. */
  owed: number;
  /** It has said that it takes no more jobs, and has not been told that none comes. */
  isPausing?: boolean;
}

/** Jobs that a claim has taken, and its worker must get. */
export interface Given {
  waiter: string;
  socket?: string | undefined;
  jobs: { id: string; attempt: number; checkpoint: Text | undefined }[];
}

interface PullBook {
  line: ModelWaiter[];
  sockets: ModelSocket[];
  silenced: string[];
  given: Given[];
  /** The last claim of each job that is known, by the job's key. */
  seen: Map<number, number>;
}

export function pullsOf(model: Model): PullBook {
  return model.part('pulls', () => ({ line: [], sockets: [], silenced: [], given: [], seen: new Map() }));
}

export function isSilenced(model: Model, worker: string): boolean {
  return pullsOf(model).silenced.includes(worker);
}

/** A socket that is ready stands in the line, behind the others unless it stands there already. */
export function stand(model: Model, socket: ModelSocket): void {
  const { line } = pullsOf(model);
  const count = Math.min(socket.ready - socket.owed, MAX_CLAIM);
  const waiter = line.find((other) => other.socket === socket.name);
  if (isSilenced(model, socket.worker) || count <= 0) return;
  if (waiter) waiter.count = count;
  else {
    const { name, worker, visibility } = socket;
    line.push({ ...{ name, worker, count, visibility, socket: name }, deadline: Number.POSITIVE_INFINITY });
  }
}

export function leave(model: Model, isGone: (waiter: ModelWaiter) => boolean): void {
  const book = pullsOf(model);
  book.line = book.line.filter((waiter) => !isGone(waiter));
}

/** The object has died: those who fetched ask again, sockets are held by the runtime. */
export function restarted(model: Model): void {
  const book = pullsOf(model);
  book.line = [];
  book.given = [];
  for (const socket of book.sockets) {
    socket.owed = 0;
    stand(model, socket);
  }
}

/** Does a worker of this name take the job? */
export function accepts(worker: string, { order }: ModelJob): boolean {
  const kinds = WORKERS[worker];
  return !kinds || (order.kind !== undefined && kinds.includes(order.kind));
}

/** Moments from now on at which something may change for those who wait. */
export function moments(model: Model, now: number): number[] {
  const all = [now, ...openings(model, now)];
  for (const { state, availableAt } of model.jobs) if (state === 'waiting') all.push(availableAt);
  for (const { starts, override } of Object.values(model.keys)) {
    if (override) all.push(override.expiresAt);
    for (const start of starts.slice(-4)) all.push(start + 400, start + 5_000);
  }
  return [...new Set(all)].filter((at) => at >= now && Number.isFinite(at)).sort((a, b) => a - b);
}
