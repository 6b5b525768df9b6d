import type { FeedEvent } from '../../../contract/event-messages';

/** An event on the page, from the list or from the live feed, which write it differently. */
export interface Shown {
  id: string;
  event: string;
  timestamp: string;
  data: Readonly<Record<string, unknown>>;
  job: string | undefined;
  queue: string | undefined;
  /** Of the job. */
  type: string | undefined;
  subject: string;
}

export function fromList({ id, type: event, subject, timestamp, data }: FeedEvent): Shown {
  const { job_id: job, queue, job_type: type } = data as Record<string, string | undefined>;
  return { id, event, timestamp, data, job, queue, type, subject };
}
