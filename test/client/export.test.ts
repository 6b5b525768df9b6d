/** Queues as files through the client, against the queue itself. */
import { describe, expect, it } from 'vitest';
import { ConflictError, InvalidJobError, NotFoundError, TocsinClient, UnavailableError } from '../../src/client';
import { exported } from '../support/exports';
import { server } from '../support/server';
import { all, liveClient } from './live-client';

server.emptyBeforeEach();
const { queues, enqueueMany } = bound(liveClient({ retry: false }));

function bound(client: TocsinClient) {
  return { queues: client.queues, enqueueMany: client.enqueueMany.bind(client) };
}

async function furnished(queue: string, count: number): Promise<string> {
  for (let at = 0; at < count; at += 500) {
    const jobs = Array.from({ length: Math.min(500, count - at) }, (_, n) => ({
      ...{ type: 'test.echo', args: [at + n, 'x'.repeat(1000)], options: { queue } },
    }));
    await enqueueMany(jobs);
  }
  return (await all(queues.export(queue))).join('');
}

/** A text in pieces of some bytes, which cut through its characters. */
function* inBytes(text: string, size: number): Generator<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('a queue through the client', () => {
  it('goes out as the file that the server sends, and comes in again', async () => {
    const file = await furnished('mail', 3000);
    expect(file).toBe(await exported('mail'));
    await server.reset();
    const sofar: number[] = [];
    const onProgress = ({ imported }: { imported: number }) => void sofar.push(imported);
    expect(await queues.import('mail', inBytes(file, 9973), { onProgress })).toMatchObject({
      ...{ queue: 'mail', complete: true, imported: 3000, known: 0, notKept: {} },
    });
    // Several requests, none of them with all of it.
    expect(sofar.length).toBeGreaterThan(1);
    expect(sofar.at(-1)).toBe(3000);
    expect(await exported('mail')).toBe(file);
    expect(await queues.import('mail', [file])).toMatchObject({ imported: 0, known: 3000 });
  });

  it('is not imported from a file that is not as it was exported: nothing of the wrong part is sent', async () => {
    const file = await furnished('mail', 10);
    await server.reset();
    await expect(queues.import('mail', [file.replace('"args":[7,', '"args":[8,')])).rejects.toThrow(InvalidJobError);
    await expect(queues.import('mail', [file.slice(0, -100)])).rejects.toThrow(/Line 14: /);
    await expect(queues.import('mail', [])).rejects.toThrow('the file is empty');
    expect(await server.queues()).toEqual([]);
  });

  it('takes no file while it has jobs, unless it may merge, and tries one out', async () => {
    const file = await furnished('mail', 3);
    await server.reset();
    expect(await queues.import('mail', [file], { dryRun: true })).toMatchObject({ imported: 3, dryRun: true });
    expect(await server.queues()).toEqual([]);
    await enqueueMany([{ type: 'test.other', args: [], options: { queue: 'mail' } }]);
    await expect(queues.import('mail', [file])).rejects.toThrow(ConflictError);
    expect(await queues.import('mail', [file], { merge: true })).toMatchObject({ imported: 3 });
    expect(await queues.stats('mail')).toMatchObject({ available: 4 });
  });

  it('goes from one queue into another without a file in between', async () => {
    await furnished('mail', 5);
    await queues.pause('mail');
    const file = queues.export('mail');
    // The ids are those of jobs that are still there.
    expect(await queues.import('copy', file)).toMatchObject({ imported: 0, notKept: { idInAnotherQueue: 5 } });
  });

  it('that does not exist is not exported', async () => {
    await expect(all(queues.export('nothing'))).rejects.toThrow(NotFoundError);
  });

  it('is not exported if the answer breaks off, or was altered on its way', async () => {
    const file = await furnished('mail', 10);
    const broken = (change: (text: string) => string) => {
      const service = { fetch: async () => new Response(change(file)) };
      return all(new TocsinClient({ service }).queues.export('mail'));
    };
    expect((await broken((text) => text)).join('')).toBe(file);
    await expect(broken((text) => text.slice(0, -100))).rejects.toThrow(UnavailableError);
    await expect(broken((text) => text.replace('xx', 'yy'))).rejects.toThrow(/is not as it was exported/);
  });
});
