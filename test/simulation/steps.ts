/** The steps a history is made of, as plain data, so that a failing history can be shrunk and printed. */
import type { Sizes } from '../../src/queue/store/sizes';
import type { Aftermath } from './aftermath';
import type { BatchStep } from './batches';
import type { ChunkStep } from './chunks';
import type { CronStep } from './crons';
import type { FileStep } from './files';
import type { GroupStep } from './groups';
import type { HandlerTerms } from './handler';
import type { JobStep } from './jobs';
import type { GroupTerms } from './model-groups';
import type { MoveStep } from './moves';
import type { PullStep } from './pulls';
import type { PushStep } from './pushes';
import type { ReportStep } from './reports';
import type { SettingsStep } from './settings';
import type { ShareStep } from './shares';
import type { TogetherStep } from './together';
import type { TreeStep, TreeTerms } from './trees';
import type { TroubleStep } from './trouble';
import type { WeeksStep } from './weeks';
import type { WorkflowStep } from './workflows';

export type Step =
  | JobStep
  | ReportStep
  | CronStep
  | TroubleStep
  | WeeksStep
  | PushStep
  | ShareStep
  | MoveStep
  | WorkflowStep
  | BatchStep
  | PullStep
  | SettingsStep
  | GroupStep
  | FileStep
  | ChunkStep
  | TreeStep
  | TogetherStep;

export type StepOf<Op extends Step['op']> = Extract<Step, { op: Op }>;

/** A history, and when it begins. */
export interface History {
  /** Epoch ms. */
  start: number;
  /** One that is null does nothing. */
  steps: (Step | null)[];
  /** Answers are so large that they are weighed. */
  large?: boolean;
  /** Its queue has a retry policy that is as long as one may be. */
  longPolicy?: boolean;
  /** No dead letter is kept. */
  keepsNoDead?: boolean;
  /** Workers wait, and operations share transactions. */
  pulls?: boolean;
  /** Bounds of its memory and its reads; absent: those of the product. */
  sizes?: Partial<Sizes> | undefined;
  /** Attempts that its object runs at once, at most. */
  mostAtOnce?: number | undefined;
  /** In the end everything is done that there is to do. */
  drains?: boolean;
  /** What befalls the queue in the very end. */
  after?: Aftermath | undefined;
  /** Its jobs are pushed, to a Worker that is called so. */
  pushes?: HandlerTerms;
  /** It has shares in batches over several queues. */
  shares?: boolean;
  /** Jobs go to another queue and come from there. */
  moves?: boolean;
  /** How it serves its groups. */
  groups?: GroupTerms | null;
  /** Some of its jobs are steps of workflows. */
  workflows?: boolean;
  /** Its jobs wait for one another: it is played by itself. */
  trees?: TreeTerms;
}
