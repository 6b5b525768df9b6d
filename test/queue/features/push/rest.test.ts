/** A process that is about to end lets the calls under way finish, starts no others, and forgets nothing. */
import { describe, expect, it } from 'vitest';
import { DEPLOYMENT, type Deployment } from '../../../../src/library/deployment';
import { clock, SECOND, T0 } from '../../../support/clock';
import { Gate } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const rest = (until: number) => (Reflect.get(globalThis, DEPLOYMENT) as Deployment).rest(until);

describe('a process that is told to rest', () => {
  it('finishes the call under way, takes jobs, hands none out, and continues when the request is not repeated', async () => {
    const queue = new TestQueue('pushed');
    const gate = new Gate('WORK');
    const running = await server.add('work.do', gate.args, { queue: 'pushed' });
    await gate.waiting(1);
    expect(rest(T0 + SECOND)).toBe(1);
    const pushed = await server.add('plain.order', [{}], { queue: 'pushed' });
    const pulled = await server.add('pull.job', [], { queue: 'pulled' });
    await gate.open();
    await server.jobIn(running, 'completed');
    expect(await server.job(pushed)).toMatchObject({ state: 'available', attempt: 0 });
    expect(await server.take('pulled', { count: 1 })).toEqual([]);
    expect(rest(T0 + 2 * SECOND)).toBe(0);
    expect(await queue.armedAt()).toBeLessThanOrEqual(T0 + 2 * SECOND);
    await queue.passTo(T0 + 2 * SECOND);
    expect(await server.jobIn(pushed, 'completed')).toMatchObject({ attempt: 1 });
    expect((await server.take('pulled', { count: 1 })).map(({ id }) => id)).toEqual([pulled]);
  });
});
