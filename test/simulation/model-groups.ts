/** Groups, as the documents have them: how a queue serves them, and who waits for whom. */
import { holds } from './agree';
import type { JobOrder, Model, ModelJob } from './model';

/** A group with more available jobs than this is noisy. */
export const QUIET = 30;

/** Jobs of a noisy group in one turn, and the part of what is handed out that is kept for noisy groups. */
const TURN = 8;
const SHARE = 1 / 8;

export interface GroupTerms {
  order: 'fair' | 'strict';
  concurrency?: number | undefined;
  /** Jobs of a group that wait, at most. */
  maxWaiting?: number | undefined;
  /** Shares in the turns; 1 where nothing is said. */
  weights?: Record<string, number> | undefined;
}

/** What was handed out while some groups were noisy all the time. */
interface Turns {
  /** These groups, and how many jobs of each. */
  served: Record<string, number>;
  /** All that were noisy for a while. */
  ever: string[];
  asked: number;
  /** Of jobs of groups that were noisy. */
  noisy: number;
  /** Statements that had failed when it began: what was read ahead is lost by one. */
  faults: number;
}

interface GroupBook {
  /** Absent: jobs are handed out as if they had no group. */
  terms?: GroupTerms | undefined;
  /** Groups that an operator has paused. */
  paused?: string[];
  turns?: Turns | undefined;
}

export function groupsOf(model: Model): GroupBook {
  return model.part<GroupBook>('groups', () => ({}));
}

export const isStrict = (model: Model): boolean => groupsOf(model).terms?.order === 'strict';

/** The group of a job: the one that it names, else the key of its limits. */
export const groupOf = ({ order }: Pick<ModelJob, 'order'>): string | undefined =>
  order.group ?? order.limit ?? undefined;

/** The first group of which more jobs would wait than may, and how many do. */
export function crowdedBy(
  model: Model,
  orders: readonly JobOrder[],
): { group: string; waiting: number; limit: number } | undefined {
  const { maxWaiting: limit } = groupsOf(model).terms ?? {};
  if (limit === undefined) return undefined;
  const arriving = orders.map((order) => groupOf({ order }));
  for (const group of new Set(arriving)) {
    if (group === undefined) continue;
    const waits = model.jobs.filter((job) => job.state === 'waiting' || job.state === 'pending');
    const waiting = waits.filter((job) => groupOf(job) === group).length;
    if (waiting + arriving.filter((other) => other === group).length > limit) return { group, waiting, limit };
  }
  return undefined;
}

/** Does an operator keep the job from starting? */
export function isPaused(model: Model, job: ModelJob): boolean {
  const { terms, paused = [] } = groupsOf(model);
  const group = groupOf(job);
  return terms !== undefined && group !== undefined && paused.includes(group);
}

/** Attempts of the group that run. */
export function runningOf(model: Model, group: string): number {
  return model.jobs.filter((job) => job.state === 'active' && groupOf(job) === group).length;
}

/**
 * The jobs of which a claim may take one for each group, the others of the group waiting for its end: those that hold it up, else
 * those that became available first. Several are alike, but for those that wait since they were enqueued.
 * @param available jobs of any kind
 */
export function headsOf(model: Model, available: readonly ModelJob[]): Map<string, ModelJob[]> {
  const heads = new Map<string, ModelJob[]>();
  for (const group of new Set(available.flatMap((job) => groupOf(job) ?? []))) {
    if (runningOf(model, group) > 0) continue;
    const waits = model.jobs.filter((job) => groupOf(job) === group && job.holds && job.state === 'waiting');
    const ready = available.filter((job) => groupOf(job) === group);
    const first = Math.min(...ready.map(({ availableAt }) => availableAt));
    const alike = ready.filter((job) => (waits.length > 0 ? waits.includes(job) : job.availableAt === first));
    const next = alike.find(isUntouched);
    const heading = waits.length > 0 ? alike : alike.filter((job) => job === next || !isUntouched(job));
    if (heading.length > 0) heads.set(group, heading);
  }
  return heads;
}

/** Does it wait since it was enqueued? Its place is that of its enqueue, also among those of its moment. */
function isUntouched({ wasHandedOut, wasRedriven, order, fire, availableAt, createdAt }: ModelJob): boolean {
  return !wasHandedOut && !wasRedriven && !order.pending && !fire && availableAt === createdAt && order.delay === 0;
}

/**
 * A claim takes jobs of a queue that is fair: noisy groups get what is kept for them, and share it as their weights say.
 * @param count what the claim asked for
 * @param available as they were before it, of any kind
 */
export function takesTurns(
  model: Model,
  count: number,
  { available, taken, faults }: { available: readonly ModelJob[]; taken: readonly ModelJob[]; faults: number },
): void {
  const book = groupsOf(model);
  const { terms } = book;
  if (terms?.order !== 'fair') return;
  // Priorities come first, and what limits hold back is passed.
  const isPlain = available.every(
    ({ order }) => order.limit === null && order.priority === available[0]?.order.priority,
  );
  const noisy = terms.concurrency === undefined && isPlain ? noisyOf(available) : [];
  const isOver =
    book.turns?.faults !== faults || Object.keys(book.turns.served).some((group) => !noisy.includes(group));
  if (isOver) {
    const known = noisy.filter((group) => isReadAhead(available, group, count));
    const served = Object.fromEntries(known.map((group) => [group, 0]));
    book.turns = known.length > 0 ? { served, ever: [], asked: 0, noisy: 0, faults } : undefined;
  }
  const { turns } = book;
  if (!turns || taken.length < count) return;
  // One that has no more jobs cannot have its share.
  const left = new Set(available.filter((job) => !taken.includes(job)).map(groupOf));
  if (Object.keys(turns.served).some((group) => !left.has(group))) {
    book.turns = undefined;
    return;
  }
  turns.ever = [...new Set([...turns.ever, ...noisy])];
  turns.asked += count;
  for (const group of taken.map(groupOf)) {
    if (group === undefined) continue;
    if (turns.ever.includes(group)) turns.noisy++;
    if (turns.served[group] !== undefined) turns.served[group]++;
  }
  compareTurns(turns, terms);
}

function compareTurns({ served, noisy, asked }: Turns, { weights }: GroupTerms): void {
  // What is saved for them is lost with what was read ahead, which a refusal may cost: so it may be less.
  const least = (asked * SHARE) / 2 - 2;
  holds(noisy >= least, () => `${noisy} jobs of noisy groups among ${asked}, not ${least}`);
  const times = Object.entries(served).map(([group, count]) => count / (weights?.[group] ?? 1));
  const apart = Math.max(...times) - Math.min(...times);
  holds(apart <= 2 * TURN + 2, () => `turns of ${JSON.stringify(served)} are not as their weights`);
}

function noisyOf(available: readonly ModelJob[]): string[] {
  const groups = new Set(available.flatMap((job) => groupOf(job) ?? []));
  return [...groups].filter((group) => available.filter((job) => groupOf(job) === group).length > QUIET);
}

/** Must a claim of so many jobs see that the group is noisy? What it reads ahead is bounded. */
function isReadAhead(available: readonly ModelJob[], group: string, count: number): boolean {
  // In the order of enqueue, those of one moment.
  const inOrder = available.toSorted((a, b) => a.availableAt - b.availableAt);
  const last = inOrder.filter((job) => groupOf(job) === group)[QUIET] as ModelJob;
  const before = inOrder.slice(0, inOrder.indexOf(last)).filter((job) => groupOf(job) !== group);
  return before.length < count;
}
