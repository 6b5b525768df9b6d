/**
 * How far a workflow has got, and what follows from a job's end. Pure: a run is rebuilt by replaying the ends in
 * order.
 *
 * - chain: a step starts when the one before has completed; any other end fails the chain.
 * - group: all start at once; it ends when all have ended, failed if any did not complete.
 * - batch: as a group, then its callbacks start; its state follows the jobs, not the callbacks.
 * - graph: a step starts when all it depends on have completed. After a failure nothing starts; the graph fails, and
 * its callbacks start, when what is running has ended.
 */
import { type Callback, nodeAt, type WorkflowPlan } from './plan';

/** `running` covers a job from the decision to start it until its end. */
export type NodeState = 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled';

/** How a job ended. Only `completed` lets its dependants start. */
export type JobEnd = 'completed' | 'failed' | 'cancelled';

export class Run {
  private readonly states: NodeState[];
  /** Children that run, and children that completed, by parent. */
  private readonly running: number[];
  private readonly completed: number[];
  private readonly broken: boolean[];
  private readonly dependents = new Map<number, number[]>();

  constructor(private readonly plan: WorkflowPlan) {
    const { length } = plan.nodes;
    this.states = Array<NodeState>(length).fill('waiting');
    this.running = Array<number>(length).fill(0);
    this.completed = Array<number>(length).fill(0);
    this.broken = Array<boolean>(length).fill(false);
    plan.nodes.forEach(({ needs }, index) => {
      for (const need of needs ?? []) this.dependents.set(need, [...(this.dependents.get(need) ?? []), index]);
    });
  }

  get state(): NodeState {
    return this.stateOf(0);
  }

  stateOf(index: number): NodeState {
    return this.states[index] ?? 'waiting';
  }

  get hasEnded(): boolean {
    return this.state !== 'waiting' && this.state !== 'running';
  }

  /** Starts the workflow. @returns the jobs to start */
  begin(): number[] {
    const starts: number[] = [];
    this.start(0, starts);
    return starts;
  }

  /** A job has ended; an end that is repeated or never had a start changes nothing. @returns the jobs to start now */
  end(job: number, end: JobEnd): number[] {
    if (this.stateOf(job) !== 'running' || nodeAt(this.plan, job).kind !== 'job') return [];
    const starts: number[] = [];
    this.finish(job, end, starts);
    return starts;
  }

  cancel(): void {
    this.states[0] = 'cancelled';
  }

  private start(index: number, starts: number[]): void {
    const node = nodeAt(this.plan, index);
    this.states[index] = 'running';
    if (node.parent >= 0 && !node.callback) this.count(this.running, node.parent, 1);
    if (node.kind === 'job') starts.push(index);
    else if (node.kind === 'chain') this.start(node.children[0] as number, starts);
    else {
      for (const child of node.children) {
        if ((nodeAt(this.plan, child).needs ?? []).length === 0) this.start(child, starts);
      }
    }
  }

  private finish(index: number, end: JobEnd, starts: number[]): void {
    const node = nodeAt(this.plan, index);
    this.states[index] = end;
    if (this.state === 'cancelled') return;
    if (node.callbacks) {
      const due: Callback[] = ['on_complete', end === 'completed' ? 'on_success' : 'on_failure'];
      for (const name of due) {
        const callback = node.callbacks[name];
        if (callback !== undefined) this.start(callback, starts);
      }
    }
    if (node.parent < 0 || node.callback) return;
    const { parent } = node;
    this.count(this.running, parent, -1);
    if (end === 'completed') this.count(this.completed, parent, 1);
    else this.broken[parent] = true;
    this.followUp(parent, index, starts);
  }

  private followUp(index: number, child: number, starts: number[]): void {
    const { kind, children } = nodeAt(this.plan, index);
    const intact = !this.broken[index];
    if (intact && kind === 'chain') {
      const next = children[children.indexOf(child) + 1];
      if (next !== undefined) this.start(next, starts);
    } else if (intact && kind === 'graph') {
      for (const dependent of this.dependents.get(child) ?? []) {
        const needs = nodeAt(this.plan, dependent).needs ?? [];
        if (needs.every((need) => this.stateOf(need) === 'completed')) this.start(dependent, starts);
      }
    }
    if ((this.running[index] as number) > 0) return;
    if (intact && this.completed[index] !== children.length) return;
    this.finish(index, intact ? 'completed' : 'failed', starts);
  }

  private count(counts: number[], index: number, by: number): void {
    counts[index] = (counts[index] as number) + by;
  }
}
