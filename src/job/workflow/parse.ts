/** Reads a workflow of a producer; nothing else decides about it. Errors name the path, and nothing is stored. */

import { defined, optional, readList, readName, readObject, readUuidV7 } from '../envelope/fields';
import { MAX_BATCH_SIZE } from '../envelope/names';
import { JOB_MEMBERS, noteUnknownOptions, parseJob } from '../envelope/parse';
import { type ApiError, atIndex, invalidRequest, refusal, unsupported } from '../errors';
import { own } from '../own';
import type { NewJob } from '../record';
import { quote } from '../text';
import { UnknownMembers, type Verdict, withoutEffect } from '../unknown-members';
import {
  CALLBACKS,
  type Callback,
  type NewStep,
  type NodeKind,
  nodeAt,
  type PlanNode,
  type WorkflowPlan,
} from './plan';

/** Jobs of one workflow, callbacks included. */
export const MAX_JOBS = MAX_BATCH_SIZE;

export const MAX_DEPTH = 10;

/** Entries of all `depends_on` lists together. */
const MAX_DEPENDENCIES = 10_000;

/** 422: a workflow of this size is not offered; `details` has the limit. */
function tooMany(field: string, actual: number, max: number, what: string): ApiError {
  const message = `${field} has ${actual} ${what}; a workflow has at most ${max}.`;
  return refusal(422, 'invalid_request', message, { type: 'validation_error', details: { field, actual, max } });
}

const tooManyJobs = (field: string, actual: number) => tooMany(field, actual, MAX_JOBS, 'jobs');

const readStepName = readName(255);
const readNames = readList(MAX_JOBS, readStepName);

/** Members of a workflow, and of one inside another. */
const FORM = ['type', 'name', 'id', 'steps', 'jobs', 'tasks', 'callbacks', ...CALLBACKS];
const WORKFLOW: ReadonlySet<string> = new Set([...FORM, 'options']);
const INNER: ReadonlySet<string> = new Set([...FORM, 'depends_on']);
const aboutForm = withoutEffect([...FORM, 'options', 'depends_on']);

/** Members that the application may give its jobs. */
const OWN_MEMBER = /^(x|ext)[_-]/;

const aboutStep: Verdict = (name) =>
  OWN_MEMBER.test(name) ? undefined : 'is not known: it has no effect on the workflow, and is only kept with the job.';

type Json = Record<string, unknown>;

export interface ParsedWorkflow {
  id?: string;
  /** Absent for a graph. */
  type?: 'chain' | 'group' | 'batch';
  name?: string;
  plan: WorkflowPlan;
  /** The jobs to parse again when they start, in the order of their nodes. */
  steps: NewStep[];
  /** The parts that only the queues can check. */
  checks: StepCheck[];
}

/** What a queue must check of one job: does it accept such jobs, and is the retry policy valid over its own layers? */
export interface StepCheck {
  queue: string;
  job: NewJob;
  /** Path of the job in the request, and its place at the outermost level; callbacks there have none. */
  path: string;
  index?: number;
}

/**
 * Validates a workflow. @param now epoch ms @param unknown collects members that nothing reads
 * @throws {ApiError} 400, 413, 422 as for a job; inside a step, `details.index` is that of the outermost one
 */
export function parseWorkflow(body: Json, now: number, unknown = new UnknownMembers()): ParsedWorkflow {
  const id = optional(body, 'id', readUuidV7);
  const name = optional(body, 'name', readStepName);
  const kind = kindOf(body.type);
  if (!kind) throw invalidRequest('type', 'type must be chain, group or batch, or absent for a graph.');
  const defaults = optional(body, 'options', readObject) ?? {};
  noteUnknownOptions(unknown, defaults, 'options.');
  const reader = new TreeReader(now, defaults, unknown);
  reader.addComposite(body, kind, -1, '0', '', 1);
  const { nodes, steps, checks } = reader;
  return defined({ id, type: kind === 'graph' ? undefined : kind, name, plan: { nodes }, steps, checks });
}

type CompositeKind = Exclude<NodeKind, 'job'>;

function kindOf(type: unknown): CompositeKind | undefined {
  if (type === undefined || type === null || type === 'graph') return 'graph';
  return type === 'chain' || type === 'group' || type === 'batch' ? type : undefined;
}

/** A step is a job unless it has parts. Types of jobs may be named "chain" or "group" too. */
function compositeKind(step: Json): CompositeKind | undefined {
  if ('args' in step || !['steps', 'jobs', 'tasks', 'callbacks'].some((member) => member in step)) return undefined;
  return kindOf(step.type);
}

class TreeReader {
  readonly nodes: PlanNode[] = [];
  readonly steps: NewStep[] = [];
  readonly checks: StepCheck[] = [];
  private outermost: number | undefined;
  private jobs = 0;
  private dependencies = 0;

  constructor(
    private readonly now: number,
    private readonly defaults: Json,
    private readonly unknown: UnknownMembers,
  ) {}

