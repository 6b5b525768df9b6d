/** The queue object's methods for workers that pull, and for what running jobs report. */
import type { Outcome } from '../../job/errors';
import type { JobView } from '../../job/record';
import { directoryObject } from '../../routing/objects';
import { ack, nack } from '../jobs/report';
import { LimitsObject } from '../limits/object';
import type { StoredCheckpoint } from '../storage/checkpoint-table';
import type {
  AckRequest,
  AttemptName,
  CheckpointRequest,
  ClaimRequest,
  HeartbeatRequest,
  HeldJob,
  NackRequest,
  ProgressReport,
  ProgressRequest,
  WorkersApi,
} from './api';
import { checkpointOf, deleteCheckpoint, saveCheckpoint } from './checkpoint';
import { heartbeat } from './heartbeat';
import { heldBy, releaseHeld } from './held';
import { progressOf, reportProgress } from './progress';
import { SilencedWorkers } from './silenced';

export abstract class WorkersObject extends LimitsObject implements WorkersApi {
  private readonly silenced = new SilencedWorkers(
    () => directoryObject(this.env).silencedWorkers(),
    () => Date.now(),
  );

  async claim(_queue: string, request: ClaimRequest): Promise<Outcome<JobView[]>> {
    const deadline = Date.now() + (request.wait_ms ?? 0);
    const { worker_id } = request;
    if (worker_id !== undefined && this.engine && (await this.silenced.has(worker_id))) return { ok: true, value: [] };
    // A queue that does not exist may be created by the time the wait is over.
    while (!this.engine && Date.now() < deadline) await scheduler.wait(Math.min(250, deadline - Date.now()));
    const unwanted = () => worker_id !== undefined && this.silenced.hasNow(worker_id);
    return this.engine?.claim(request, deadline, unwanted) ?? { ok: true, value: [] };
  }

  async ack(_queue: string, request: AckRequest): Promise<Outcome<JobView>> {
    return this.change(request.job_id, (q, now) => ack(q, request, now));
  }

  async nack(_queue: string, request: NackRequest): Promise<Outcome<JobView>> {
    return this.change(request.job_id, (q, now) => nack(q, request, now, Math.random));
  }

  async heartbeat(
    _queue: string,
    request: HeartbeatRequest,
  ): Promise<Outcome<{ extended: string[]; directive?: string }>> {
    const { engine } = this;
    if (!engine) return { ok: true, value: { extended: [] } };
    return engine.write((now) => heartbeat(engine.q, request, now));
  }

  async reportProgress(_queue: string, request: ProgressRequest): Promise<Outcome<ProgressReport>> {
    return this.change(request.job_id, (q, now) => reportProgress(q, request, now));
  }

  async progress(_queue: string, id: string): Promise<Outcome<ProgressReport>> {
    return this.read(id, (q, now) => progressOf(q, id, now));
  }

  async saveCheckpoint(_queue: string, request: CheckpointRequest): Promise<Outcome<StoredCheckpoint>> {
    return this.change(request.job_id, (q, now) => saveCheckpoint(q, request, now));
  }

  async checkpoint(_queue: string, id: string): Promise<Outcome<StoredCheckpoint | null>> {
    return this.read(id, (q) => checkpointOf(q, id));
  }

  async deleteCheckpoint(
    _queue: string,
    request: AttemptName & { job_id: string },
  ): Promise<Outcome<{ job_id: string }>> {
    return this.change(request.job_id, (q, now) => deleteCheckpoint(q, request, now));
  }

  async heldBy(_queue: string, workerId: string): Promise<HeldJob[]> {
    const q = this.present();
    return q ? heldBy(q, workerId) : [];
  }

  async releaseHeld(_queue: string, workerId: string): Promise<Outcome<string[]>> {
    const { engine } = this;
    return engine?.write((now) => releaseHeld(engine.q, workerId, now, Math.random)) ?? { ok: true, value: [] };
  }

  async silence(_queue: string, workerIds: string[], silenced: boolean): Promise<void> {
    this.silenced.change(workerIds, silenced);
    this.engine?.callWaiters();
  }

  override async reset(queue: string): Promise<void> {
    this.silenced.forget();
    await super.reset(queue);
  }
}
