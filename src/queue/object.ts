/** The queue object: one per queue. Its answers are in `verbs.ts`, its life in `life.ts`. */
import type { Env } from '../config';
import { followed } from '../durable/followed';
import { upgradeAnswer } from '../durable/upgrade';
import type { QueueApi } from '../rpc/queue';
import { wantedConnection } from '../rpc/worker-socket';
import { QueueLife } from './life';
import { VERBS } from './verbs';

export class QueueObject extends followed<Env, QueueLife, QueueApi>(VERBS) {
  readonly life: QueueLife;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.life = new QueueLife(ctx, env, this);
  }

  override async alarm(): Promise<void> {
    await this.life.alarm();
  }

  override async fetch(request: Request): Promise<Response> {
    const worker = wantedConnection(request);
    if (!worker) return (await super.fetch?.(request)) ?? new Response(null, { status: 404 });
    return upgradeAnswer(await this.life.connectWorker(worker));
  }

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    if (this.life.workers.knows(socket)) this.life.workers.heard(socket, message);
    else void super.webSocketMessage?.(socket, message);
  }

  override webSocketClose(socket: WebSocket, code: number, reason: string, wasClean: boolean): void {
    if (this.life.workers.knows(socket)) this.life.workers.left(socket);
    else void super.webSocketClose?.(socket, code, reason, wasClean);
  }

  override webSocketError(socket: WebSocket, error: unknown): void {
    if (this.life.workers.knows(socket)) this.life.workers.left(socket);
    else void super.webSocketError?.(socket, error);
  }
}
