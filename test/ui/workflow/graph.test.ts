/** Workflows as graphs: their edges, their places, the way that takes longest. */
import { describe, expect, it } from 'vitest';
import type { WorkflowStep as Step, WorkflowStatus as Workflow } from '../../../src/contract/workflows';
import { criticalPath, graphOf } from '../../../src/ui/pages/workflow/graph';
import { layOut, NODE_HEIGHT } from '../../../src/ui/pages/workflow/layout';

const T0 = Date.UTC(2026, 0, 1);
const at = (ms: number) => new Date(T0 + ms).toISOString();

/** @param took from when to when it ran, ms */
function job(id: string, after: string[] = [], took?: [from: number, to: number]): Step {
  const times = took && { started_at: at(took[0]), completed_at: at(took[1]) };
  const state = took ? 'completed' : 'waiting';
  return { id, type: `do.${id}`, state, job_id: `job-${id}`, job_ids: [], depends_on: after, ...times };
}

const within = (id: string, steps: Step[], after: string[] = [], more: Partial<Step> = {}): Step => {
  return { id, type: 'group', state: 'waiting', job_id: null, job_ids: [], depends_on: after, steps, ...more };
};

const jobs = (count: number, prefix = '') => Array.from({ length: count }, (_, index) => job(`${prefix}${index}`));

type Drawn = Parameters<typeof graphOf>[0];

const workflow = (steps: Step[], callbacks?: Workflow['callbacks']): Drawn => ({
  steps,
  ...(callbacks && { callbacks }),
});

const edges = (steps: Step[], callbacks?: Workflow['callbacks']) =>
  Object.fromEntries(graphOf(workflow(steps, callbacks)).map(({ key, after }) => [key, after]));

describe('the edges of a workflow', () => {
  it('lead through what is nested', () => {
    const inner = within('chain', [job('first'), job('last', ['first'])], ['a']);
    expect(edges([job('a'), inner, job('z', ['chain'])])).toEqual({
      '/a': [],
      '/chain/first': ['/a'],
      '/chain/last': ['/chain/first'],
      '/z': ['/chain/last'],
    });
  });

  it('meet in a point where many lead to many', () => {
    const found = edges([within('a', jobs(4)), within('b', jobs(3), ['a'])]);
    expect(found['/b>/']).toEqual(['/a/0', '/a/1', '/a/2', '/a/3']);
    expect([found['/b/0'], found['/b/2']]).toEqual([['/b>/'], ['/b>/']]);
  });

  it('lead to one node for a large group', () => {
    const nodes = graphOf(workflow([within('many', jobs(1000)), job('z', ['many'])]));
    expect(nodes.map(({ key, kind }) => [key, kind])).toEqual([
      ['/many', 'many'],
      ['/z', 'job'],
    ]);
  });

  it('lead to callbacks, for which nothing waits', () => {
    const batch = within('batch', jobs(2), [], { callbacks: { on_failure: job('page') } });
    expect(edges([batch, job('z', ['batch'])])).toMatchObject({
      '/batch/on_failure': ['/batch/0', '/batch/1'],
      '/z': ['/batch/0', '/batch/1'],
    });
  });
});

describe('the places of a workflow', () => {
  it('lead from left to right, and none is over another', () => {
    const steps = [
      ...jobs(5, 'a'),
      ...Array.from({ length: 6 }, (_, n) => job(`b${n}`, [`a${n % 5}`, `a${(n * 3 + 1) % 5}`])),
      ...Array.from({ length: 4 }, (_, n) => job(`c${n}`, [`b${n}`, `a${n}`])),
      within('group', jobs(7), ['c0', 'c1']),
      job('end', ['group', 'c2', 'c3', 'a4']),
    ];
    const nodes = graphOf(workflow(steps));
    const layout = layOut(nodes);
    const place = new Map(layout.nodes.map(({ node, x, y }) => [node.key, { x, y }]));
    for (const { key, after } of nodes) {
      for (const from of after) expect(place.get(from)?.x, `${from} > ${key}`).toBeLessThan(place.get(key)?.x ?? 0);
    }
    for (const one of layout.nodes) {
      expect(one.y).toBeGreaterThanOrEqual(0);
      expect(one.y).toBeLessThanOrEqual(layout.height);
      for (const other of layout.nodes) {
        const isApart = one === other || one.x !== other.x || Math.abs(one.y - other.y) >= 12;
        const isFar = isApart && (one.node.kind === 'point' || other.node.kind === 'point' || one === other);
        const isClear = isFar || one.x !== other.x || Math.abs(one.y - other.y) >= NODE_HEIGHT;
        expect(isClear, `${one.node.key} ${other.node.key}`).toBe(true);
      }
    }
    expect(layout.edges).toHaveLength(nodes.reduce((sum, { after }) => sum + after.length, 0));
    for (const { path } of layout.edges) expect(path).not.toContain('NaN');
  });
});

describe('the critical path', () => {
  it('is the way that took longest, with what still runs', () => {
    const steps = [
      job('short', [], [0, 10]),
      job('long', [], [0, 50]),
      job('x', ['short'], [10, 30]),
      job('y', ['long'], [50, 60]),
      { ...job('now', ['x', 'y']), state: 'active' as const, started_at: at(60) },
    ];
    const nodes = graphOf(workflow(steps, { on_complete: job('late', [], [60, 9_999]) }));
    expect(criticalPath(nodes, T0 + 100)).toEqual({ keys: ['/long', '/y', '/now'], ms: 100 });
  });

  it('is none before anything has run', () => {
    expect(criticalPath(graphOf(workflow(jobs(3))), T0)).toEqual({ keys: [], ms: 0 });
  });
});
