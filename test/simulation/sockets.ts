/** Hibernating sockets: the runtime holds them and what is attached to them, whatever becomes of the object. */
import { type QueueSocketEvents, WorkerChannel } from '../../src/client/worker-channel';
import { ApiError, unavailable } from '../../src/job/errors';
import { renderHeartbeat } from '../../src/job/worker/heartbeat';
import type { OpenQueue } from '../../src/queue/features/pull/socket/socket-claims';
import { WorkerSockets } from '../../src/queue/features/pull/socket/sockets';
import { heartbeat } from '../../src/queue/jobs/heartbeat';
import { writePulled } from '../../src/queue/jobs/streams';
import { holds } from './agree';
import { type ModelSocket, WORKERS } from './model-pulls';
import type { Scene } from './scene';
import { typeNamed } from './wire';

type Worker = Pick<ModelSocket, 'worker' | 'visibility'>;

/** Bytes that the platform keeps with a socket. */
const MAX_ATTACHMENT = 2_048;

/** Marks the sockets of workers. */
const TAG = 'worker';

/** One socket, from end to end. */
export class Connection {
  attachment = '';
  isOpen = true;
  /** What its object sends is refused by the runtime. */
  isBroken = false;
  /** The worker's end, as the client library has it. */
  readonly worker: WorkerChannel;
  /** What the worker has heard since it was last asked. */
  jobs: { id: string; attempt: number }[] = [];
  refusals: unknown[] = [];
  taken: string[] = [];
  /** What the worker believes that the queue still owes it. */
  expected = 0;
  private readonly listeners: ((event: { data: unknown }) => void)[] = [];

  constructor(
    readonly name: string,
    private readonly say: (from: Connection, text: string) => void,
    hears: { sent(of: Connection, count: number): void; refused(of: Connection): void },
  ) {
    const events: QueueSocketEvents = {
      jobs: (jobs) => {
        this.expected -= jobs.length;
        hears.sent(this, jobs.length);
        this.jobs.push(...jobs.map(({ id, attempt }) => ({ id, attempt: Number(attempt) })));
      },
      taken: (id) => void this.taken.push(id),
      directive: () => undefined,
      refused: (error) => {
        this.expected = 0;
        this.refusals.push(error);
        hears.refused(this);
      },
      lost: () => undefined,
    };
    const socket = {
      send: (text: string) => this.say(this, text),
      close: () => undefined,
      addEventListener: (type: string, listener: (event: { data: unknown }) => void) => {
        if (type === 'message') this.listeners.push(listener);
      },
    };
    this.worker = new WorkerChannel(socket, events);
  }

  /** The object has sent something. */
  deliver(text: string): void {
    if (!this.isOpen || this.isBroken) throw new Error('the socket is closed');
    for (const listener of this.listeners) listener({ data: text });
  }

  /** What the object says that the worker is ready for. */
  get kept(): number {
    return (JSON.parse(this.attachment) as { ready: number }).ready;
  }
}

/** What happens between the sockets and the queue. */
export interface Between extends Pick<OpenQueue['pull'], 'report'> {
  /** The next operation gives jobs back that did not arrive. */
  beforeWrite(): void;
  /** The next operation extends what a worker holds. */
  beforeHeartbeat(worker: string): void;
}

/** The sockets of an object, for as long as it lives. */
export class Life {
  readonly sockets: WorkerSockets;
  /** How the next heartbeat fails, if it does. */
  heartbeatFails = false;
  private isOver = false;
  private readonly ends = new Map<Connection, WebSocket>();
  private readonly underWay = new Set<Promise<unknown>>();

  constructor(
    scene: Scene,
    private readonly connections: readonly Connection[],
    silenced: (worker: string) => boolean,
    between: Between,
  ) {
    const { world } = scene;
    const { engine } = world;
    this.sockets = new WorkerSockets({
      ctx: {
        acceptWebSocket: (socket: WebSocket) => socket,
        getWebSockets: () => this.open.map((connection) => this.endOf(connection)),
        setWebSocketAutoResponse: () => undefined,
        getTags: () => [TAG],
      },
      now: () => world.now,
      keepAlive: (promise) => {
        this.underWay.add(promise);
        const done = () => this.underWay.delete(promise);
        promise.then(done, done);
      },
      isSilenced: silenced,
      askSilenced: async (worker) => silenced(worker),
      keyOf: async () => undefined,
      writeStream: (request) => writePulled(engine.around, request, world.now),
      heartbeat: async ({ worker_id }) => {
        if (this.heartbeatFails) throw unavailable('The directory could not be asked.');
        between.beforeHeartbeat(worker_id);
        const told = await engine.write((now) => heartbeat(engine.q, { worker_id }, now));
        if (!told.ok) throw new ApiError(told.error);
        return renderHeartbeat({ state: 'running', ...told.value }, world.now);
      },
      enqueue: () => Promise.reject(new Error('no worker of this history enqueues')),
      directiveOf: async () => 'running',
    });
    const { pull } = engine;
    const open = {
      q: engine.q,
      write: <T>(operation: (now: number) => T) => {
        between.beforeWrite();
        return engine.write(operation);
      },
      pull: {
        claim: pull.claim.bind(pull),
        withdraw: pull.withdraw.bind(pull),
        report: between.report,
      },
    };
    this.sockets.attach(open as unknown as OpenQueue);
  }

  get isBusy(): boolean {
    return this.underWay.size > 0;
  }

  private get open(): Connection[] {
    return this.connections.filter(({ isOpen }) => isOpen);
  }

  /** A worker connects. */
  accept(connection: Connection, worker: Worker): void {
    const globals = globalThis as unknown as { WebSocketPair: unknown };
    const RealPair = WebSocketPair;
    const ours = this.endOf(connection);
    globals.WebSocketPair = function pair() {
      return { 0: new RealPair()[0], 1: ours };
    };
    try {
      const kinds = WORKERS[worker.worker];
      this.sockets.accept({
        worker_id: worker.worker,
        ...(kinds && { types: kinds.map(typeNamed) }),
        ...(worker.visibility > 0 && { visibility_timeout_ms: worker.visibility }),
      });
    } finally {
      globals.WebSocketPair = RealPair;
    }
  }

  /** The object's end of a socket: it says nothing any more once the object has died. */
  endOf(connection: Connection): WebSocket {
    const known = this.ends.get(connection);
    if (known) return known;
    const end = {
      send: (text: string) => {
        if (!this.isOver) connection.deliver(text);
      },
      close: () => {
        if (!this.isOver) connection.isOpen = false;
      },
      serializeAttachment: (value: unknown) => {
        if (this.isOver) return;
        connection.attachment = JSON.stringify(value);
        holds(connection.attachment.length <= MAX_ATTACHMENT, () => 'the attachment is too large');
      },
      deserializeAttachment: () => JSON.parse(connection.attachment) as unknown,
    } as unknown as WebSocket;
    this.ends.set(connection, end);
    return end;
  }

  /** The object has died. */
  end(): void {
    this.isOver = true;
  }
}
