/**
 * The results that a job gets as `parent_results`: in a chain those of all earlier steps, in a graph those of all
 * steps it depends on, directly or not; a callback gets those of its batch. First jobs of a nested workflow get what
 * the workflow would get. A nested chain's result is its last step's, any other's the list of its parts'.
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
  read(job: number): string;
}

/**
 * Fills a shape with results. If they exceed `maxBytes` of UTF-8, the largest are replaced by `omitted` (JSON text
 * per job); only those that fit are read, because all may exceed memory. @returns JSON text
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
