/** What a worker that pulls does, for tests that decide what becomes of a job. */

/** @param {(method: string, path: string, body?: unknown) => Promise<any>} call of the dashboard under test */
export function puller(call) {
  const worker_id = 'puller';
  const take = async (queue) => {
    const { jobs } = await call('POST', 'workers/fetch', { queues: [queue], count: 1, worker_id });
    return jobs[0];
  };
  return {
    worker_id,
    take,
    /** Enqueues a job that waits for a worker; its id. */
    enqueue: async (queue, { type = 'wait.here', args = [], meta, ...options } = {}) => {
      const { job } = await call('POST', 'jobs', { type, args, ...(meta && { meta }), options: { queue, ...options } });
      return job.id;
    },
    ack: (job_id, result = null) => call('POST', 'workers/ack', { job_id, worker_id, result }),
    nack: (job_id, error) => call('POST', 'workers/nack', { job_id, worker_id, error }),
    /** Enqueues a job and lets it fail for good; its id. */
    dead: async (queue, error, { type = 'wait.here', args = [], ...options } = {}) => {
      const retry = { max_attempts: 1, on_exhaustion: 'dead_letter' };
      const { job } = await call('POST', 'jobs', { type, args, options: { queue, retry, ...options } });
      await take(queue);
      await call('POST', 'workers/nack', { job_id: job.id, worker_id, error });
      return job.id;
    },
  };
}
