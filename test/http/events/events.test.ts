import { describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();

async function enqueueInThree(): Promise<string[]> {
  const names = [freshName(), freshName(), freshName()];
  const ids: string[] = [];
  for (let n = 0; n < 9; n++) ids.push(await server.enqueue(names[n % 3] as string));
  return ids;
}

const subjects = (body: Json) => (body.events as Json[]).map(({ subject }) => subject as string);

describe('the feed of several queues', () => {
  it('is followed from page to page without losing or repeating an event', async () => {
    const ids = await enqueueInThree();
    const seen: string[] = [];
    let after = '';
    for (let more = true; more; ) {
      const body = await server.ok(200, 'GET', `${V1}/events?types=job.enqueued&limit=2${after}`);
      seen.push(...subjects(body));
      after = `&after=${body.cursor}`;
      more = body.has_more as boolean;
    }
    expect(seen.toSorted()).toEqual(ids.toSorted());
  });

  it('has pages by number, the newest first', async () => {
    const ids = await enqueueInThree();
    const pages = [1, 2].map((page) => server.ok(200, 'GET', `${V1}/events?type=job.enqueued&per_page=5&page=${page}`));
    const [first, second] = (await Promise.all(pages)) as [Json, Json];
    expect(first.pagination).toMatchObject({ total: 9, has_more: true });
    expect([...subjects(first), ...subjects(second)].toSorted()).toEqual(ids.toSorted());
    const times = [first, second].flatMap(({ events }) => (events as Json[]).map(({ time }) => time as string));
    expect(times).toEqual(times.toSorted().reverse());
  });
});
