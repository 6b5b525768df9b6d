/** Messages arrive: in order, after failures, whatever dies; a message that cannot arrive holds up no other. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { answerOnce, recallAnswer } from '../../src/durable/inbox';
import { Outbox } from '../../src/durable/outbox';
import { derived, type MessageKind, OutboxRelay, posted, type RelayBounds } from '../../src/durable/outbox-relay';
import { QUEUE, Schema } from '../../src/durable/schema';
import { failOnce } from '../support/faults';

const SECOND = 1_000;
let made = 0;

/** An object that posts and sends outbox messages, with a clock that stands still. */
class Office {
  now = 0;
  /** What has arrived: address and text, in its order. */
  readonly arrived: string[] = [];
  /** When the alarm was armed for since the last look. */
  wakes: number[] = [];
  /** What the next outbox messages to an address meet. */
  readonly meets = new Map<string, () => Promise<unknown>>();
  readonly outbox: Outbox;
  readonly messages: MessageKind<string | undefined>;
  readonly gathered: MessageKind;
  relay: OutboxRelay;

  constructor(
    readonly storage: DurableObjectStorage,
    private readonly bounds: RelayBounds = {},
  ) {
    this.outbox = new Outbox(storage.sql, (at) => this.wakes.push(at));
    const write = async <T>(operation: (now: number) => T): Promise<T> => this.write(() => operation(this.now));
    this.messages = posted(this.outbox, write, {
      kind: 'message',
      send: async (address, [{ data }], taken) => {
        await this.arrive(address, data);
        return taken(() => `${address} has ${data}`);
      },
    });
    this.gathered = posted(this.outbox, write, {
      kind: 'list',
      together: { most: 150, itemsIn: ({ data }) => (JSON.parse(data) as unknown[]).length },
      send: async (address, messages, taken) => {
        const items = messages.flatMap(({ data }) => JSON.parse(data) as unknown[]);
        await this.arrive(address, String(items.length));
        await taken(() => undefined);
      },
    });
    this.relay = this.open();
  }

  private async arrive(address: string, text: string): Promise<void> {
    const meets = this.meets.get(address);
    if (meets) await meets();
    this.arrived.push(`${address}:${text}`);
  }

  /** As the object is constructed anew: nothing is known but what is stored. */
  open(): OutboxRelay {
    this.outbox.load();
    const host = { now: () => this.now, keepAlive: () => undefined, wakeAt: (at: number) => this.wakes.push(at) };
    this.relay = new OutboxRelay([this.messages, this.gathered], host, this.bounds);
    return this.relay;
  }

  write<T>(run: () => T): T {
    const { size } = this.outbox;
    try {
      return this.storage.transactionSync(() => {
        const value = run();
        this.outbox.flush();
        return value;
      });
    } catch (error) {
      this.outbox.rollback(size);
      throw error;
    }
  }

  post(address: string, text = 'x', dueAt?: number): void {
    this.write(() => this.outbox.post('message', address, text, this.now, dueAt));
  }

  /** Sends until nothing is under way. */
  async sendAll(why: 'commit' | 'alarm' = 'commit'): Promise<string[]> {
    this.relay.start(why);
    await this.relay.idle();
    return this.arrived.splice(0);
  }

  get left(): number {
    return this.outbox.count('message') + this.outbox.count('list');
  }

  takeWakes(): number[] {
    return this.wakes.splice(0);
  }
}

const inOffice = <T>(run: (office: Office) => Promise<T>, bounds?: RelayBounds): Promise<T> =>
  runInDurableObject(env.QUEUES.getByName(`office-${++made}`), (_, { storage }) => {
    new Schema(storage, QUEUE).create();
    return run(new Office(storage, bounds));
  });

