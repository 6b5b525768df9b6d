import type { InspectedJob, JobStory } from '../../../contract/jobs';

/** A job with its whole story: `GET /admin/jobs/:id?timeline=true`. */
export type Job = InspectedJob & JobStory;

/** Has an attempt begun that sleeps, or waits for a signal? It is not counted until it ends. */
const ASLEEP: readonly (string | undefined)[] = ['signal', 'snoozed', 'run'];

export const isAsleep = ({ waiting_for }: Job) => ASLEEP.includes(waiting_for?.reason);
