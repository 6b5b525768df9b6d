/** An event of the live feed. */

/** Something that happened. */
export interface QueueEvent {
  specversion: string;
  /** Names its place in the feed. */
  id: string;
  /** `job.completed`, `queue.paused`, `cron.triggered`, … */
  type: string;
  source: string;
  /** The job, queue, worker, workflow or schedule it is about. */
  subject: string;
  /** RFC 3339. */
  time: string;
  /** What is known of it, in the wire's names. */
  data: Record<string, unknown>;
}
