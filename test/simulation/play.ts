/** Plays a history against the product and the model, and compares them after every step. */
import { MAX_VALUE } from '../support/faults';
import { live } from './aftermath';
import { holds } from './agree';
import type { Turn } from './area';
import { EXTRAS, kindOf } from './areas';
import { compare, type Depth } from './compare';
import { compareFresh } from './fresh';
import * as jobs from './jobs';
import { isOpen } from './model';
import { moments } from './model-pulls';
import * as reports from './reports';
import { Scene } from './scene';
import type { History, Step } from './steps';
import { Died, InjectedFault } from './world';

const EXCUSES = EXTRAS.flatMap(({ excuses = [] }) => excuses);

/** Objects that have died notice it, and handlers may enqueue what nobody takes. */
function isExcused(said: readonly unknown[]): boolean {
  return said.some((part) => part instanceof Died) || EXCUSES.some((excuse) => excuse.test(String(said[0])));
}

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
    this.scene = new Scene(storage, history, EXTRAS);
  }

  async run(): Promise<void> {
    try {
      await this.play();
    } finally {
      // What still goes on reaches nothing of the next one.
      this.scene.world.kill();
      for (const { end } of EXTRAS) end?.();
    }
  }

  private async play(): Promise<void> {
    const { steps, drains, after } = this.history;
    for (const { begin } of EXTRAS) await begin?.(this.scene, this.history);
    for (const [index, step] of steps.entries()) {
      const isLast = index === steps.length - 1;
      if (step) await this.step(step);
      if (step || isLast) this.compare(this.depth(index, isLast), isLast);
      // Where the product has not run there is nothing new in its memory.
      if (step && !kindOf(step).silent) this.compareFresh(index);
    }
    await this.clear();
    if (after) await live(this.scene, after);
    else await this.drain(drains === true);
  }

  private async step(step: Step): Promise<void> {
    const inner = 'step' in step ? step.step : step;
    const { prepare, silent, isLonger } = kindOf(inner);
    await this.settle();
    if (step.op === 'fault') for (const { beforeFault } of EXTRAS) await beforeFault?.(this.scene);
    this.scene.observe();
    const turn = await prepare(this.scene, inner);
    // A push may have begun meanwhile: what fails or dies in this step does not undo it.
    this.scene.observe();
    if (step.op === 'die' && !isLonger && !step.durable) {
      this.withoutTrace(turn);
    } else {
      if (step.op === 'fault') await this.withFault(step.statement, turn);
      else await turn.play();
      if (step.op === 'die') {
        if (!silent) this.scene.finish();
        this.scene.world.kill();
      }
      await turn.after?.();
      if (step.op === 'die') this.scene.evict();
      else if (!silent) this.scene.finish();
    }
    await this.settle();
    this.hear(step);
  }

  /** What goes on by itself has its turn. */
  private async settle(): Promise<void> {
    for (const { settle } of EXTRAS) await settle?.(this.scene);
  }

  /** A defect that the product survives is complained about: nothing but what was made to fail may cause one. */
  private hear(step: Step): void {
    const [first] = this.complaints.splice(0).filter((said) => !isExcused(said));
    if (first && step.op !== 'fault' && step.op !== 'strand')
      throw new Error(`complained: ${first.map(String).join(' ')}`, { cause: first[1] });
  }

  /** The object dies before anything of its turn is durable: it is as if it had not begun, but for what is due. */
  private withoutTrace(turn: Turn): void {
    const { scene } = this;
    const before = scene.model.save();
    scene.world.lose(() => turn.play());
    Object.assign(scene.model, before);
    scene.evict();
  }

  /** Everything now and then, what is counted more often, the wake always. A short history is compared at each step. */
  private depth(index: number, isLast: boolean): Depth {
    const isShort = this.history.steps.length < 40;
    if (isLast || index % (this.history.large ? 25 : 10) === 9) return 'everything';
    return isShort || index % 3 === 2 ? 'counts' : 'wake';
  }

  private compare(depth: Depth, isLast = false): void {
    compare(this.scene, depth);
    for (const area of EXTRAS) area.compare?.(this.scene, depth);
    if (depth === 'everything' && (this.history.large || isLast)) {
      const { table, bytes } = this.scene.world.longestValue();
      holds(bytes <= MAX_VALUE, () => `a row of ${table} has a value of ${bytes} bytes`);
    }
  }

  /** All of memory now and then, half of the time beside an object that is constructed for it; always in a short history. */
  private compareFresh(index: number): void {
    const isShort = this.history.steps.length < 40;
    compareFresh(this.scene, isShort || index % 6 === 5, { isNew: isShort || index % 12 === 11 });
  }

  /** Nothing keeps jobs from being given out any more. */
  private async clear(): Promise<void> {
    for (const { clear } of EXTRAS) {
      await clear?.(this.scene);
      this.scene.finish();
    }
  }

  /**
   * The queue still works: it takes a job, gives out all that it has, and then has nothing left to do.
   * @param compares after each claim, too
   */
  private async drain(compares: boolean): Promise<void> {
    const { scene } = this;
    const { model, world } = scene;
    await this.step({ op: 'enqueue', jobs: [jobs.PROBE] });
    for (const job of model.jobs.filter(({ state }) => state === 'pending')) jobs.activateJob(scene, job);
    const rounds = 2 * model.jobs.length + 10;
    for (let round = 0; model.jobs.some(isOpen); round++) {
      if (round === rounds) throw new Error(`the queue is not empty after ${rounds} claims`);
      await this.step({ op: 'claim', count: 100, worker: 'ann', visibility: 0 });
      const running = model.jobs.filter(({ state }) => state === 'active');
      for (const job of running) reports.complete(scene, job);
      if (running.length > 0) world.now += 1_000;
      else world.now = Math.max(world.now + 1, this.next());
      if (compares) this.compare('wake');
    }
    this.compare('everything');
  }

  /** When there may be something to claim again: what is available may wait for a limit, or for others of its group. */
  private next(): number {
    const { model, now } = this.scene;
    const all = [...moments(model, now), model.nextDue(now)].filter((at) => at > now);
    return Math.min(...all, now + (model.available(now).length > 0 && all.length === 0 ? 1_000 : 86_400_000));
  }

  /** A statement in the middle fails: the operation leaves no trace, but what was due is treated as due all the same. */
  private async withFault(statement: number, turn: Turn): Promise<void> {
    const { scene } = this;
    const { world, model } = scene;
    const before = model.save();
    world.failAt(statement);
    try {
      await turn.play();
      for (const { isFaulted, settle } of EXTRAS) if (isFaulted) await settle?.(this.scene);
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
}
