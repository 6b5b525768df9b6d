/** The workflow object: one per workflow, found by its id, awake only when notified of the ends of its jobs. */
import { DurableObject } from 'cloudflare:workers';
import { cancelAt, type Queues, withJob } from '../across/locate';
import type { Env } from '../config';
import { AlarmClock } from '../durable/alarm-clock';
import { Schema, WORKFLOW } from '../durable/schema';
import { type ApiError, eventualOutcomeOf, notFound, type Outcome, outcomeOf, refusal } from '../job/errors';
import { misplacement } from '../rpc/place';
import { directoryObject, queueObject } from '../rpc/stubs';
import type { Ending, EndingsReceipt, NewWorkflow, WorkflowApi, WorkflowView } from '../rpc/workflow';
import { WorkflowEngine } from './engine';
import { WorkflowStore } from './store';

export class WorkflowObject extends DurableObject<Env> implements WorkflowApi {
  private readonly store: WorkflowStore;
  private readonly schema: Schema;
  private opened: WorkflowEngine | undefined;
  private isRead = false;
  private clock!: AlarmClock;
  private readonly id: string;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.id = ctx.id.name ?? '';
    this.schema = new Schema(ctx.storage, WORKFLOW, ctx.id.name, misplacement(ctx.id, env));
    this.store = new WorkflowStore(ctx.storage);
    void ctx.blockConcurrencyWhile(async () => {
      this.clock = new AlarmClock(ctx.storage, await ctx.storage.getAlarm());
      try {
        this.engine?.arm();
      } catch {
        // It must be left as it is, or its storage failed. Each call says so and tries again, as does the alarm.
      }
    });
  }

  async create(workflow: NewWorkflow): Promise<Outcome<WorkflowView>> {
    const { id } = this;
    if (this.engine) return { ok: false, error: taken(id, this.engine.view().state).data };
    const { steps, ...rest } = workflow;
    this.ctx.storage.transactionSync(() => {
      this.schema.create();
      this.store.create({ id, at: Date.now(), ...rest }, steps);
    });
    const engine = this.open();
    this.opened = engine;
    engine.arm();
    await engine.work();
    return { ok: true, value: engine.view() };
  }

  async get(withResults = false): Promise<Outcome<WorkflowView>> {
    return outcomeOf(() => (withResults ? this.existing().viewWithResults() : this.existing().view()));
  }

  async cancel(): Promise<Outcome<WorkflowView>> {
    return await eventualOutcomeOf(async () => {
      const engine = this.existing();
      engine.cancel();
      await engine.work();
      return engine.view();
    });
  }

  async stepsEnded(queue: string, endings: Ending[]): Promise<EndingsReceipt> {
    const { engine } = this;
    // A workflow that is gone, or was never there, has nothing to remember.
    if (!engine) return { unrecorded: [], events: [] };
    const receipt = engine.stepsEnded(queue, endings);
    this.ctx.waitUntil(engine.work());
    return receipt;
  }

  async reset(): Promise<void> {
    const { engine } = this;
    this.opened = undefined;
    await engine?.close();
    await this.empty();
  }

  override async alarm(): Promise<void> {
    await this.clock.ring(async () => {
      const { engine } = this;
      this.clock.fired(Date.now());
      await engine?.alarm();
    });
  }

  /** Undefined while there is no workflow. @throws why a stored one cannot be opened */
  private get engine(): WorkflowEngine | undefined {
    if (!this.isRead && this.schema.exist()) this.opened = this.open();
    this.isRead = true;
    return this.opened;
  }

  private existing(): WorkflowEngine {
    if (this.engine) return this.engine;
    throw notFound('workflow', this.id, 'Workflows are removed 30 days after their end.');
  }

  private open(): WorkflowEngine {
    const queue = (name: string) => queueObject(this.env, name);
    const queues: Queues = { queue, withJob: (id, call) => withJob(this.env, id, call) };
    const host = {
      storage: this.ctx.storage,
      clock: this.clock,
      now: () => Date.now(),
      queue,
      cancel: (name: string, ids: readonly string[]) => cancelAt(queues, name, ids),
      directory: () => directoryObject(this.env),
      keepAlive: (promise: Promise<unknown>) => this.ctx.waitUntil(promise),
      destroy: () => this.empty(),
    };
    return new WorkflowEngine(host, this.store);
  }

  private async empty(): Promise<void> {
    this.opened = undefined;
    await this.clock.clear();
    await this.ctx.storage.deleteAll();
    this.schema.forget();
    this.clock = new AlarmClock(this.ctx.storage, null);
  }
}

function taken(id: string, state: string): ApiError {
  return refusal(409, 'duplicate', `Workflow ${id} exists already (${state}).`, {
    details: { existing_workflow_id: id, existing_workflow_state: state },
  });
}
