/** Plays a history against the product and the model, and compares them after every step. */
import type { CronDefinition } from '../../src/job/cron/definition';
import type { NewJob } from '../../src/job/record';
import { compare } from './compare';
import * as crons from './crons';
import * as jobs from './jobs';
import { fireAt } from './model-crons';
import * as reports from './reports';
import { Scene } from './scene';
import type { History, Step } from './steps';
import { newJob } from './wire';
import { InjectedFault } from './world';

/** Steps after which the product has not run yet. */
const SILENT: readonly string[] = ['jump', 'jump-to-fire', 'evict', 'lose-alarm'] satisfies Step['op'][];

/** What a step sends to the queue, where that takes time to read. */
type Prepared = { jobs?: NewJob[]; definition?: CronDefinition | 400 | undefined };

export class Play {
  private readonly scene: Scene;

  constructor(
    storage: DurableObjectStorage,
    private readonly history: History,
  ) {
    this.scene = new Scene(storage, history.start);
  }

  async run(): Promise<void> {
    const { steps } = this.history;
    for (const [index, step] of steps.entries()) {
      const isLast = index === steps.length - 1;
      if (step) await this.step(step);
      if (step || isLast) compare(this.scene, index % 10 === 9 || isLast);
    }
  }

  private async step(step: Step): Promise<void> {
    if (step.op === 'answer') {
      await crons.answer(this.scene, step.how);
      return;
    }
    const inner = step.op === 'fault' ? step.step : step;
    const prepared = await this.prepare(inner);
    if (step.op === 'fault') this.withFault(step.statement, step.step, prepared);
    else this.play(step, prepared);
    if (!SILENT.includes(inner.op)) this.scene.finish();
  }

  private async prepare(step: Step): Promise<Prepared> {
    const { scene } = this;
    if (step.op === 'enqueue') return { jobs: await Promise.all(step.jobs.map((order) => newJob(order, scene.now))) };
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

  private play(step: Step, { jobs: newJobs = [], definition }: Prepared): void {
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
        jobs.enqueue(scene, step, newJobs);
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
