/** The socket of a worker that pulls, as any language would hold it. */
import { until } from './clock';
import { type Json, server, type TestServer, V1 } from './server';

export const SUBPROTOCOL = 'tocsin.worker.v1';

export class WorkerSocket {
  readonly messages: Json[] = [];
  closed: { code: number; reason: string } | undefined;
  private lastId = 0;

  private constructor(
    readonly socket: WebSocket,
    readonly response: Response,
  ) {
    socket.addEventListener('message', ({ data }) => {
      const text = String(data);
      this.messages.push(text.startsWith('{') ? JSON.parse(text) : { type: text });
    });
    socket.addEventListener('close', ({ code, reason }) => {
      this.closed = { code, reason };
    });
    socket.accept();
  }

  /** Connects a worker, `w1` unless the query names another. */
  static async open(
    queue: string,
    query: Record<string, string> = {},
    from: TestServer = server,
  ): Promise<WorkerSocket> {
    const url = `http://localhost${V1}/workers/socket?${new URLSearchParams({ queue, worker_id: 'w1', ...query })}`;
    const headers = { Upgrade: 'websocket', 'Sec-WebSocket-Protocol': SUBPROTOCOL };
    const response = await from.send(new Request(url, { headers }));
    if (!response.webSocket) throw new Error(`${response.status}: ${await response.text()}`);
    return new WorkerSocket(response.webSocket, response);
  }

  say(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  ready(count: number): void {
    this.say({ type: 'ready', count });
  }

  of(type: string): Json[] {
    return this.messages.filter((message) => message.type === type);
  }

  /** All jobs that it was sent. */
  get jobs(): Json[] {
    return this.of('jobs').flatMap(({ jobs }) => jobs as Json[]);
  }

  async get(type: string, count = 1): Promise<Json> {
    await until(
      () => this.of(type).length >= count,
      () => `${count} messages of type ${type}; there are ${JSON.stringify(this.messages.slice(-5))}`,
    );
    return this.of(type)[count - 1] as Json;
  }

  /** Waits until it was sent so many jobs. */
  async given(count: number): Promise<Json[]> {
    await until(
      () => this.jobs.length >= count,
      () =>
        `${count} jobs; there are ${this.jobs.length}, and ${JSON.stringify(this.messages.slice(-2)).slice(0, 500)}`,
    );
    return this.jobs;
  }

  /** Sends reports, and waits for their outcomes. */
  async report(reports: Json[], more: Json = {}): Promise<Json> {
    const id = ++this.lastId;
    this.say({ type: 'report', id, reports, ...more });
    await until(
      () => this.of('reported').some((told) => told.id === id),
      () => `the outcomes of ${id}; there are ${JSON.stringify(this.messages.slice(-5))}`,
    );
    return this.of('reported').find((told) => told.id === id) as Json;
  }

  async heartbeat(body: Json = {}): Promise<Json> {
    const before = this.of('heartbeat').length;
    this.say({ type: 'heartbeat', ...body });
    return this.get('heartbeat', before + 1);
  }

  /** Until the server has dealt with all that was said before. */
  async settled(): Promise<void> {
    await this.report([]);
  }

  async isClosed(): Promise<{ code: number; reason: string }> {
    await until(() => this.closed !== undefined, 'the socket to be closed');
    return this.closed as { code: number; reason: string };
  }

  close(): void {
    this.socket.close(1000);
  }
}
