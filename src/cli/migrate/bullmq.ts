/** Reads BullMQ from Redis without its library, which writes while reading and refuses other versions' data. */
import { own } from '../../job/own';
import { JOB_MEMBERS, jobOf, legacyHash, REMARKS, scheduleOf } from './bullmq-job';
import { type Finding, type ForeignQueues, left, type Opening } from './found';
import { literally, Redis } from './redis';

const PAGE = 1000;

/** Scores of delayed jobs are epoch ms times this, and a counter. */
const SCORE_UNIT = 0x1000;

/** What makes a queue: not every version has each of them. */
const MARKS = ['meta', 'id', 'wait', 'delayed', 'repeat'] as const;

export async function openBullMQ({ url, within, now }: Opening): Promise<ForeignQueues> {
  const redis = await Redis.open(url);
  const key = (queue: string, ...rest: string[]) => [within, queue, ...rest].join(':');

  async function queues(): Promise<string[]> {
    const found = new Set<string>();
    const pattern = new RegExp(`^([^:]+):(?:${MARKS.join('|')})$`);
    for await (const name of redis.keys(`${literally(within)}:*`)) {
      const queue = pattern.exec(name.slice(within.length + 1))?.[1];
      if (queue !== undefined) found.add(queue);
    }
    return [...found].sort();
  }

  /** Jobs with their hashes. Ids without one are markers, or jobs that have gone meanwhile. */
  async function* jobs(queue: string, ids: readonly string[]) {
    let at = 0;
    const keys = ids.map((id) => key(queue, id));
    for await (const hash of redis.hashes(keys, JOB_MEMBERS)) {
      const id = ids[at++] as string;
      if (hash.name !== undefined || hash.data !== undefined) yield { id, hash };
    }
  }

  async function* readQueue(queue: string): AsyncGenerator<Finding> {
    let ofFlows = 0;
    const take = (id: string, hash: Record<string, string>, dueAt?: number): Finding[] => {
      if (hash.parentKey === undefined) return [jobOf(queue, id, hash, dueAt)];
      ofFlows++;
      return [];
    };
    for (const list of ['wait', 'paused']) {
      for await (const ids of redis.fromRight(key(queue, list), PAGE)) {
        for await (const { id, hash } of jobs(queue, ids)) yield* take(id, hash);
      }
    }
    for await (const entries of redis.sorted(key(queue, 'prioritized'), PAGE)) {
      const ids = entries.map(([id]) => id);
      for await (const { id, hash } of jobs(queue, ids)) yield* take(id, hash);
    }
    const pending = new Map<string, Record<string, string>>();
    for await (const entries of redis.sorted(key(queue, 'delayed'), PAGE)) {
      const due = new Map(entries.map(([id, score]) => [id, Math.floor(score / SCORE_UNIT)]));
      for await (const { id, hash } of jobs(queue, [...due.keys()])) {
        const isNext = hash.rjk !== undefined && Number(hash.atm ?? hash.attemptsMade ?? 0) === 0;
        if (isNext) pending.set(hash.rjk as string, hash);
        else yield* take(id, hash, due.get(id));
      }
    }
    for await (const entries of redis.sorted(key(queue, 'repeat'), PAGE)) {
      for (const [id, next] of entries) {
        const hash = { ...legacyHash(id), ...(await redis.hash(key(queue, 'repeat', id))) };
        yield scheduleOf(queue, { id, hash, next, pending: pending.get(id) }, now);
      }
    }
    yield* left('jobs of flows', ofFlows);
    yield* await standing(queue);
  }

  async function standing(queue: string): Promise<Finding[]> {
    const sized = (set: string) => redis.number('ZCARD', key(queue, set));
    const meta = await redis.hash(key(queue, 'meta'));
    const isPaused = meta.paused !== undefined || (await redis.number('LLEN', key(queue, 'paused'))) > 0;
    const limits = ['concurrency', 'max'].filter((name) => own(meta, name) !== undefined).length;
    return [
      ...left('flows that wait for children', await sized('waiting-children')),
      ...left('jobs that run', await redis.number('LLEN', key(queue, 'active'))),
      ...left('completed jobs', await sized('completed')),
      ...left('failed jobs', await sized('failed')),
      ...left('paused queues', isPaused ? 1 : 0),
      ...left('limits of queues', limits),
    ];
  }

  return {
    remarks: REMARKS,
    queues,
    async *read(wanted) {
      for (const queue of wanted ?? (await queues())) yield* readQueue(queue);
      yield* left('jobs that were taken', redis.missed);
    },
    close: async () => redis.close(),
  };
}