const unreachable = () => Promise.reject(new Error('unreachable'));

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe('a message', () => {
  it('arrives once and is gone, and the alarm stands by until then', () =>
    inOffice(async (office) => {
      office.post('a', 'hello');
      expect(office.takeWakes()).toEqual([SECOND]);
      expect(office.relay.due(0)).toBe(0);
      office.relay.start();
      expect(office.relay.due(0)).toBe(SECOND);
      expect(await office.sendAll()).toEqual(['a:hello']);
      expect([office.left, office.relay.due(0)]).toEqual([0, undefined]);
      expect(await office.sendAll('alarm')).toEqual([]);
    }));

  it('does not wait for as long as the clock was set back', () =>
    inOffice(async (office) => {
      office.now = 3_600 * SECOND;
      office.meets.set('a', unreachable);
      office.post('a');
      expect(await office.sendAll()).toEqual([]);
      office.post('b');
      office.now = 0;
      office.meets.clear();
      expect((await office.sendAll()).sort()).toEqual(['a:x', 'b:x']);
    }));

  it('posted by an operation that is undone was never there', () =>
    inOffice(async (office) => {
      const died = new Error('died');
      expect(() =>
        office.write(() => {
          office.outbox.post('message', 'a', 'x', 0);
          office.outbox.gather('list', 'a', '1', 0);
          expect(office.outbox.find('message', 'a')).toBe('x');
          throw died;
        }),
      ).toThrow(died);
      office.write(() => undefined);
      expect(office.outbox.find('message', 'a')).toBeUndefined();
      expect([office.left, await office.sendAll()]).toEqual([0, []]);
    }));

  it('that is replaced on its way is sent again as it is now', () =>
    inOffice(async (office) => {
      office.post('a', 'old');
      office.meets.set('a', async () => {
        office.meets.clear();
        office.post('a', 'new');
      });
      expect(await office.sendAll()).toEqual(['a:old', 'a:new']);
      expect(office.left).toBe(0);
    }));

  it('that is withdrawn does not arrive', () =>
    inOffice(async (office) => {
      office.post('a');
      expect(office.write(() => office.outbox.withdraw('message', 'a'))).toBe(true);
      expect(office.write(() => office.outbox.withdraw('message', 'a'))).toBe(false);
      expect(await office.sendAll()).toEqual([]);
    }));

  it('that stands by is sent when its time has come, unless it was withdrawn', () =>
    inOffice(async (office) => {
      office.post('a', 'x', 10 * SECOND);
      office.post('b', 'x', 10 * SECOND);
      expect(office.takeWakes()).toEqual([10 * SECOND, 10 * SECOND]);
      expect(await office.sendAll('alarm')).toEqual([]);
      expect(office.relay.due(0)).toBe(10 * SECOND);
      office.write(() => office.outbox.withdraw('message', 'b'));
      office.now = 10 * SECOND;
      expect(await office.sendAll('alarm')).toEqual(['a:x']);
    }));

  it('is delivered to a caller that waits for the answer, also while its address is not changed', () =>
    inOffice(async (office) => {
      office.post('a', 'hello');
      office.meets.set('a', unreachable);
      await expect(office.relay.deliver(office.messages, 'a')).rejects.toThrow('unreachable');
      office.meets.clear();
      const both = [office.relay.deliver(office.messages, 'a'), office.relay.deliver(office.messages, 'a')];
      expect(await Promise.all(both)).toEqual(['a has hello', 'a has hello']);
      expect(office.arrived).toEqual(['a:hello']);
      expect(await office.relay.deliver(office.messages, 'a')).toBeUndefined();
    }));
});

describe('outbox messages that are gathered', () => {
  it('go in their order, many to a row and many rows to a message', () =>
    inOffice(async (office) => {
      const gather = (n: number) =>
        office.write(() => {
          for (let i = 0; i < n; i++) office.outbox.gather('list', 'a', String(i), 0);
        });
      gather(120);
      expect(office.left).toBe(2);
      gather(40);
      gather(1);
      expect(office.left).toBe(4);
      expect(await office.sendAll()).toEqual(['a:120', 'a:41']);
      expect(office.left).toBe(0);
    }));

  it('are rows of bounded size', () =>
    inOffice(async (office) => {
      const large = JSON.stringify('x'.repeat(200_000));
      office.write(() => {
        for (let i = 0; i < 3; i++) office.outbox.gather('list', 'a', large, 0);
      });
      expect(office.left).toBe(3);
    }));
});

