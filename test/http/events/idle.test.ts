/**
 * What a dashboard that is open costs while nothing happens: nothing. The clock is the tests' own, so the Worker's heartbeat on
 * its sockets to the objects is not part of this; the runtime answers that without waking them (`setWebSocketAutoResponse`).
 */
import { env } from 'cloudflare:workers';
import { expect, it, vi } from 'vitest';
import { DirectoryObject } from '../../../src/directory/object';
import { QueueObject } from '../../../src/queue/object';
import { clock, MINUTE, SECOND } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { rowsWhile } from '../../support/rows';
import { server, V1 } from '../../support/server';
import { SocketClient } from '../../support/streams';

server.emptyBeforeEach();
clock.startAtT0();

/** How often a page proves its connection. */
const PROOF = 25 * SECOND;

/** What the runtime or another object may call an object by: every call is a wake-up of one that sleeps. */
function entries(type: { prototype: object }): string[] {
  const names: string[] = [];
  for (let at = type.prototype; at.constructor.name !== 'DurableObject' && at !== Object.prototype; ) {
    names.push(...Object.getOwnPropertyNames(at).filter((name) => name !== 'constructor'));
    at = Object.getPrototypeOf(at);
  }
  return [...new Set(names)];
}

/** Counts the calls of objects of a class. */
function watch(type: { prototype: object }): () => string[] {
  const called: string[] = [];
  for (const name of entries(type)) {
    const prototype = type.prototype as Record<string, unknown>;
    if (typeof prototype[name] !== 'function') continue;
    const real = prototype[name] as (...given: unknown[]) => unknown;
    vi.spyOn(prototype as Record<string, () => unknown>, name).mockImplementation(function (this: unknown, ...given) {
      called.push(name);
      return real.apply(this, given);
    });
  }
  return () => called.splice(0);
}

it('a page open on an idle queue for ten minutes costs no row, no alarm and no wake-up', async () => {
  const queue = new TestQueue();
  const id = await server.enqueue(queue.name);
  const directory = env.DIRECTORY.getByName('directory');
  const page = await SocketClient.open({ 'Sec-WebSocket-Protocol': 'ojs.v1' });
  for (const channel of ['all', `queue:${queue.name}`, `job:${id}`]) await page.subscribe(channel);
  const calls = [watch(QueueObject), watch(DirectoryObject)];
  const armed = () => Promise.all([queue.stub, directory].map((stub) => clock.armedAt(stub)));
  const before = await armed();
  for (const called of calls) called();

  let counted: string[] = [];
  const tenMinutes = async () => {
    for (let passed = 0; passed < 10 * MINUTE; passed += PROOF) {
      clock.advance(PROOF);
      const pongs = page.count('pong');
      page.say({ action: 'ping' });
      await page.get('pong', pongs + 1);
    }
    counted = calls.flatMap((called) => called());
  };
  const inDirectory = await rowsWhile(directory, async () => {
    expect(await rowsWhile(queue.stub, tenMinutes)).toEqual({ read: 0, written: 0, alarms: 0 });
  });
  expect(inDirectory).toEqual({ read: 0, written: 0, alarms: 0 });
  expect(counted).toEqual([]);
  expect(await armed()).toEqual(before);

  // The page is still told, and this is noticed.
  await server.ok(200, 'POST', `${V1}/queues/${queue.name}/pause`);
  await page.get('event');
  expect(calls[0]?.()).toContain('pause');
  page.socket.close();
});
