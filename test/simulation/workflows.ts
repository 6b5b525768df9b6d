/**
 * Workflows: their jobs are started here, each once however often that is sent, and they must hear of every end, whatever dies
 * on the way. What a workflow hears twice it hears in the same words.
 */
import fc from 'fast-check';
import { startSteps } from '../../src/queue/features/workflow/steps';
import { cancelOpen } from '../../src/queue/jobs/cancel';
import { ENDING } from '../../src/queue/store/workflow-endings';
import type { Ending, WorkflowApi } from '../../src/rpc/workflow';
import { holds, same } from './agree';
import type { Area, Kind } from './area';
import { historiesOf } from './histories';
import type { JobOrder, Model, StepEnd } from './model';
import { order, pick } from './orders';
import { busy, lost, Outside, type Question } from './outside';
import { type Scene, statusOf } from './scene';
import type { Step } from './steps';
import { newJob } from './wire';
import type { World } from './world';

export type WorkflowStep =
  /** A workflow starts jobs here. Lost: it does not hear their ids, and sends them again. */
  | { op: 'start-steps'; jobs: JobOrder[]; isLost: boolean }
  | { op: 'start-again'; pick: number; isLost: boolean }
  | { op: 'cancel-steps'; pick: number }
  /** A workflow answers what it was told of ends. */
  | { op: 'workflow-answers'; pick: number; how: 'take' | 'lost' | 'busy' };

/** Jobs that a workflow has sent. */
interface Start {
  workflow: string;
  from: number;
  ids: string[];
  /** Does the workflow know their ids? Until then it may send them again. */
  isKnown: boolean;
}

const WORKFLOWS = ['one', 'two'];
/** The longest pause of a message that does not arrive, ms, and some more. */
const LONGEST_PAUSE_MS = 61_000;

interface Workflows {
  outside: Outside;
  /** Ends that each workflow has heard of, in words. */
  heard: Set<string>;
  /** What was sent, to be sent again word for word. */
  sent: Map<string, Parameters<typeof startSteps>[1]>;
}

const all = new WeakMap<World, Workflows>();
const workflowsOf = ({ world }: Scene): Workflows | undefined => all.get(world);
const startsOf = (model: Model): Start[] => model.part<Start[]>('starts', () => []);
const endsOf = (model: Model): StepEnd[] => model.part<StepEnd[]>('ends', () => []);

const start: Kind<StepOfWorkflow<'start-steps'>> = {
  prepare: async (scene, { jobs, isLost }) => {
    const newJobs = await Promise.all(jobs.map((job) => newJob(job, scene.now)));
    const play = (): void => {
      const workflows = workflowsOf(scene);
      if (!workflows) return;
      const { model, q } = scene;
      const from = ++scene.operations * 100;
      const workflow = WORKFLOWS[scene.operations % WORKFLOWS.length] as string;
      const steps = newJobs.map((job, at) => {
        const body = JSON.stringify({ ...JSON.parse(job.body), workflow: { id: workflow, step: from + at } });
        return { step: from + at, job: { ...job, body } };
      });
      const request = { workflow, steps, cancelled: false, first: false };
      const outcome = scene.attempt((now) => startSteps(q, request, now));
      scene.tidy();
      if ('error' in outcome) throw new Error(`refused: ${outcome.error.message}`);
      const placement = model.enqueue(jobs, scene.now);
      if (!('placed' in placement)) throw new Error('a step is not unique');
      const ids = outcome.value.map(String);
      for (const [at, { job }] of placement.placed.entries()) {
        job.id = ids[at] as string;
        job.step = { workflow, step: from + at };
      }
      startsOf(model).push({ workflow, from, ids, isKnown: !isLost });
      workflows.sent.set(`${workflow} ${from}`, request);
    };
    return { play };
  },
};

function startAgain(scene: Scene, { pick: at, isLost }: StepOfWorkflow<'start-again'>): void {
  const unknown = startsOf(scene.model).filter(({ isKnown }) => !isKnown);
  const one = unknown[at % Math.max(1, unknown.length)];
  const request = one && workflowsOf(scene)?.sent.get(`${one.workflow} ${one.from}`);
  if (!one || !request) return;
  const outcome = scene.attempt((now) => startSteps(scene.q, request, now));
  scene.tidy();
  same(statusOf(outcome), 200);
  // Each was taken once: it is the same job, whatever has become of it.
  if ('value' in outcome) same(outcome.value, one.ids, 'jobs that were started before');
  one.isKnown = !isLost;
}

function cancelAll(scene: Scene, { pick: at }: StepOfWorkflow<'cancel-steps'>): void {
  const { model, q } = scene;
  const starts = startsOf(model);
  const one = starts[at % Math.max(1, starts.length)];
  if (!one) return;
  scene.attempt((now) => cancelOpen(q, one.ids, now));
  scene.tidy();
  for (const job of model.jobs) {
    if (one.ids.includes(job.id) && ['waiting', 'pending', 'active'].includes(job.state)) model.cancel(job, scene.now);
  }
}