describe('an address that fails', () => {
  it('is not changed twice as long each time, up to a minute, and the alarm is armed for the next try', () =>
    inOffice(async (office) => {
      office.post('a');
      office.meets.set('a', unreachable);
      const tries: number[] = [];
      for (let n = 0; n < 9; n++) {
        office.takeWakes();
        await office.sendAll('alarm');
        tries.push(office.now / SECOND);
        const next = office.relay.due(office.now) as number;
        expect(office.takeWakes()).toContain(next);
        office.now = next - 1;
        await office.sendAll('alarm');
        expect(office.relay.due(office.now)).toBe(next);
        office.now = next;
      }
      expect(tries).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
      office.meets.clear();
      expect(await office.sendAll('alarm')).toEqual(['a:x']);
      office.post('a');
      office.meets.set('a', unreachable);
      await office.sendAll();
      expect(office.relay.due(office.now)).toBe(office.now + SECOND);
    }));

  it('holds up no other, however many fail', () =>
    inOffice(async (office) => {
      for (let n = 0; n < 50; n++) {
        office.post(`a${n}`);
        office.meets.set(`a${n}`, unreachable);
      }
      office.post('b');
      expect(await office.sendAll()).toEqual(['b:x']);
      office.post('c');
      expect(await office.sendAll()).toEqual(['c:x']);
      expect(office.left).toBe(50);
    }));

  it('is one of a bounded number: while there are more, the others wait and are not forgotten', () =>
    inOffice(
      async (office) => {
        for (let n = 0; n < 8; n++) {
          office.post(`a${n}`);
          office.meets.set(`a${n}`, unreachable);
        }
        const asked = vi.spyOn(office.messages, 'due');
        await office.sendAll('alarm');
        await office.sendAll('alarm');
        expect(Math.max(...asked.mock.calls.map(([, except]) => except.length))).toBeLessThanOrEqual(4);
        const next = office.relay.due(office.now) as number;
        expect(next).toBe(SECOND);
        office.meets.clear();
        office.now = next;
        const arrived = [...(await office.sendAll('alarm')), ...(await office.sendAll('alarm'))];
        expect(arrived.sort()).toEqual(Array.from({ length: 8 }, (_, n) => `a${n}:x`));
      },
      { resting: 3, width: 1 },
    ));

  it('is tried at once by an object that was constructed again, and by a caller that asks', () =>
    inOffice(async (office) => {
      office.post('a');
      office.meets.set('a', unreachable);
      await office.sendAll();
      office.meets.clear();
      expect(await office.sendAll()).toEqual([]);
      office.relay.startAnew();
      await office.relay.idle();
      expect(office.arrived.splice(0)).toEqual(['a:x']);
      office.post('a');
      office.meets.set('a', unreachable);
      await office.sendAll();
      office.meets.clear();
      expect(office.open().due(0)).toBe(0);
      expect(await office.sendAll()).toEqual(['a:x']);
    }));

  it('is forgotten when its outbox message was withdrawn: the alarm does not ring for it again', () =>
    inOffice(async (office) => {
      office.post('a');
      office.meets.set('a', unreachable);
      await office.sendAll();
      office.write(() => office.outbox.withdraw('message', 'a'));
      office.now = SECOND;
      await office.sendAll('alarm');
      expect(office.relay.due(office.now)).toBeUndefined();
    }));
});

