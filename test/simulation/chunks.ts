/** Workers that take jobs by the chunk: which jobs share a call, and when it starts. */
import fc from 'fast-check';
import { holds, same } from './agree';
import type { Area } from './area';
import { EVES } from './calendar';
import { stepOf } from './histories';
import { isBegun, type Model, type ModelJob } from './model';
import { type GroupTerms, groupOf, groupsOf } from './model-groups';
import { isSuspect } from './model-pushes';
import { startsLeft } from './model-queue';
import { delivered, jobsFor, ofGroups, requestOf, takable } from './reports';
import type { Scene } from './scene';
import type { History, Step } from './steps';

/** A worker asks for all types by the chunk. */
export type ChunkStep = {
  op: 'claim-chunks';
  count: number;
  worker: string;
  size: number;
  wait: number;
  byGroup: boolean;
};

function play(scene: Scene, asked: ChunkStep): void {
  const { model } = scene;
  const isStrict = groupsOf(model).terms?.order === 'strict';
  // What a failure means for those behind it in a strict group, tests of their own show.
  const step = isStrict ? { ...asked, size: 1 } : asked;
  const batch = { type: '*', size: step.size, wait_ms: step.wait, ...(step.byGroup && { by: 'group' as const }) };
  const request = { ...requestOf({ ...step, visibility: 0 }), chunks: { chunked: [batch], singles: [] } };
  const views = jobsFor(scene, request);
  scene.tidy();
  const available = takable(scene, undefined);
  const chunks = new Map<string, ModelJob[]>();
  for (const { record } of views) {
    delivered(model, record);
    const job = available.find(({ id }) => id === record.id);
    holds(job !== undefined, () => `${record.id} was not available for a chunk`);
    const { id, jobs } = record.chunk ?? { id: record.id, jobs: 1 };
    const members = [...(chunks.get(id) ?? []), job as ModelJob];
    chunks.set(id, members);
    holds(members.length <= jobs, () => `chunk ${id} has more than its ${jobs} jobs`);
  }
  holds(chunks.size <= step.count, () => `${chunks.size} chunks, not ${step.count}`);
  holds(views.length <= startsLeft(model, scene.now), () => `${views.length} jobs start, which are too many`);
  for (const members of chunks.values()) fits(scene, step, members, available);
  const taken = [...chunks.values()].flat();
  withinLimits(model, taken, scene.now);
  if (groupsOf(model).terms) ofGroups(scene, taken);
  for (const job of taken) model.claim(job, step.worker, 0, scene.now);
  for (const members of chunks.values()) {
    if (members.length > 1) for (const { lease } of members) if (lease) lease.isShared = true;
  }
  for (const { record } of views) same(record.attempt, taken.find(({ id }) => id === record.id)?.attempt, record.id);
  if (chunks.size < step.count && startsLeft(model, scene.now) > 0) nothingIsReady(scene, step, available, taken);
}

/** When each job was first seen here, epoch ms. */
const arrivals = (model: Model) => model.part('chunks', () => new Map<ModelJob, number>());

function observe({ model, now }: Scene): void {
  const known = arrivals(model);
  for (const job of model.jobs) if (!known.has(job)) known.set(job, now);
}

/** Names the chunks that a job may be in. */
const laneOf = ({ order, id }: ModelJob, byGroup: boolean, alone: boolean): string =>
  alone ? id : `${order.kind} ${byGroup ? groupOf({ order } as ModelJob) : ''}`;

/** Must it not share a call? */
const isAlone = (job: ModelJob): boolean => isSuspect(job) || job.attempt + 1 >= Math.max(1, job.order.maxAttempts);

const isDue = ({ availableAt }: ModelJob, { wait }: ChunkStep, now: number) => availableAt + wait <= now;