const inWords = (workflow: string, { step, id, end, at }: { step: number; id: string; end: string; at: number }) =>
  `${workflow} ${step} ${id} ${end} ${at}`;

/** An end as the workflow is told it. */
function endInWords({ workflow, step, id, state, at }: StepEnd): string {
  return inWords(workflow, { step, id, end: state === 'discarded' ? 'failed' : state, at });
}

async function workflowAnswers(scene: Scene, { pick: at, how }: StepOfWorkflow<'workflow-answers'>): Promise<void> {
  const question = workflowsOf(scene)?.outside.pick(at);
  if (question) await answerQuestion(scene, question, how);
}

async function answerQuestion(scene: Scene, question: Question, how: StepOfWorkflow<'workflow-answers'>['how']) {
  const { model, world } = scene;
  const { heard } = workflowsOf(scene) as Workflows;
  const [workflow, endings] = question.about as [string, Ending[]];
  if (how === 'busy') question.fail(busy());
  else {
    const known = new Set(endsOf(model).map(endInWords));
    for (const { step, job_id: id = '', end, at } of endings) {
      const words = inWords(workflow, { step, id, end, at });
      holds(known.has(words), () => `${words} was told, which has not happened`);
      heard.add(words);
    }
    const unknown = startsOf(model).filter((one) => one.workflow === workflow && !one.isKnown);
    const unrecorded = unknown.flatMap(({ from, ids }) => ids.map((_, at) => from + at));
    if (how === 'lost') question.fail(lost());
    else question.answer({ unrecorded, events: [] });
  }
  await world.settled();
  scene.finish();
}

type StepOfWorkflow<Op extends WorkflowStep['op']> = Extract<WorkflowStep, { op: Op }>;

/** All that has ended so far is told. */
async function drain(scene: Scene, { outside, heard }: Workflows): Promise<void> {
  const { world, model } = scene;
  for (let round = 0; scene.q.store.outbox.has(ENDING) || outside.questions.length > 0; round++) {
    if (round === 300) throw new Error('some ends are never told');
    const question = outside.pick(0);
    if (question) {
      await answerQuestion(scene, question, 'take');
      continue;
    }
    scene.nextAlarm('tells of the ends that are left');
    model.prune(scene.now);
    await world.settled();
    scene.tidy();
    scene.finish();
  }
  for (const end of endsOf(model)) holds(heard.has(endInWords(end)), () => `nobody was told: ${endInWords(end)}`);
}

const workflowStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('start-steps' as const),
      jobs: fc.array(
        order.map((job) => ({ ...job, unique: null })),
        { minLength: 1, maxLength: 3 },
      ),
      isLost: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('start-again' as const), pick, isLost: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('cancel-steps' as const), pick }) },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('workflow-answers' as const),
      pick,
      how: fc.constantFrom('take', 'take', 'lost', 'busy'),
    }),
  },
);

export const area: Area<WorkflowStep> = {
  kinds: {
    'start-steps': start,
    'start-again': startAgain,
    'cancel-steps': cancelAll,
    'workflow-answers': { prepare: (scene, step) => ({ play: () => workflowAnswers(scene, step) }), isLonger: true },
  },
  excuses: [/^tocsin: ending .* could not be delivered yet/],
  histories: (length) => [
    historiesOf(workflowStep, { length, others: 3, weight: 25 }, { workflows: fc.constant(true) }),
  ],
  hooks(world, { workflows: has }) {
    if (!has) return {};
    const outside = new Outside(world.withheld);
    const workflows = all.get(world) ?? { outside, heard: new Set(), sent: new Map() };
    all.set(world, workflows);
    workflows.outside = outside;
    const workflow = (id: string) => ({ stepsEnded: (_, endings) => outside.ask('ends', id, endings) }) as WorkflowApi;
    return { others: { workflow } };
  },
  async settle(scene) {
    if (!workflowsOf(scene)) return;
    await scene.world.settled();
    scene.world.engine.tidied();
    scene.tidy();
    scene.finish();
  },
  compare(scene) {
    const workflows = workflowsOf(scene);
    const { world, now, lost: isLost } = scene;
    if (!workflows || isLost || workflows.outside.questions.length > 0 || !scene.q.store.outbox.has(ENDING)) return;
    holds(world.alarm !== null && world.alarm <= now + LONGEST_PAUSE_MS, () => `no end is told, armed: ${world.alarm}`);
  },
  async clear(scene) {
    const workflows = workflowsOf(scene);
    if (workflows) await drain(scene, workflows);
  },
};
