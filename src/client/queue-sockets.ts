/**
 * The sockets of a running worker, one to each queue, for one budget of jobs. Each queue gets its share, and more when
 * it has used that up; so one active queue fills the worker in a few steps, and at most twice the budget arrives.
 *
 * A queue gets more only while all before it in the order are idle.
 */

import type { Puller } from './pull';
import type { HeartbeatAnswer } from './pull-types';
import type { ReportOutcome, SentReport } from './report';
import { type QueueSocketHost, SocketKeeper } from './socket-keeper';

/** Most queues that have a socket each; a worker of more queues fetches. */
const MAX_QUEUES = 10;

/** A queue that may send jobs but sends none for this time is idle, ms. */
const QUIET_MS = 50;

export class QueueSockets {
  /** In the order of the queues. */
  readonly #keepers: readonly SocketKeeper[];
  /** Reports on their way over sockets: their jobs run no more. */
  #reporting = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** @param isWanted may there be sockets at all? */
  constructor(
    worker: Puller,
    private readonly host: QueueSocketHost,
    isWanted: boolean,
  ) {
    const { queues } = worker;
    const canBe = isWanted && queues.length <= MAX_QUEUES && !queues.some(isPool);
    this.#keepers = canBe ? [...new Set(queues)].map((queue) => new SocketKeeper(worker, queue, host)) : [];
  }

  get isOpen(): boolean {
    return this.#keepers.some(({ isOpen }) => isOpen);
  }

  isOpenTo(queue: string | undefined): boolean {
    return this.#keepers.some((keeper) => keeper.queue === queue && keeper.isOpen);
  }

  get unconnected(): readonly string[] {
    return this.#keepers.flatMap(({ isOpen, queue }) => (isOpen ? [] : [queue]));
  }

  async connect(): Promise<void> {
    await Promise.all(this.#keepers.map((keeper) => keeper.connect()));
  }

  /** Takes as many jobs more as there is room for. @param room beside those that the worker has */
  fill(room: number): void {
    for (const keeper of this.#keepers) keeper.take(this.#moreFor(keeper, room));
  }

  /** Sends reports over their queues' sockets, else over HTTP. @param room for more jobs; undefined: takes none */
  async report(worker: Puller, reports: readonly SentReport[], room: number | undefined): Promise<ReportOutcome[]> {
    const keepers = new Map(this.#keepers.map((keeper) => [keeper.queue, keeper]));
    const groups = new Map<SocketKeeper | undefined, [number, SentReport][]>();
    for (const [index, report] of reports.entries()) {
      const keeper = keepers.get(report.queue ?? '');
      const group = groups.get(keeper);
      if (group) group.push([index, report]);
      else groups.set(keeper, [[index, report]]);
    }
    const outcomes: ReportOutcome[] = [];
    const send = async (keeper: SocketKeeper | undefined, group: [number, SentReport][]): Promise<void> => {
      const own = group.map(([, report]) => report);
      const sent = keeper?.canSend(own) ? await this.#over(keeper, worker, own, room) : await worker.sendReports(own);
      for (const [at, [index]] of group.entries()) outcomes[index] = sent[at] as ReportOutcome;
    };
    await Promise.all([...groups].map(([keeper, group]) => send(keeper, group)));
    return outcomes;
  }

  async #over(
    keeper: SocketKeeper,
    worker: Puller,
    reports: readonly SentReport[],
    room: number | undefined,
  ): Promise<ReportOutcome[]> {
    const ended = reports.filter(({ isEnd }) => isEnd).length;
    this.#reporting += ended;
    try {
      return await keeper.report(worker, reports, room === undefined ? 0 : this.#moreFor(keeper, room));
    } finally {
      this.#reporting -= ended;
    }
  }

  #moreFor(keeper: SocketKeeper, room: number): number {
    const free = room + this.#reporting;
    if (free <= 0 || !keeper.isOpen) return 0;
    const open = this.#keepers.filter(({ isOpen }) => isOpen);
    const before = open.slice(0, open.indexOf(keeper));
    if (before.some((other) => !other.isQuiet(QUIET_MS) && !this.#isFull(other))) {
      this.#lookAgain();
      return 0;
    }
    const most = Math.min(Math.ceil(free / open.length), this.host.roomIn(keeper.queue));
    return Math.max(0, most - keeper.ready);
  }

  #isFull({ ready, queue }: SocketKeeper): boolean {
    return ready === 0 && this.host.roomIn(queue) <= 0;
  }

  #lookAgain(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.host.changed();
    }, QUIET_MS);
  }

  /** As {@link SocketKeeper.stream}. */
  stream(queue: string | undefined, members: string): Promise<unknown> | undefined {
    return this.#keepers.find((keeper) => keeper.queue === queue)?.stream(members);
  }

  /** Sends a heartbeat over a socket, and checks the others. @param body as over HTTP @returns undefined: no answer */
  async heartbeat(body: string): Promise<HeartbeatAnswer | undefined> {
    const [first, ...others] = this.#keepers.filter(({ isOpen }) => isOpen);
    for (const other of others) void other.makeSure();
    return await first?.heartbeat(body);
  }

  async pause(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    await Promise.all(this.#keepers.map((keeper) => keeper.pause()));
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const keeper of this.#keepers) keeper.close();
  }
}

/** The server chooses from which queue of a pool each job comes; a socket belongs to one queue. */
export const isPool = (name: string) => name.startsWith('pool:');
