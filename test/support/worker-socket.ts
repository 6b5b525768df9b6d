/** The socket of a worker that pulls, as any language would hold it. */
import { until } from './clock';
import { type Json, server, type TestServer } from './server';
import { TestSocket, upgrade } from './socket';

export const SUBPROTOCOL = 'tocsin.worker.v1';

export class WorkerSocket extends TestSocket {
  private lastId = 0;

  /** Connects a worker, `w1` unless the query names another. */
  static async open(
    queue: string,
    query: Record<string, string> = {},
    from: TestServer = server,
  ): Promise<WorkerSocket> {
    const path = `/workers/socket?${new URLSearchParams({ queue, worker_id: 'w1', ...query })}`;
    const response = await upgrade(path, { 'Sec-WebSocket-Protocol': SUBPROTOCOL }, from);
    return new WorkerSocket(response, 'worker-socket.open');
  }

  ready(count: number): void {
    this.say({ type: 'ready', count });
  }

  /** All jobs that it was sent. */
  get jobs(): Json[] {
    return this.of('jobs').flatMap(({ jobs }) => jobs as Json[]);
  }

  /** Waits for the `count`th message of a type. */
  async get(type: string, count = 1): Promise<Json> {
    return (await this.heard(type, count))[count - 1] as Json;
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

  /** Sends jobs, and waits for the answer: `enqueued` or `error`. */
  async enqueue(jobs: unknown, more: Json = {}): Promise<Json> {
    const id = ++this.lastId;
    this.say({ type: 'enqueue', id, jobs, ...more });
    return this.answerTo(id);
  }

  /** Waits for what a message with this id was answered. */
  async answerTo(id: number): Promise<Json> {
    const find = () => this.messages.find((message) => message.id === id);
    await until(
      () => find() !== undefined,
      () => `the answer to ${id}; there are ${JSON.stringify(this.messages.slice(-5))}`,
    );
    return find() as Json;
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
