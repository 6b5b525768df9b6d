/**
 * The results of earlier jobs that a job of a workflow gets: `parent_results`.
 *
 * In a chain these are the results of all earlier steps. In a graph they are those of all steps it depends on, directly
 * or not, each at the place of its step. A callback gets those of all jobs of its batch. The first jobs of a nested
 * workflow (a group, the first step) get the results that the workflow itself would get. The result of a nested chain
 * is that of its last step, of any other nested workflow the list of its parts' results.
 */
import { nodeAt, type WorkflowPlan } from './plan';

/** A shape of results: a job by its index, a list, or nothing. */
export type Source = number | null | Source[];

/** The results that a job gets, as a shape. */
export function sourcesFor(plan: WorkflowPlan, index: number): Source[] {
  const node = nodeAt(plan, index);
  if (node.parent < 0) return [];
  const { kind, children } = nodeAt(plan, node.parent);
  if (node.callback) return children.map((child) => resultOf(plan, child));
  if (kind === 'chain') {
    const before = children.slice(0, children.indexOf(index));
    if (before.length > 0) return before.map((child) => resultOf(plan, child));
  }
  if (kind === 'graph') {
    const ancestors = ancestorsOf(plan, index);
    const last = children.findLastIndex((child) => ancestors.has(child));
    if (last >= 0) {
      return children.slice(0, last + 1).map((child) => (ancestors.has(child) ? resultOf(plan, child) : null));
    }
  }
  return sourcesFor(plan, node.parent);
}

function resultOf(plan: WorkflowPlan, index: number): Source {
  const { kind, children } = nodeAt(plan, index);
  if (kind === 'job') return index;
  if (kind === 'chain') return resultOf(plan, children.at(-1) as number);
  return children.map((child) => resultOf(plan, child));
}

function ancestorsOf(plan: WorkflowPlan, index: number): Set<number> {
  const found = new Set<number>();
  const open = [...(nodeAt(plan, index).needs ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    open.push(...(nodeAt(plan, next).needs ?? []));
  }
  return found;
}

/** The results of jobs, as they are stored. A job that left none has the text `null`. */
export interface Results {
  /** Bytes of UTF-8. */
  sizeOf(job: number): number;
  /** JSON text. */
  read(job: number): string;
}

/**
 * Fills a shape with results. When they do not fit, the largest are left out, each replaced by the value of `omitted`.
 * Only those that fit are read: together they may be far larger than what memory holds.
 * @param maxBytes bytes of UTF-8 that the JSON text may have
 * @param omitted JSON text that stands for the result of a job
 * @returns JSON text
 */
export function fill(
  sources: Source[],
  { sizeOf, read }: Results,
  maxBytes: number,
  omitted: (job: number, bytes: number) => string,
): string {
  const sizes = new Map<number, number>();
  let total = 2;
  const collect = (source: Source): void => {
    total += Array.isArray(source) ? 3 : 5;
    if (Array.isArray(source)) source.forEach(collect);
    else if (source !== null && !sizes.has(source)) {
      const bytes = sizeOf(source);
      sizes.set(source, bytes);
      total += bytes;
    }
  };
  sources.forEach(collect);
  const stubs = new Map<number, string>();
  for (const [job, bytes] of [...sizes].sort(([, a], [, b]) => b - a)) {
    if (total <= maxBytes) break;
    const stub = omitted(job, bytes);
    if (stub.length >= bytes) break;
    stubs.set(job, stub);
    total -= bytes - stub.length;
  }
  const write = (source: Source): string => {
    if (source === null) return 'null';
    if (Array.isArray(source)) return `[${source.map(write).join(',')}]`;
    return stubs.get(source) ?? read(source);
  };
  return write(sources);
}
