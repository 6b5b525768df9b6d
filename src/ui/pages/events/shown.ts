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

/** As `GET /events` lists it. */
export interface ListedEvent {
  id: string;
  type: string;
  subject: string;
  timestamp: string;
  data: Readonly<Record<string, unknown>>;
}

export function fromList({ id, type: event, subject, timestamp, data }: ListedEvent): Shown {
  const { job_id: job, queue, job_type: type } = data as Record<string, string | undefined>;
  return { id, event, timestamp, data, job, queue, type, subject };
}
