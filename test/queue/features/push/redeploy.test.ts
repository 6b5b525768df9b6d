/** A handler Worker that is deployed anew with other settings. */
import { describe, expect, it } from 'vitest';
import { clock, SECOND, until } from '../../../support/clock';
import { handler } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';

clock.restoreAfterEach();

const deploy = (version: number) => handler<number[]>('DEPLOYED', `/deploy?version=${version}`);
const asked = () => handler<number[]>('DEPLOYED', '/asked');

async function run(queue: string) {
  const id = await server.add('deployed.job', [{}], { queue });
  return (await server.jobIn(id, 'completed')).result as { version: number; timeout_ms: number };
}

describe('the settings of a handler that was deployed again', () => {
  it('hold from the call after the first answer of the new version: timeouts and retries', async () => {
    await deploy(1);
    expect(await run('redeployed')).toMatchObject({ version: 1, timeout_ms: 11_000 });
    await deploy(2);
    clock.advance(11 * SECOND);
    expect(await run('redeployed')).toMatchObject({ version: 2 });
    await until(async () => (await asked()).at(-1) === 2, 'the new version to be asked');
    await until(async () => (await run('redeployed')).timeout_ms === 22_000, 'the new timeout to hold');
    const id = await server.add('deployed.job', [{ fail: true }], { queue: 'redeployed' });
    expect(await server.jobIn(id, 'retryable')).toMatchObject({ max_attempts: 6, retry_delay_ms: 22_000 });
  });

  it('are not asked for while nothing changes, nor does an idle queue wake for them', async () => {
    await deploy(1);
    const queue = new TestQueue('unchanged');
    await run('unchanged');
    const before = (await asked()).length;
    for (let minutes = 0; minutes < 5; minutes++) {
      clock.advance(61 * SECOND);
      await run('unchanged');
    }
    expect(await asked()).toHaveLength(before);
    await deploy(2);
    clock.advance(61 * SECOND);
    await queue.alarm();
    expect(await asked()).toHaveLength(before);
  });
});

describe('an announcement that answers do not name', () => {
  it('is asked for again once a minute while there is work', async () => {
    const announce = (types: object[]) =>
      handler<{ asked: number }>('FICKLE', '/announce', JSON.stringify({ types, payload: 'batch' }));
    await announce([{ type: 'fickle.job', max_attempts: 4 }]);
    const attempts = async () => {
      const id = await server.add('fickle.job', [], { queue: 'unnamed' });
      return (await server.jobIn(id, 'completed')).max_attempts;
    };
    await until(async () => (await attempts()) === 4, 'the announcement to be read');
    await announce([{ type: 'fickle.job', max_attempts: 6 }]);
    expect(await attempts()).toBe(4);
    clock.advance(61 * SECOND);
    await until(async () => (await attempts()) === 6, 'the new announcement to be read');
  });
});
