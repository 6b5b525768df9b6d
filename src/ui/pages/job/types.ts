import type { InspectedJob, JobStory } from '../../../contract/jobs';

/** A job with its whole story: `GET /admin/jobs/:id?timeline=true`. */
export type Job = InspectedJob & JobStory;