  /** @param path prefix of the fields inside, empty for the outermost */
  addComposite(input: Json, kind: CompositeKind, parent: number, id: string, path: string, depth: number): number {
    if (depth > MAX_DEPTH) throw invalidRequest(path, `${path} is nested deeper than ${MAX_DEPTH} workflows.`);
    const member = partsOf(input, kind);
    const field = joined(path, member);
    const list = input[member];
    if (!Array.isArray(list)) throw invalidRequest(field, `${field} is required and must be an array.`);
    if (list.length === 0) throw invalidRequest(field, `${field} must have at least one entry.`);
    if (list.length > MAX_JOBS) throw tooManyJobs(field, list.length);
    this.unknown.note(input, depth === 1 ? WORKFLOW : INNER, path && `${path}.`, aboutForm);
    const index = this.nodes.length;
    const name = optional(input, 'name', readStepName, path && `${path}.`);
    const node: PlanNode = { id, kind, parent, children: [], ...defined({ name }) };
    this.nodes.push(node);
    const inputs = list.map((entry: unknown, place) => readObject(entry, `${field}[${place}]`));
    const names = this.namesOf(inputs, field);
    node.children = inputs.map((step, place) => {
      if (depth === 1) this.outermost = place;
      try {
        return this.addStep(step, kind, index, names[place] as string, `${field}[${place}]`, depth);
      } catch (error) {
        throw depth === 1 ? atIndex(error, place) : error;
      }
    });
    if (depth === 1) this.outermost = undefined;
    if (kind === 'graph') {
      this.link(inputs, node, names, field);
      this.findCallbacks(node);
    }
    if (kind === 'batch') this.addCallbacks(input, node, index, path);
    else if ((input.callbacks ?? null) !== null) {
      throw invalidRequest(joined(path, 'callbacks'), `${joined(path, 'callbacks')} belongs to a batch.`);
    }
    return index;
  }

  private namesOf(inputs: readonly Json[], field: string): string[] {
    const seen = new Set<string>();
    return inputs.map((step, place) => {
      const name = optional(step, 'id', readStepName, `${field}[${place}].`) ?? String(place);
      if (seen.has(name)) throw invalidRequest(`${field}[${place}].id`, `${field}[${place}].id ${name} is taken.`);
      seen.add(name);
      return name;
    });
  }

  private addStep(step: Json, within: CompositeKind, parent: number, id: string, path: string, depth: number): number {
    if (within !== 'graph' && (step.depends_on ?? null) !== null) {
      throw invalidRequest(`${path}.depends_on`, `${path}.depends_on belongs to a step of a graph.`);
    }
    const kind = compositeKind(step);
    if (kind) return this.addComposite(step, kind, parent, id, path, depth + 1);
    // Callbacks come on top: a batch with the maximum of jobs may have callbacks too.
    if (++this.jobs > MAX_JOBS) throw tooManyJobs(path, this.jobs);
    return this.addJob(step, parent, id, path);
  }

  private addJob(step: Json, parent: number, id: string, path: string): number {
    const { id: _id, depends_on: _needs, ...input } = step;
    const job = withDefaults(input, this.defaults, `${path}.options`);
    const parsed = parseJob(job, { now: this.now, path, unknown: this.unknown });
    this.unknown.note(input, JOB_MEMBERS, `${path}.`, aboutStep);
    if (parsed.unique !== undefined) {
      throw unsupported(`${path}.unique is not supported in a workflow, whose jobs run once anyway.`, {
        field: `${path}.unique`,
      });
    }
    const index = this.nodes.length;
    this.nodes.push({ id, kind: 'job', parent, children: [], type: parsed.job.type, queue: parsed.queue });
    this.steps.push({ step: index, job: JSON.stringify(job) });
    const { type, priority, retry, body } = parsed.job;
    const place = this.outermost === undefined ? {} : { index: this.outermost };
    this.checks.push({ queue: parsed.queue, job: { type, priority, ...defined({ retry }), body }, path, ...place });
    return index;
  }

  private addCallbacks(input: Json, node: PlanNode, index: number, path: string): void {
    const { field, given } = callbacksIn(input, path);
    const unknown = Object.keys(given).find((name) => !CALLBACKS.some((known) => known === name));
    if (unknown !== undefined) {
      throw invalidRequest(
        `${field}.${unknown}`,
        `${field} knows no "${quote(unknown)}"; use ${CALLBACKS.join(', ')}.`,
      );
    }
    node.callbacks = {};
    for (const name of CALLBACKS) {
      const callback = optional(given, name, readObject, `${field}.`);
      if (callback === undefined) continue;
      const added = this.addJob(callback, index, name, `${field}.${name}`);
      (this.nodes[added] as PlanNode).callback = name;
      node.callbacks[name] = added;
    }
    if (Object.keys(node.callbacks).length === 0) {
      throw invalidRequest(field, `${field} must have at least one of ${CALLBACKS.join(', ')}.`);
    }
  }

