/**
 * Messages of workers and producers over a socket, in which values and members come from the hostile ones. Whatever is sent:
 * each message is answered under its id, no defect shows, and the good report among the others counts.
 */
import { expect, inject, it } from 'vitest';
import { until } from '../support/clock';
import { freshName } from '../support/queue';
import { type Json, server } from '../support/server';
import { WorkerSocket } from '../support/worker-socket';
import { Random } from './random';
import { hostile, NOBODYS, written } from './values';

const { runs, seed } = inject('fuzz');

/** Members of what travels, by their list: right values, some of which are replaced. */
const REPORT: Readonly<Record<string, unknown>> = {
  ...{ action: 'ack', attempt: 1, delivery_id: 'd', worker_id: 'w1', result: { a: 1 }, log: [{ message: 'm' }] },
  ...{ error: { type: 'E', message: 'no', details: { a: 1 } }, progress: 0.5, message: 'm', data: { a: 1 } },
  ...{ state: { page: 1 }, metadata: {}, name: 'step', until: 1, snooze: { in: 1, steps: { a: { result: 1 } } } },
};
const ACTIONS = ['ack', 'nack', 'progress', 'checkpoint', 'step'];
const JOB: Readonly<Record<string, unknown>> = {
  ...{ type: 'fuzz.one', args: [{ a: 1 }], meta: { a: 1 }, options: { priority: 1, tags: ['a'], retry: {} } },
  ...{ id: '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee', schema: 's' },
};

/** Some of the members, some of them hostile. */
function wrong(random: Random, members: Readonly<Record<string, unknown>>, always: Json): Json {
  const some: Json = { ...always };
  for (const [name, value] of Object.entries(members)) {
    if (random.chance(0.5)) some[name] = random.chance(0.5) ? hostile(random) : value;
  }
  if (random.chance(0.2)) some[random.pick(NOBODYS)] = hostile(random);
  return some;
}

it('hostile messages over a socket are answered, and hurt no report or job beside them', {
  timeout: 3_600_000,
}, async () => {
  const random = new Random(seed);
  const queue = freshName('fuzz-socket');
  const most = Math.max(20, Math.round(runs / 20));
  for (let id = 1; id <= most; id++) {
    // A new connection each time: one is closed after many messages in a row that cannot be read.
    const socket = await WorkerSocket.open(queue);
    const good = await server.add('fuzz.good', [], { queue });
    const bad = await server.add('fuzz.bad', [], { queue });
    const held = await server.take(queue, { count: 2, worker_id: 'w1' });
    expect(held.map((job) => job.id).sort()).toEqual([good, bad].sort());
    const reports = [
      wrong(random, REPORT, { action: random.pick(ACTIONS), job_id: bad }),
      { action: 'ack', job_id: good, result: 'good' },
      hostile(random),
    ];
    socket.say(written({ type: 'report', id, reports }));
    const jobs = [wrong(random, JOB, { queue: 'fuzz-elsewhere' })];
    socket.say(written({ type: 'enqueue', id: id + most, jobs }));
    const about = wrong(random, { active_jobs: [bad], labels: {} }, { type: 'heartbeat', id: id + 2 * most });
    socket.say(written(about));
    const answers = await answersTo(socket, [id, id + most, id + 2 * most]);
    const said = JSON.stringify(reports).slice(0, 2000);
    for (const answer of answers) {
      const { status = 0 } = (answer.error ?? {}) as { status?: number };
      expect(status < 500 || status === 503, `${said}\n${JSON.stringify(answer)}`).toBe(true);
    }
    expect(answers[0], said).toMatchObject({ type: 'reported', total: 3 });
    expect(await server.job(good), said).toMatchObject({ state: 'completed', result: 'good' });
    socket.socket.close(1000);
    // What is left of the bad one must not be taken for the next.
    await server.call('DELETE', `/ojs/v1/jobs/${bad}`);
  }
});

/** Waits for the answers to these messages, whatever they are. */
async function answersTo(socket: WorkerSocket, ids: readonly number[]): Promise<Json[]> {
  const found = () => ids.map((id) => socket.messages.find((message) => message.id === id));
  await until(
    () => found().every(Boolean),
    () => `the answers to ${ids}; there are ${JSON.stringify(socket.messages).slice(0, 2000)}`,
  );
  return found() as Json[];
}