/** Do these jobs go together, and may they start? */
function fits(scene: Scene, step: ChunkStep, members: readonly ModelJob[], available: readonly ModelJob[]): void {
  const { now, isLarge, isNarrow } = scene;
  const [first] = members as [ModelJob];
  const lanes = new Set(members.map((job) => laneOf(job, step.byGroup, false)));
  holds(lanes.size === 1, () => `a chunk has jobs of ${[...lanes].join(', ')}`);
  holds(members.length <= step.size, () => `a chunk has ${members.length} jobs, not ${step.size}`);
  const alone = members.find(isAlone);
  if (alone) {
    holds(members.length === 1, () => `${alone.id} shares a call`);
    return;
  }
  // Others may have been left out because their keys had no room. All that belong there made the chunk start.
  const lane = laneOf(first, step.byGroup, false);
  const all = available.filter((job) => !isAlone(job) && laneOf(job, step.byGroup, false) === lane);
  const isReady = all.length >= step.size || all.some((job) => isDue(job, step, now));
  holds(isReady || isLarge || isNarrow, () => `a chunk of ${members.length} starts too early: ${first.id}`);
}

function withinLimits(model: Model, taken: readonly ModelJob[], now: number): void {
  for (const key of ['narrow', 'rated', 'spaced'] as const) {
    const of = taken.filter(({ order }) => order.limit === key);
    const room = model.room(key, now);
    const starts = of.filter((job) => !isBegun(job)).length;
    holds(of.length <= room.runs && starts <= room.starts, () => `a chunk goes beyond the limit of ${key}`);
  }
}

/** Do its terms keep no group from starting jobs? */
const isFairAlone = ({ order, weights: _, maxWaiting: __, ...bounds }: GroupTerms): boolean =>
  order === 'fair' && Object.values(bounds).every((bound) => bound === undefined);

/** With room for more chunks, none was left that could start. */
function nothingIsReady(scene: Scene, step: ChunkStep, before: readonly ModelJob[], taken: readonly ModelJob[]): void {
  const { model, now, isLarge, isNarrow } = scene;
  // The next claim continues; one that gave nothing would have nothing to continue.
  if (isNarrow && taken.length > 0) return;
  // What a worker may take in one answer, and what a group may run at once, ends a claim, too.
  const { terms } = groupsOf(model);
  if (isLarge || (terms && !isFairAlone(terms))) return;
  const left = before.filter((job) => !taken.includes(job));
  if (left.some(({ order }) => order.limit !== null)) return;
  const lanes = Map.groupBy(left, (job) => laneOf(job, step.byGroup, isAlone(job)));
  const known = arrivals(model);
  // One that came from another queue waits here since it came.
  const isLate = (job: ModelJob) => isDue(job, step, now) && (known.get(job) ?? now) + step.wait <= now;
  for (const [lane, jobs] of lanes) {
    const isReady = jobs.some(isAlone) || jobs.length >= step.size || jobs.some(isLate);
    holds(!isReady, () => `the chunk of ${lane} was left: ${jobs.map(({ id }) => id).join(', ')}`);
  }
}

const chunked = fc.record({
  op: fc.constant('claim-chunks' as const),
  count: fc.integer({ min: 1, max: 3 }),
  worker: fc.constantFrom('ann', 'bob'),
  // The same ones again and again, so that what was gathered is used.
  size: fc.constantFrom(3, 3, 3, 2, 1),
  wait: fc.constantFrom(2_000, 2_000, 2_000, 0, 60_000),
  byGroup: fc.constantFrom(false, false, true),
});

const terms = fc.constantFrom(
  ...[null, null, { order: 'strict' as const }],
  ...[{ order: 'fair' as const }, { order: 'fair' as const, concurrency: 2 }],
);

export const area: Area<ChunkStep> = {
  kinds: { 'claim-chunks': play },
  observe,
  steps: [{ weight: 2, arbitrary: chunked }],
  histories: (length) => [
    {
      weight: 2,
      arbitrary: fc.record({
        start: fc.constantFrom(...EVES),
        drains: fc.constantFrom(true, false),
        groups: terms,
        steps: fc.array(
          fc.option(
            fc.oneof<fc.WeightedArbitrary<Step>[]>(
              { weight: 3, arbitrary: stepOf(0) },
              { weight: 2, arbitrary: chunked },
            ),
            { freq: 200 },
          ),
          { minLength: length, maxLength: length },
        ),
      }) as fc.Arbitrary<History>,
    },
  ],
};
