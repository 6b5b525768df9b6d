/** A desk with more queues than it may call in one event. */
import { describe, expect, it } from 'vitest';
import { type Call, Desk } from '../../src/allowance/desk';
import type { LeaseRequest } from '../../src/rpc/allowances';

const T0 = Date.UTC(2040, 0, 1);
const QUEUES = 1_200;
const HOUR = 3_600_000;

function request(queue: string, change: Partial<LeaseRequest> = {}): LeaseRequest {
  return {
    ...{ queue, number: 1, settings: { version: 0 }, running: 0, unused: 0 },
    ...{ back: { slots: 0, starts: [], turn: false }, wants: { slots: true, starts: false } },
    ...change,
  };
}

/** Each queue holds a slot, and there are no more. */
function crowded(): Desk {
  const desk = new Desk({ settings: { version: 0 } }, new Map(), () => 1);
  const declared = { limits: { concurrency: QUEUES }, at: T0 };
  for (let n = 0; n < QUEUES; n++) {
    const { answer } = desk.lease(
      request(`q-${n}`, { declared, running: 1, wants: { slots: false, starts: false } }),
      T0,
    );
    expect(answer).toMatchObject({ slots: 1 });
  }
  return desk;
}

const names = (calls: readonly Call[]): string[] => calls.map(({ queue }) => queue);

describe('a desk of very many queues', () => {
  it('asks each of them for slots in turn, while one waits', () => {
    const desk = crowded();
    const called = new Set<string>();
    for (let second = 0; second < 3; second++) {
      const { answer, calls } = desk.lease(
        request('waits', { number: second + 1, ...(second > 0 && { session: 1 }) }),
        T0 + second * 1_000,
      );
      if (second < 2) expect(answer).toMatchObject({ slots: 0, again_ms: 1_000 });
      for (const queue of names(calls)) called.add(queue);
    }
    expect(called.size).toBe(QUEUES);
  });

  it('asks each of them in its daily round, in several turns', () => {
    const desk = crowded();
    const called: string[] = [];
    let turns = 0;
    for (let isOver = false; !isOver; turns++) {
      const turn = desk.round(T0 + 2 * HOUR + turns * 1_000);
      called.push(...names(turn.calls));
      isOver = turn.isOver;
    }
    expect([turns, new Set(called).size, called.length]).toEqual([3, QUEUES, QUEUES]);
  });
});
