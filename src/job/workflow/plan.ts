/** The parts of a workflow: a tree of nodes whose leaves are jobs. It never changes; its progress is a {@link Run}. */

/** `graph` is the form without a type: steps that name their dependencies. */
export type NodeKind = 'job' | 'chain' | 'group' | 'batch' | 'graph';

export const CALLBACKS = ['on_complete', 'on_success', 'on_failure'] as const;
export type Callback = (typeof CALLBACKS)[number];

/** One node. Nodes name each other by their index in {@link WorkflowPlan.nodes}. */
export interface PlanNode {
  /** Its author's name for it, else its place among its siblings, or the name of the callback. */
  id: string;
  kind: NodeKind;
  /** −1 for the root. */
  parent: number;
  /** Steps or jobs in their order; callbacks are not among them. */
  children: number[];
  /** In a graph: the siblings that must have completed before. */
  needs?: number[];
  /** Of a batch, or a graph that is one: the jobs that follow its end. */
  callbacks?: Partial<Record<Callback, number>>;
  callback?: Callback;
  type?: string;
  queue?: string;
  name?: string;
}

/** A whole workflow; the root is node 0. */
export interface WorkflowPlan {
  nodes: PlanNode[];
}

/** A node by its index. @throws {RangeError} when there is none, which only a damaged record can cause */
export function nodeAt(plan: WorkflowPlan, index: number): PlanNode {
  const node = plan.nodes[index];
  if (!node) throw new RangeError(`The workflow has no node ${index}.`);
  return node;
}

/** Indexes of the jobs below a node, or of the node itself when it is one; callbacks only with `withCallbacks`. */
export function jobsBelow(plan: WorkflowPlan, index: number, withCallbacks = false): number[] {
  const node = nodeAt(plan, index);
  if (node.kind === 'job') return [index];
  const below = withCallbacks ? [...node.children, ...Object.values(node.callbacks ?? {})] : node.children;
  return below.flatMap((child) => jobsBelow(plan, child, withCallbacks));
}

/** Names a step by the ids on the way to it, as `1.0`. */
export function pathOf(plan: WorkflowPlan, index: number): string {
  const ids: string[] = [];
  for (let at = index; at > 0; at = nodeAt(plan, at).parent) ids.unshift(nodeAt(plan, at).id);
  return ids.join('.');
}

/** A job of a workflow, by the index of its node: JSON text of what its author wrote. */
export interface NewStep {
  step: number;
  job: string;
}
