import type { InspectedJob, JobStory } from '../../../contract/jobs';

/** A job with its whole story: `GET /admin/jobs/:id?timeline=true`. */
export type Job = InspectedJob & JobStory;

/** Has an attempt begun that sleeps, or waits for a signal? It is not counted until it ends. */
export const isAsleep = ({ waiting_for }: Job) => waiting_for?.reason === 'signal' || waiting_for?.reason === 'snoozed';
