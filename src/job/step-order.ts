import type { JobStep } from './wire';

/** Records of steps in the order in which they began. Those of earlier versions have no place, and come first. */
export const stepsInOrder = <Step extends Pick<JobStep, 'seq'>>(
  steps: Readonly<Record<string, Step>>,
): [name: string, step: Step][] => Object.entries(steps).sort(([, a], [, b]) => (a.seq ?? 0) - (b.seq ?? 0));
