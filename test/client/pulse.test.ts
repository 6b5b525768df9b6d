/** Heartbeats from a thread, where there is none: the worker goes on without. */
import { afterEach, expect, it, vi } from 'vitest';
import { Pulse } from '../../src/client/pulse';

afterEach(() => vi.unstubAllGlobals());

const ADDRESS = { base: 'http://localhost', headers: {} };

it.each<[string, object | undefined]>([
  ['no process', undefined],
  ['no built-in modules', {}],
  ['no threads', { getBuiltinModule: () => undefined }],
  [
    'threads that cannot be started',
    {
      getBuiltinModule: () => ({
        Worker: class {
          constructor() {
            throw new Error('not implemented');
          }
        },
      }),
    },
  ],
])('a heartbeat thread does nothing where there is %s', (_, process) => {
  vi.stubGlobal('process', process);
  const pulse = new Pulse(ADDRESS, '{}');
  expect(pulse.works).toBe(false);
  pulse.turn();
  pulse.every(1_000);
  pulse.setBody('{}');
  expect(pulse.lastBeatAt).toBe(0);
  pulse.stop();
});

it('a heartbeat thread ends when its thread fails', () => {
  let fail = (_: unknown): void => undefined;
  class Worker {
    on(event: string, listener: (error: unknown) => void) {
      if (event === 'error') fail = listener;
    }
    unref = () => undefined;
    terminate = async () => undefined;
  }
  vi.stubGlobal('process', { getBuiltinModule: () => ({ Worker }) });
  const pulse = new Pulse(ADDRESS, '{}');
  expect(pulse.works).toBe(true);
  fail(new Error('out of memory'));
  expect(pulse.works).toBe(false);
});
