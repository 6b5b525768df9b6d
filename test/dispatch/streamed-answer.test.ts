/** What a handler says while it runs: however much, what is held of it is bounded. */
import { describe, expect, it } from 'vitest';
import type { ControlStream } from '../../src/dispatch/control-stream';
import { StreamedAnswer } from '../../src/dispatch/streamed-answer';

const never = () => new Promise<never>(() => undefined);

/** A conversation in which nothing is answered. @returns after how many such lines no more is read */
async function readUntilFull(said: Record<string, unknown>, most: number): Promise<number> {
  const listener = { now: () => 0, settle: never, hear: never };
  const line = { reply: never } as unknown as ControlStream;
  const streamed = new StreamedAnswer(listener, line, { isOpen: () => true, ended: () => undefined });
  for (let call = 0; call < most; call++) {
    const full = await Promise.race([streamed.room().then(() => false), scheduler.wait(0).then(() => true)]);
    if (full) return call;
    streamed.receive([{ text: JSON.stringify({ delivery_id: 'd', call, ...said }), isWhole: true }]);
  }
  return most;
}

describe('a handler that waits for no answer', () => {
  it('is read on while what it says is little', async () => {
    expect(await readUntilFull({ progress: { progress: 0.5 } }, 500)).toBe(500);
  });

  it('is read no further when the answers may be large', async () => {
    expect(await readUntilFull({ step: { name: 'a', result: 1 } }, 500)).toBeLessThan(20);
  });
});
