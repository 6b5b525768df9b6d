/**
 * A workflow as a graph of its jobs. Edges to a group lead to each of its jobs; many-to-many edges meet in a point,
 * and a large group is one node, so graphs stay below a few hundred lines.
 */
import type { WorkflowStatus, WorkflowStep } from '../../../contract/workflows';

export interface GraphNode {
  /** Its place: ids of the steps from the outermost on. */
  key: string;
  kind: 'job' | 'many' | 'point' | 'callback';
  label: string;
  step: WorkflowStep | undefined;
  /** Of a callback: when it is called. */
  called?: string;
  /** Keys of the nodes before it. */
  after: string[];
}

/** A group with more jobs is drawn as one node. */
const MOST_IN_GROUP = 12;
/** A workflow with more jobs is not drawn at all; its list is. */
export const MOST_NODES = 240;
/** Up to this many edges between two sets are drawn one by one. */
const MOST_EDGES = 6;

interface Ends {
  first: string[];
  last: string[];
}

export function graphOf(workflow: Pick<WorkflowStatus, 'steps' | 'callbacks'>): GraphNode[] {
  const nodes: GraphNode[] = [];
  const byKey = new Map<string, GraphNode>();
  const add = (node: GraphNode): Ends => {
    nodes.push(node);
    byKey.set(node.key, node);
    return { first: [node.key], last: [node.key] };
  };
  const join = (from: readonly string[], to: readonly string[], key: string) => {
    if (from.length * to.length <= MOST_EDGES || from.length === 1 || to.length === 1) {
      for (const one of to) byKey.get(one)?.after.push(...from);
      return;
    }
    add({ key: `${key}/`, kind: 'point', label: '', step: undefined, after: [...from] });
    for (const one of to) byKey.get(one)?.after.push(`${key}/`);
  };

  const draw = (step: WorkflowStep, key: string): Ends => {
    const label = step.name ?? (step.steps || !/^\d+$/.test(step.id) ? step.id : step.type);
    if (!step.steps) return add({ key, kind: 'job', label, step, after: [] });
    const isFlat = step.steps.every(({ steps, callbacks }) => !steps && !callbacks);
    const isLarge =
      step.steps.length > MOST_IN_GROUP && isFlat && step.steps.every(({ depends_on }) => !depends_on?.length);
    const ends = isLarge ? add({ key, kind: 'many', label, step, after: [] }) : drawAll(step.steps, key);
    return withCallbacks(ends, step.callbacks, key);
  };

  const drawAll = (steps: readonly WorkflowStep[], key: string): Ends => {
    const drawn = new Map(steps.map((step) => [step.id, draw(step, `${key}/${step.id}`)]));
    const isNeeded = new Set<string>();
    const first: string[] = [];
    for (const { id, depends_on: needs = [] } of steps) {
      const own = drawn.get(id) as Ends;
      if (needs.length === 0) first.push(...own.first);
      const before = needs.flatMap((need) => {
        isNeeded.add(need);
        return drawn.get(need)?.last ?? [];
      });
      if (before.length > 0) join(before, own.first, `${key}/${id}>`);
    }
    const last = steps.filter(({ id }) => !isNeeded.has(id)).flatMap(({ id }) => drawn.get(id)?.last ?? []);
    return { first, last };
  };

  /** What comes after a batch does not wait for its callbacks. */
  const withCallbacks = (ends: Ends, callbacks: WorkflowStep['callbacks'], key: string): Ends => {
    for (const [called, step] of Object.entries(callbacks ?? {})) {
      const own = draw(step, `${key}/${called}`);
      for (const one of own.first) {
        const node = byKey.get(one);
        if (node) Object.assign(node, { kind: 'callback', called: called.replace('_', ' ') });
      }
      join(ends.last, own.first, `${key}/${called}>`);
    }
    return ends;
  };

  withCallbacks(drawAll(workflow.steps, ''), workflow.callbacks, '');
  return nodes;
}

/** How long a step took, or has taken so far. ms */
export function tookOf(step: WorkflowStep | undefined, now: number): number {
  if (!step?.started_at) return 0;
  const end = step.completed_at ? Date.parse(step.completed_at) : step.state === 'cancelled' ? undefined : now;
  return end === undefined ? 0 : Math.max(0, end - Date.parse(step.started_at));
}

/** The slowest path through the graph: keys of its nodes, from the first on. */
export function criticalPath(nodes: readonly GraphNode[], now: number): { keys: readonly string[]; ms: number } {
  const best = new Map<string, { ms: number; before: string | undefined }>();
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const longest = (key: string): number => {
    const known = best.get(key);
    if (known) return known.ms;
    const node = byKey.get(key);
    let [most, before]: [number, string | undefined] = [0, undefined];
    for (const one of node?.after ?? []) {
      const ms = longest(one);
      if (before === undefined || ms > most) [most, before] = [ms, one];
    }
    const ms = most + (node?.kind === 'callback' ? 0 : tookOf(node?.step, now));
    best.set(key, { ms, before });
    return ms;
  };
  let [end, ms]: [string | undefined, number] = [undefined, 0];
  for (const { key, kind } of nodes) {
    if (kind !== 'callback' && longest(key) > ms) [end, ms] = [key, longest(key)];
  }
  const keys: string[] = [];
  for (let key = end; key !== undefined; key = best.get(key)?.before) keys.unshift(key);
  return { keys, ms };
}
