/** The rules of workflows against a model that evaluates the whole tree anew after every end. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseWorkflow } from '../../../src/job/workflow/parse';
import { jobsBelow, nodeAt, type WorkflowPlan } from '../../../src/job/workflow/plan';
import { type JobEnd, Run } from '../../../src/job/workflow/run';
import { histories } from '../../support/long';

type Json = Record<string, unknown>;

const job = (): Json => ({ type: 'test.step', args: [] });

/** Workflows of every form in each other, as clients write them. */
const composite = fc.letrec<{ step: Json; whole: Json }>((tie) => ({
  step: fc.oneof({ depthSize: 'small', withCrossShrink: true }, fc.constant(0).map(job), tie('whole')),
  whole: fc.oneof(
    fc.array(tie('step'), { minLength: 1, maxLength: 4 }).map((steps) => ({ type: 'chain', steps })),
    fc.array(tie('step'), { minLength: 1, maxLength: 4 }).map((jobs) => ({ type: 'group', jobs })),
    fc
      .record({
        jobs: fc.array(tie('step'), { minLength: 1, maxLength: 4 }),
        names: fc.subarray(['on_complete', 'on_success', 'on_failure'], { minLength: 1 }),
      })
      .map(({ jobs, names }) => ({
        type: 'batch',
        jobs,
        callbacks: Object.fromEntries(names.map((name) => [name, job()])),
      })),
    fc
      .array(fc.record({ step: tie('step'), needs: fc.array(fc.nat(20), { maxLength: 3 }) }), {
        minLength: 1,
        maxLength: 6,
      })
      .map((entries) => ({
        type: 'graph',
        steps: entries.map(({ step, needs }, place) => ({
          ...step,
          id: `s${place}`,
          // A step that depends on earlier ones only can be in no circle.
          depends_on: place === 0 ? [] : needs.map((need) => `s${need % place}`),
        })),
      })),
  ),
})).whole;

const ends = fc.array(
  fc.record({
    which: fc.nat(1000),
    end: fc.constantFrom<JobEnd>('completed', 'completed', 'completed', 'failed', 'cancelled'),
  }),
  { maxLength: 60 },
);

interface Evaluated {
  state: 'running' | 'completed' | 'failed';
  started: number[];
}

/** Says what should be, from the ends alone; only which steps of a graph have started must be remembered. */
class Model {
  readonly ended = new Map<number, JobEnd>();
  private readonly begun = new Set<number>();

  constructor(private readonly plan: WorkflowPlan) {}

  evaluate(index = 0): Evaluated {
    const { kind, children, callbacks } = nodeAt(this.plan, index);
    if (kind === 'job') {
      const end = this.ended.get(index);
      return { state: end === undefined ? 'running' : end === 'completed' ? end : 'failed', started: [index] };
    }
    if (kind === 'chain') return this.chain(children);
    if (kind === 'graph') return this.graph(children);
    const parts = children.map((child) => this.evaluate(child));
    const started = parts.flatMap((part) => part.started);
    if (parts.some(({ state }) => state === 'running')) return { state: 'running', started };
    const state = parts.every((part) => part.state === 'completed') ? 'completed' : 'failed';
    const called = callbacks
      ? [callbacks.on_complete, state === 'completed' ? callbacks.on_success : callbacks.on_failure]
      : [];
    return { state, started: [...started, ...called.filter((callback) => callback !== undefined)] };
  }

  private chain(children: number[]): Evaluated {
    const started: number[] = [];
    for (const child of children) {
      const part = this.evaluate(child);
      started.push(...part.started);
      if (part.state !== 'completed') return { state: part.state, started };
    }
    return { state: 'completed', started };
  }

  private graph(children: number[]): Evaluated {
    const parts = new Map<number, Evaluated>();
    for (const child of children) if (this.begun.has(child)) parts.set(child, this.evaluate(child));
    const failed = [...parts.values()].some(({ state }) => state === 'failed');
    for (const child of failed ? [] : children) {
      const ready = (nodeAt(this.plan, child).needs ?? []).every((need) => parts.get(need)?.state === 'completed');
      if (!ready || this.begun.has(child)) continue;
      this.begun.add(child);
    }
    for (const child of children) if (this.begun.has(child)) parts.set(child, this.evaluate(child));
    const started = [...parts.values()].flatMap((part) => part.started);
    if ([...parts.values()].some(({ state }) => state === 'running')) return { state: 'running', started };
    return { state: failed ? 'failed' : 'completed', started };
  }
}

const sorted = (numbers: Iterable<number>) => [...numbers].sort((a, b) => a - b);

describe('a run', () => {
  it('starts and ends what the whole tree, evaluated again after every end, says', () => {
    fc.assert(
      fc.property(composite, ends, (definition, history) => {
        const { plan } = parseWorkflow(definition, 0);
        const [run, model] = [new Run(plan), new Model(plan)];
        const started = new Set(run.begin());
        expect(sorted(started)).toEqual(sorted(model.evaluate().started));
        for (const { which, end } of history) {
          const running = sorted(started).filter((index) => !model.ended.has(index));
          const index = running[which % running.length];
          if (index === undefined) break;
          model.ended.set(index, end);
          for (const next of run.end(index, end)) {
            expect(started.has(next)).toBe(false);
            started.add(next);
          }
          const expected = model.evaluate();
          expect(sorted(started)).toEqual(sorted(expected.started));
          expect(run.state).toBe(expected.state);
          // Told again, it changes nothing.
          expect(run.end(index, 'completed')).toEqual([]);
          expect(run.state).toBe(expected.state);
        }
      }),
      { numRuns: histories(2000) },
    );
  });

  it('ends when every job that was started has ended, whatever the ends', () => {
    fc.assert(
      fc.property(composite, fc.infiniteStream(fc.nat(1000)), (definition, dice) => {
        const { plan } = parseWorkflow(definition, 0);
        const run = new Run(plan);
        const open = run.begin();
        while (open.length > 0) {
          const { value } = dice.next();
          const [index] = open.splice(value % open.length, 1) as [number];
          open.push(...run.end(index, value % 4 === 0 ? 'failed' : 'completed'));
        }
        expect(['completed', 'failed']).toContain(run.state);
        const jobs = jobsBelow(plan, 0).map((index) => run.stateOf(index));
        expect(run.state === 'completed').toBe(jobs.every((state) => state === 'completed'));
      }),
      { numRuns: histories(1000) },
    );
  });

  it('starts nothing any more once it is cancelled', () => {
    fc.assert(
      fc.property(composite, ends, (definition, history) => {
        const { plan } = parseWorkflow(definition, 0);
        const run = new Run(plan);
        const open = run.begin();
        run.cancel();
        for (const { which, end } of history) expect(run.end(open[which % open.length] as number, end)).toEqual([]);
        expect(run.state).toBe('cancelled');
      }),
    );
  });
});
