/** Plays a history against the product and the model, and compares them after every step. */
import type { CronDefinition } from '../../src/job/cron/definition';
import type { NewJob } from '../../src/job/record';
import { compare } from './compare';
import * as crons from './crons';
import * as jobs from './jobs';
import { isOpen } from './model';
import { fireAt } from './model-crons';
import * as reports from './reports';
import { Scene } from './scene';
import type { History, Step } from './steps';
import { InjectedFault } from './world';

/** Steps after which the product has not run yet. */
const SILENT: readonly string[] = ['jump', 'jump-to-fire', 'evict', 'lose-alarm'] satisfies Step['op'][];

/** What a step sends to the queue, where that takes time to read. */
type Prepared = { jobs?: NewJob[] | undefined; definition?: CronDefinition | 400 | undefined };

export class Play {
  private readonly scene: Scene;

  /**
   * @param complaints what is written to the console as errors, to be emptied
   */
  constructor(
    storage: DurableObjectStorage,
    private readonly history: History,
    private readonly complaints: unknown[][] = [],
  ) {
    complaints.length = 0;
    this.scene = new Scene(storage, history.start, history.large);
  }

  async run(): Promise<void> {
    const { steps, drains, keepsNoDead } = this.history;
    if (keepsNoDead) jobs.keepNoDead(this.scene);
    for (const [index, step] of steps.entries()) {
      const isLast = index === steps.length - 1;
      if (step) await this.step(step);
      if (step || isLast) this.compare(index, isLast);
    }
    if (drains) await this.drain();
  }

  private async step(step: Step): Promise<void> {
    if (step.op === 'answer') {
      await crons.answer(this.scene, step.how);
      return;
    }
    const inner = step.op === 'fault' ? step.step : step;
    const prepared = await this.prepare(inner);
    const waiting = inner.op === 'enqueue' && inner.claim ? await reports.wait(this.scene, inner.claim) : undefined;
    const before = waiting?.views;
    if (step.op === 'fault') this.withFault(step.statement, step.step, prepared);
    else this.play(step, prepared);
    if (waiting) await reports.heard(this.scene, waiting, before);
    if (!SILENT.includes(inner.op)) this.scene.finish();
    this.hear(step);
  }

  /** A defect that the product survives is complained about: nothing but a statement that was made to fail may cause one. */
  private hear(step: Step): void {
    const [first] = this.complaints.splice(0);
    if (first && step.op !== 'fault')
      throw new Error(`complained: ${first.map(String).join(' ')}`, { cause: first[1] });
  }

  /** Everything now and then, what is counted more often, the wake always. A short history is compared at each step. */
  private compare(index: number, isLast: boolean): void {
    const isShort = this.history.steps.length < 40;
    if (isLast || index % (this.history.large ? 25 : 10) === 9) compare(this.scene, 'everything');
    else compare(this.scene, isShort || index % 3 === 2 ? 'counts' : 'wake');
  }

  /** The queue still works: it takes a job, gives out all that it has, and then has nothing left to do. */
  private async drain(): Promise<void> {
    const { scene } = this;
    const { model, world } = scene;
    for (const name of [...model.crons.entries.keys()]) await this.step({ op: 'cron-delete', name, late: false });
    await this.step({ op: 'answer', how: 'all' });
    for (const key of ['narrow', 'rated', 'spaced'] as const) {
      await this.step({ op: 'override', key, concurrency: null, expiresIn: null });
    }
    await this.step({ op: 'pause', paused: false });
    await this.step({ op: 'enqueue', jobs: [jobs.PROBE] });
    for (const job of model.jobs.filter(({ state }) => state === 'pending')) jobs.activateJob(scene, job);
    const rounds = 2 * model.jobs.length + 10;
    for (let round = 0; model.jobs.some(isOpen); round++) {
      if (round === rounds) throw new Error(`the queue is not empty after ${rounds} claims`);
      await this.step({ op: 'claim', count: 100, worker: 'ann', visibility: 0 });
      const running = model.jobs.filter(({ state }) => state === 'active');
      for (const job of running) reports.complete(scene, job);
      if (running.length > 0 || model.available(scene.now).length > 0) world.now += 1_000;
      else world.now = Math.max(world.now + 1, Math.min(model.nextDue(scene.now), world.now + 86_400_000));
      compare(scene, 'wake');
    }
    compare(scene, 'everything');
  }

  private async prepare(step: Step): Promise<Prepared> {
    const { scene } = this;
    if (step.op === 'enqueue') return { jobs: await jobs.readJobs(scene, step) };
    if (step.op === 'cron-put' || step.op === 'cron-patch') {
      return { definition: await crons.readCronStep(scene, step) };
    }
    return {};
  }

  /** A statement in the middle fails: the operation leaves no trace, but what was due is treated as due all the same. */
  private withFault(statement: number, step: Step, prepared: Prepared): void {
    const { scene } = this;
    const { world, model } = scene;
    const before = model.save();
    world.failAt(statement);
    try {
      this.play(step, prepared);
      world.heal();
    } catch (error) {
      if (!(error instanceof InjectedFault)) throw error;
      world.heal();
      world.faulted = false;
      Object.assign(model, before);
      world.engine.writeNow(() => undefined);
      scene.tidy();
    }
  }

  private play(step: Step, { jobs: newJobs, definition }: Prepared): void {
    const { scene } = this;
    const { world, model } = scene;
    switch (step.op) {
      case 'jump':
        world.now += step.ms;
        break;
      case 'jump-to-fire':
        world.now = Math.max(world.now, fireAt(model) + step.past);
        break;
      case 'evict':
        scene.evict();
        break;
      case 'lose-alarm':
        scene.lost ||= world.alarm !== null;
        world.alarm = null;
        break;
      case 'alarm':
        this.alarm(step.when);
        break;
      case 'enqueue':
        if (newJobs) jobs.enqueue(scene, step, newJobs);
        break;
      case 'claim':
        reports.claim(scene, step);
        break;
      case 'ack':
        reports.ack(scene, step);
        break;
      case 'nack':
        reports.nack(scene, step);
        break;
      case 'snooze':
        reports.snooze(scene, step);
        break;
      case 'signal':
        reports.signal(scene, step.pick);
        break;
      case 'nack-all':
        reports.nackAll(scene, step);
        break;
      case 'progress':
        reports.progress(scene, step);
        break;
      case 'checkpoint':
        reports.checkpoint(scene, step);
        break;
      case 'heartbeat':
        reports.heartbeat(scene, step.worker);
        break;
      case 'override':
        jobs.override(scene, step);
        break;
      case 'pause':
        jobs.pause(scene, step.paused);
        break;
      case 'bulk':
        jobs.bulk(scene, step);
        break;
      case 'cron-put':
      case 'cron-patch':
        crons.put(scene, step, definition);
        break;
      case 'cron-enable':
      case 'cron-trigger':
      case 'cron-delete':
        crons.onCron(scene, step);
        break;
      case 'fault':
      case 'answer':
        break;
      default:
        jobs.onJob(scene, step);
    }
  }

  private alarm(when: 'due' | 'late' | 'early' | 'twice'): void {
    const { scene } = this;
    const { world, model } = scene;
    if (when !== 'early' && world.alarm !== null) world.now = Math.max(world.now, world.alarm);
    if (when === 'late') world.now += 60_000;
    for (let times = when === 'twice' ? 2 : 1; times > 0; times--) {
      world.fire();
      scene.tidy();
      model.prune(scene.now);
      scene.finish();
    }
    scene.lost = false;
  }
}