  /** Most clients write a batch as a graph whose callbacks (`on_failure`) are steps that depend on all others. */
  private findCallbacks(node: PlanNode): void {
    const named = new Map(node.children.map((child) => [child, callbackNamed(nodeAt(this, child))]));
    const parts = node.children.filter((child) => named.get(child) === undefined);
    if (parts.length === 0) return;
    const needed = new Set(node.children.flatMap((child) => nodeAt(this, child).needs ?? []));
    for (const [child, name] of named) {
      const step = nodeAt(this, child);
      const needs = new Set(step.needs);
      if (name === undefined || needed.has(child) || needs.size !== parts.length || node.callbacks?.[name]) continue;
      if (!parts.every((part) => needs.has(part))) continue;
      delete step.needs;
      step.callback = name;
      node.callbacks = { ...node.callbacks, [name]: child };
    }
    node.children = node.children.filter((child) => nodeAt(this, child).callback === undefined);
  }

  /** Reads what the steps of a graph depend on. @throws {ApiError} 400 for an unknown step, and for a circle */
  private link(inputs: readonly Json[], node: PlanNode, names: readonly string[], field: string): void {
    const byName = new Map(names.map((name, place) => [name, place]));
    const needs = inputs.map((step, place) => {
      const path = `${field}[${place}].`;
      const wanted = optional(step, 'depends_on', readNames, path) ?? [];
      return [...new Set(wanted)].map((name) => {
        const found = byName.get(name);
        if (found === undefined) {
          const needed = `${path}depends_on`;
          throw atIndex(invalidRequest(needed, `${needed} is not a step of this graph: "${name}".`), place);
        }
        return found;
      });
    });
    this.dependencies += needs.reduce((sum, { length }) => sum + length, 0);
    if (this.dependencies > MAX_DEPENDENCIES) {
      throw tooMany(`${field}.depends_on`, this.dependencies, MAX_DEPENDENCIES, 'dependencies');
    }
    const circle = findCircle(needs);
    if (circle) {
      const path = `${field}[${circle[0]}].depends_on`;
      const around = [...circle, circle[0] as number].map((place) => names[place]).join(' → ');
      throw atIndex(invalidRequest(path, `${path} is circular: ${quote(around)}.`), circle[0] as number);
    }
    for (const [place, child] of node.children.entries()) {
      (this.nodes[child] as PlanNode).needs = (needs[place] ?? []).map((need) => node.children[need] as number);
    }
  }
}

/** The callback that a job of a graph is named after, if it is. */
function callbackNamed({ id, kind }: PlanNode): Callback | undefined {
  const name = id.replaceAll('-', '_');
  return kind === 'job' ? CALLBACKS.find((known) => known === name) : undefined;
}

/** The member that has the parts. Those of a group are `jobs`, or `tasks`. */
function partsOf(input: Json, kind: CompositeKind): 'steps' | 'jobs' | 'tasks' {
  if (kind !== 'group' && kind !== 'batch') return 'steps';
  return input.jobs === undefined && input.tasks !== undefined ? 'tasks' : 'jobs';
}

/** The callbacks of a batch: in `callbacks`, or beside it. @throws {ApiError} 400 for one that stands in both places */
function callbacksIn(input: Json, path: string): { field: string; given: Json } {
  const field = joined(path, 'callbacks');
  const given = readObject(input.callbacks ?? {}, field);
  const beside = CALLBACKS.filter((name) => (input[name] ?? null) !== null);
  const twice = beside.find((name) => (given[name] ?? null) !== null);
  if (twice !== undefined) throw invalidRequest(joined(path, twice), `${joined(path, twice)} is in ${field} too.`);
  return { field, given: { ...given, ...Object.fromEntries(beside.map((name) => [name, input[name]])) } };
}

/** Options of the whole workflow apply after those of the job itself, in `options` or beside them. */
function withDefaults(input: Json, defaults: Json, path: string): Json {
  const missing = Object.entries(defaults).filter(([name]) => (own(input, name) ?? null) === null);
  if (missing.length === 0) return input;
  const written = input.options === undefined || input.options === null ? {} : readObject(input.options, path);
  const given = Object.entries(written).filter(([, value]) => value !== null);
  return { ...input, options: { ...Object.fromEntries(missing), ...Object.fromEntries(given) } };
}

/** Steps that wait for each other in a circle; undefined when there are none. */
function findCircle(needs: readonly (readonly number[])[]): number[] | undefined {
  const left = needs.map(({ length }) => length);
  const dependents = needs.map((): number[] => []);
  needs.forEach((list, place) => {
    for (const need of list) dependents[need]?.push(place);
  });
  const free = left.flatMap((count, place) => (count === 0 ? [place] : []));
  for (let next = free.pop(); next !== undefined; next = free.pop()) {
    for (const dependent of dependents[next] ?? []) {
      left[dependent] = (left[dependent] as number) - 1;
      if (left[dependent] === 0) free.push(dependent);
    }
  }
  const start = left.findIndex((count) => count > 0);
  if (start < 0) return undefined;
  // Every remaining step waits for another remaining one, so following them must come back.
  const path: number[] = [];
  let at = start;
  while (!path.includes(at)) {
    path.push(at);
    at = needs[at]?.find((need) => (left[need] as number) > 0) as number;
  }
  return path.slice(path.indexOf(at));
}

const joined = (path: string, member: string): string => (path === '' ? member : `${path}.${member}`);
