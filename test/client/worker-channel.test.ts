/** What a worker makes of the messages of its queue. */
import { describe, expect, it, vi } from 'vitest';
import { WorkerChannel } from '../../src/client/worker-channel';

type Listener = (event: { data?: unknown }) => void;

/** A socket whose other side is the test. */
function connected() {
  const sent: Record<string, unknown>[] = [];
  const listeners: Record<string, Listener> = {};
  const socket = {
    send: (text: string) => void sent.push(JSON.parse(text)),
    close: () => undefined,
    addEventListener: (type: string, listener: Listener) => {
      listeners[type] = listener;
    },
  };
  const events = { jobs: vi.fn(), taken: vi.fn(), directive: vi.fn(), refused: vi.fn(), lost: vi.fn() };
  const line = new WorkerChannel(socket as never, events);
  const hear = (message: object) => listeners.message?.({ data: JSON.stringify(message) });
  return { line, sent, events, hear };
}

const error = { status: 503, code: 'unavailable', message: 'not now', retryable: true };
const answer = { type: 'heartbeat', state: 'running', jobs_extended: ['a'], jobs_cancelled: [], jobs_lost: [] };

it('a ping is answered by its number', () => {
  const { sent, events, hear } = connected();
  hear({ type: 'ping', n: 4_000_000_001 });
  expect(sent).toEqual([{ type: 'pong', n: 4_000_000_001 }]);
  expect(events.refused).not.toHaveBeenCalled();
});

describe('a heartbeat over a socket', () => {
  it('that is refused fails alone, and says nothing about jobs', async () => {
    const { line, sent, events, hear } = connected();
    const beat = line.heartbeat('{"worker_id":"w1"}');
    expect(sent).toEqual([{ type: 'heartbeat', id: expect.any(Number), worker_id: 'w1' }]);
    hear({ type: 'error', id: sent[0]?.id, error });
    await expect(beat).rejects.toThrow('not now');
    expect(events.refused).not.toHaveBeenCalled();
    hear({ type: 'error', error });
    expect(events.refused).toHaveBeenCalledOnce();
  });

  it('is answered by its id, or in its turn by a server that names none', async () => {
    const { line, sent, hear } = connected();
    const first = line.heartbeat('{"worker_id":"w1"}');
    const second = line.heartbeat('{"worker_id":"w1"}');
    hear({ ...answer, id: sent[1]?.id, state: 'quiet' });
    expect(await second).toMatchObject({ state: 'quiet' });
    hear(answer);
    expect(await first).toMatchObject({ state: 'running', jobsExtended: ['a'] });
  });
});
