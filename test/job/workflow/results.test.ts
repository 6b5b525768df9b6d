/** What a job gets to know of the jobs before it. */
import { describe, expect, it } from 'vitest';
import { parseWorkflow } from '../../../src/job/workflow/parse';
import { pathOf } from '../../../src/job/workflow/plan';
import { fill, type Source, sourcesFor } from '../../../src/job/workflow/results';

type Json = Record<string, unknown>;

const job = (change: Json = {}): Json => ({ type: 'test.step', args: [], ...change });
const chain = (...steps: Json[]) => ({ type: 'chain', steps });
const group = (...jobs: Json[]) => ({ type: 'group', jobs });

/** The results each job gets, by path; results are named by the paths of their jobs. */
function shapes(definition: Json): Record<string, unknown> {
  const { plan, steps } = parseWorkflow(definition, 0);
  const named = (source: Source): unknown =>
    Array.isArray(source) ? source.map(named) : source === null ? null : pathOf(plan, source);
  return Object.fromEntries(steps.map(({ step }) => [pathOf(plan, step), named(sourcesFor(plan, step))]));
}

describe('the results a job gets', () => {
  it('are those of all earlier steps in a chain', () => {
    expect(shapes(chain(job(), job(), job()))).toEqual({ 0: [], 1: ['0'], 2: ['0', '1'] });
  });

  it('are none in a group', () => {
    expect(shapes(group(job(), job()))).toEqual({ 0: [], 1: [] });
  });

  it('are those of all jobs of a batch in its callbacks', () => {
    const batch = { type: 'batch', jobs: [job(), job()], callbacks: { on_complete: job(), on_failure: job() } };
    expect(shapes(batch)).toEqual({ 0: [], 1: [], on_complete: ['0', '1'], on_failure: ['0', '1'] });
  });

  it('are those of all ancestors in a graph, each at the place of its step', () => {
    const steps = [
      job({ id: 'a' }),
      job({ id: 'b' }),
      job({ id: 'c', depends_on: ['b'] }),
      job({ id: 'd', depends_on: ['c'] }),
      job({ id: 'e', depends_on: ['a', 'c'] }),
    ];
    expect(shapes({ steps })).toEqual({
      a: [],
      b: [],
      c: [null, 'b'],
      d: [null, 'b', 'c'],
      e: ['a', 'b', 'c'],
    });
  });

  it('come from outside where nothing comes before, and go out as one entry for each step', () => {
    expect(shapes(chain(job(), group(job(), chain(job(), job())), job()))).toEqual({
      0: [],
      '1.0': ['0'],
      '1.1.0': ['0'],
      '1.1.1': ['1.1.0'],
      2: ['0', ['1.0', '1.1.1']],
    });
  });
});

describe('filling in results', () => {
  const stub = (index: number, bytes: number) => JSON.stringify({ omitted: index, bytes });

  /** Results by job, and which of them were read. */
  const resultsOf = (...texts: string[]) => {
    const wasRead: number[] = [];
    const text = (job: number) => texts[job - 1] ?? 'null';
    const read = (job: number) => {
      wasRead.push(job);
      return text(job);
    };
    return { results: { sizeOf: (job: number) => new TextEncoder().encode(text(job)).byteLength, read }, wasRead };
  };

  it('writes null for a job without one', () => {
    const { results } = resultsOf('{"a":1}');
    expect(fill([1, null, [2, 1]], results, 1000, stub)).toBe('[{"a":1},null,[null,{"a":1}]]');
  });

  it('leaves out the largest until the rest fits, and reads only what fits', () => {
    const { results, wasRead } = resultsOf(
      JSON.stringify('ä'.repeat(300)),
      JSON.stringify('b'.repeat(100)),
      JSON.stringify('c'.repeat(50)),
    );
    expect(fill([1, 2, 3], results, 900, stub)).toContain('äää');
    wasRead.length = 0;
    const text = fill([1, 2, 3], results, 400, stub);
    expect(JSON.parse(text)).toEqual([{ omitted: 1, bytes: 602 }, 'b'.repeat(100), 'c'.repeat(50)]);
    expect(new TextEncoder().encode(text).byteLength).toBeLessThanOrEqual(400);
    expect(wasRead).toEqual([2, 3]);
  });
});
