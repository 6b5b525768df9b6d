import { describe, expect, it } from 'vitest';
import { freshName, TestQueue } from '../../support/queue';
import { server, UNKNOWN_ID, V1 } from '../../support/server';
import { StreamReader } from '../../support/streams';

server.emptyBeforeEach();

describe('a stream of one job', () => {
  it('has what happens to it, and ends with it', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    const other = await server.enqueue(queue);
    const stream = await StreamReader.open(`/jobs/${id}/events`);
    expect(await server.takeIds(queue, { count: 2 })).toEqual([id, other]);
    await server.ok(200, 'POST', `${V1}/workers/ack`, { job_id: other });
    await server.ok(200, 'POST', `${V1}/workers/ack`, { job_id: id });
    await stream.over();
    expect(stream.names()).toEqual(['job.state_changed', 'job.started', 'job.state_changed', 'job.completed']);
    const [started, , ended, completed] = stream.messages.map(({ data }) => data);
    const timestamp = expect.stringMatching(/^20\d\d-.*Z$/);
    const change = { job_id: id, queue, type: 'test.echo', timestamp };
    expect(started).toEqual({ event: 'job.state_changed', ...change, from: 'available', to: 'active' });
    expect(ended).toMatchObject({ ...change, from: 'active', to: 'completed' });
    expect(completed).toMatchObject({ event: 'job.completed', ...change, attempt: 1 });
  });

  it('is refused as JSON when there is no such job', async () => {
    expect(await server.refusal('GET', `${V1}/jobs/${UNKNOWN_ID}/events`)).toEqual({ status: 404, code: 'not_found' });
  });
  void TestQueue;
});
