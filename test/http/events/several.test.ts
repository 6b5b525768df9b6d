import { describe, expect, it } from 'vitest';
import { counting } from '../../support/calls';
import { until } from '../../support/clock';
import { freshName } from '../../support/queue';
import { server, V1 } from '../../support/server';
import { StreamReader } from '../../support/streams';

server.emptyBeforeEach();

const ids = (stream: StreamReader, event: string) => stream.of(event).map(({ data }) => data.job_id);

describe('a stream of several queues', () => {
  it('has all queues, also those that come into being, and the workers', async () => {
    const [one, two, late] = [freshName(), freshName(), freshName()];
    for (const queue of [one, two]) await server.enqueue(queue);
    const stream = await StreamReader.open('/events/stream');
    const before = [await server.enqueue(one), await server.enqueue(two)];
    await stream.get('job.enqueued', 2);
    const born = await server.enqueue(late);
    await stream.get('job.enqueued', 3);
    const next = await server.enqueue(late);
    await stream.get('job.enqueued', 4);
    expect(ids(stream, 'job.enqueued').toSorted()).toEqual([...before, born, next].toSorted());
    await server.ok(200, 'POST', `${V1}/workers/heartbeat`, { worker_id: 'w-1', state: 'running', queues: [one] });
    expect((await stream.get('worker.started'))[0]?.data).toMatchObject({ worker_id: 'w-1' });
    await stream.close();
  });

  it('asks the directory once, and each queue once, whatever happens in them', async () => {
    const [one, two] = [freshName(), freshName()];
    for (const queue of [one, two]) await server.enqueue(queue);
    const calls = counting();
    const stream = await StreamReader.open('/events/stream', {}, calls.server);
    expect(calls.take().toSorted()).toEqual(
      ['directory.fetch', 'directory.list', `${one}.fetch`, `${two}.fetch`].toSorted(),
    );
    for (let n = 0; n < 3; n++) for (const queue of [one, two]) await server.enqueue(queue);
    await stream.get('job.enqueued', 6);
    expect(calls.take()).toEqual([]);
    await stream.close();
  });

  it('may be narrowed to some queues, each of which must exist', async () => {
    const [one, two, other] = [freshName(), freshName(), freshName()];
    for (const queue of [one, two, other]) await server.enqueue(queue);
    const stream = await StreamReader.open(`/events/stream?queue=${one},${two}&types=job.enqueued`);
    const wanted = [await server.enqueue(one), await server.enqueue(two)];
    await server.enqueue(other);
    await stream.get('job.enqueued', 2);
    expect(ids(stream, 'job.enqueued').toSorted()).toEqual(wanted.toSorted());
    await stream.close();
    expect(await server.refusal('GET', `${V1}/events/stream?queue=${one},nowhere`)).toMatchObject({ status: 404 });
  });

  it('repeats rather than loses what happened about the moment a client left', async () => {
    const [one, two] = [freshName(), freshName()];
    for (const queue of [one, two]) await server.enqueue(queue);
    const stream = await StreamReader.open('/events/stream?types=job.enqueued');
    const seen = [await server.enqueue(one), await server.enqueue(two)];
    await stream.get('job.enqueued', 2);
    await stream.close();
    const missed = [await server.enqueue(one), await server.enqueue(two)];
    const again = await StreamReader.open('/events/stream?types=job.enqueued', { 'Last-Event-ID': stream.lastId });
    await until(() => missed.every((id) => ids(again, 'job.enqueued').includes(id)), 'what was missed');
    expect(again.names()).not.toContain('system.gap');
    expect(ids(again, 'job.enqueued').slice(-2)).toEqual(missed);
    expect(seen).toHaveLength(2);
    await again.close();
  });

  it('continues for the others when a queue is deleted, and has it again when it is created again', async () => {
    const [one, two] = [freshName(), freshName()];
    for (const queue of [one, two]) await server.enqueue(queue);
    const stream = await StreamReader.open('/events/stream?types=job.enqueued');
    await server.ok(202, 'DELETE', `${V1}/queues/${one}?strategy=discard`);
    const id = await server.enqueue(two);
    await stream.get('job.enqueued');
    const anew = await server.enqueue(one);
    await until(() => ids(stream, 'job.enqueued').includes(anew), 'the new queue');
    expect(ids(stream, 'job.enqueued')).toEqual([id, anew]);
    await stream.close();
  });
});