describe('an answer that is lost', () => {
  it('lets the message arrive again, and its receiver act once', () =>
    inOffice(async (office) => {
      const acts: number[] = [];
      const inbox = { sql: office.storage.sql, wake: () => undefined };
      const receive = () =>
        answerOnce(inbox, { key: 'message a', hash: '' }, office.now, () => {
          acts.push(office.now);
          return { act: acts.length };
        });
      office.post('a');
      office.meets.set('a', async () => {
        receive();
        if (office.now === 0) throw new Error('the answer is lost');
      });
      await office.sendAll();
      office.now = SECOND;
      expect(await office.sendAll('alarm')).toEqual(['a:x']);
      expect([acts, office.left]).toEqual([[0], 0]);
      expect(recallAnswer(inbox, { key: 'message a', hash: '' }, office.now)).toEqual({ act: 1 });
    }));

  it('by storage that fails leaves the message where it was', () =>
    inOffice(async (office) => {
      office.post('a');
      failOnce(office.storage.sql, /DELETE FROM outbox/);
      expect(await office.sendAll()).toEqual(['a:x']);
      expect([office.left, office.relay.due(0)]).toEqual([1, SECOND]);
      office.now = SECOND;
      expect(await office.sendAll('alarm')).toEqual(['a:x']);
      expect(office.left).toBe(0);
    }));
});

describe('an outbox relay', () => {
  it('sends a bounded number of messages in one event, and the alarm continues at once', () =>
    inOffice(
      async (office) => {
        for (let n = 0; n < 25; n++) office.post(`a${String(n).padStart(2, '0')}`);
        office.takeWakes();
        const events: number[] = [];
        while (office.left > 0) {
          events.push((await office.sendAll('alarm')).length);
          if (office.left > 0) expect(office.takeWakes()).toContain(office.now + 1);
          office.now++;
        }
        expect(events).toEqual([10, 10, 5]);
      },
      { sends: 10 },
    ));

  it('serves a bounded number of addresses at once, and each in order', () =>
    inOffice(
      async (office) => {
        let now = 0;
        let most = 0;
        for (let n = 0; n < 20; n++) {
          office.post(`a${n}`);
          office.meets.set(`a${n}`, async () => {
            most = Math.max(most, ++now);
            await scheduler.wait(0);
            now--;
          });
        }
        expect(await office.sendAll()).toHaveLength(20);
        expect(most).toBe(4);
      },
      { width: 4 },
    ));

  it('sends what is posted while it sends', () =>
    inOffice(async (office) => {
      office.post('a');
      office.meets.set('a', async () => office.post('b'));
      expect(await office.sendAll()).toEqual(['a:x', 'b:x']);
    }));

  it('whose storage cannot be read tries again soon, and throws nothing', () =>
    inOffice(async (office) => {
      office.post('a');
      failOnce(office.storage.sql, /SELECT DISTINCT address/);
      office.takeWakes();
      expect(await office.sendAll()).toEqual([]);
      expect(office.takeWakes()).toEqual([SECOND]);
      expect(await office.sendAll('alarm')).toEqual(['a:x']);
    }));

  it('that is closed sends nothing more', () =>
    inOffice(async (office) => {
      office.post('a');
      office.relay.close();
      expect(await office.sendAll()).toEqual([]);
    }));

  it('delivers what follows from other rows, when it is due, until it follows no more', () =>
    inOffice(async (office) => {
      const open = new Set(['a', 'b']);
      const told: string[] = [];
      const kind = derived({
        kind: 'derived',
        open: () => [...open],
        dueAt: () => 5 * SECOND,
        deliver: async (address) => {
          told.push(address);
          if (address === 'a' && told.length < 3) throw new Error('unreachable');
          open.delete(address);
        },
      });
      const host = { now: () => office.now, keepAlive: () => undefined, wakeAt: () => undefined };
      const relay = new OutboxRelay([kind], host);
      const start = async () => {
        relay.start('alarm');
        await relay.idle(kind);
        return told.splice(0);
      };
      expect([await start(), relay.due(0)]).toEqual([[], 5 * SECOND]);
      office.now = 5 * SECOND;
      expect(await start()).toEqual(['a', 'b']);
      expect(relay.due(office.now)).toBe(6 * SECOND);
      office.now = 6 * SECOND;
      told.push('', '');
      expect((await start()).slice(2)).toEqual(['a']);
      expect(relay.due(office.now)).toBeUndefined();
    }));
});
