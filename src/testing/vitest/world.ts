/**
 * The deployment under test, with a clock that only the test moves. It is far in the future, where the runtime fires no
 * alarm: the world does, in order of time. Pushes and outbox messages run in real time, and are waited for.
 */
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { exports } from 'cloudflare:workers';
import { vi } from 'vitest';
import { DEPLOYMENT, type Deployment } from '../../library/deployment';

/** How long one look at an object waits for its work, in real ms: others are looked at in between. */
const LOOK_MS = 50;

type WaitingState = Pick<DurableObjectState, 'waitUntil'>;

// Taken at load: a test may fake it.
const realTimer = setTimeout;

let isWatched = false;
let promises = new WeakMap<WaitingState, Set<Promise<unknown>>>();
/** How often work was begun. */
let count = 0;

/** Tracks the work of all objects of this isolate from now on. @param state of any of them */
function watchWork(state: WaitingState): void {
  if (isWatched) return;
  isWatched = true;
  const states = Object.getPrototypeOf(state) as WaitingState;
  const { waitUntil } = states;
  states.waitUntil = function (this: WaitingState, work: Promise<unknown>): void {
    waitUntil.call(this, work);
    add(this, Promise.resolve(work));
  };
}

/** Waits a moment for the work of an object; called inside of it. @returns whether there was any */
async function settleWork(state: WaitingState): Promise<boolean> {
  const own = promises.get(state);
  if (!own?.size) return false;
  const enough = new Promise((resolve) => realTimer(resolve, LOOK_MS));
  await Promise.race([Promise.allSettled([...own]), enough]);
  return true;
}

function add(owner: WaitingState, work: Promise<unknown>): void {
  count++;
  const own = promises.get(owner) ?? new Set();
  promises.set(owner, own);
  own.add(work);
  const end = () => void own.delete(work);
  work.then(end, end);
}

/** If the clock advances less than this within `restMs`, work creates new work without end, ms. */
const MINUTE_MS = 60_000;

/** What is due this soon is due now, ms: the platform takes no alarm for the present moment. */
const AT_ONCE_MS = 1;

interface Looked {
  name: string;
  stub: DurableObjectStub;
  busy: boolean;
  /** When it wakes by itself, epoch ms. */
  wakes: number | null;
}

const DIRECTORY = 'DirectoryObject';

// Taken at load: a test may fake it.
const realNow = performance.now.bind(performance);

export class World {
  /** @param start epoch ms @param restMs real time, ms, to come to rest, or a minute on; then the test fails */
  constructor(
    private readonly start: number,
    private readonly restMs: number,
  ) {}

  get now(): number {
    return Date.now();
  }

  /** @throws {Error} when the Worker under test holds no queue */
  get deployment(): Deployment {
    const found = Reflect.get(globalThis, DEPLOYMENT) as Deployment | undefined;
    if (found) return found;
    const what = 'the Worker under test holds no queue; its main module calls createTocsin of tocsin/queue';
    throw new Error(`testQueue: ${what}`);
  }

  /** Begins again: no queue, no job, and what the code declares. */
  async restart(): Promise<void> {
    vi.setSystemTime(this.start);
    const directory = Reflect.get(exports, DIRECTORY) as unknown as DurableObjectNamespace | undefined;
    if (typeof directory?.getByName !== 'function') {
      const what = `the main module of the Worker under test does not export ${DIRECTORY} of tocsin/queue`;
      throw new Error(`testQueue: ${what}`);
    }
    // The first call of an object loads the main module.
    await runInDurableObject(directory.getByName('directory'), (_, state) => watchWork(state));
    await this.deployment.reset();
    promises = new WeakMap();
  }

  /** Waits for what is under way, then rings what is due now, and so on until nothing is. */
  async idle(): Promise<void> {
    await this.pass((now) => now + AT_ONCE_MS);
  }

  /** Lets time pass up to `target`, epoch ms. */
  async passTo(target: number): Promise<void> {
    if (target <= Date.now()) return await this.idle();
    await this.pass(() => target - 1);
    const later = new Map((await this.rest()).map(({ name, wakes }) => [name, wakes]));
    await this.pass(() => target);
    vi.setSystemTime(target);
    // What is due at the target may continue at once. What was set for a moment after it waits.
    await this.pass(
      (now) => now + AT_ONCE_MS,
      ({ name, wakes }) => later.get(name) !== wakes,
    );
  }

  /** Rings all alarms up to the horizon, which may move with the clock. @param isMeant should this object be rung? */
  private async pass(horizon: (now: number) => number, isMeant: (one: Looked) => boolean = () => true): Promise<void> {
    let since = { clock: Date.now(), real: realNow(), rings: 0 };
    for (;;) {
      const next = earliest((await this.rest()).filter(isMeant));
      const now = Date.now();
      if (next === undefined || next.wakes > horizon(now)) return;
      if (next.wakes > since.clock + MINUTE_MS) since = { clock: next.wakes, real: realNow(), rings: 0 };
      if (realNow() > since.real + this.restMs) throw new Error(endless(next, since.rings, now - since.clock));
      if (next.wakes > now) vi.setSystemTime(next.wakes);
      await runDurableObjectAlarm(next.stub);
      since.rings++;
    }
  }

  /** Waits until nothing is under way. @returns the objects */
  private async rest(): Promise<Looked[]> {
    const end = realNow() + this.restMs;
    for (;;) {
      const begun = count;
      const objects = await this.deployment.objects();
      const looked = await Promise.all(objects.map(({ name, stub }) => this.look(name, stub)));
      const busy = looked.filter((one) => one.busy);
      // What ended meanwhile may have given work to an object that was looked at before.
      if (busy.length === 0 && begun === count) return looked;
      if (realNow() > end) throw new Error(await this.complaint(busy));
    }
  }

  private look(name: string, stub: DurableObjectStub): Promise<Looked> {
    return runInDurableObject(stub, async (_, state): Promise<Looked> => {
      const busy = await settleWork(state);
      return { name, stub, busy, wakes: await state.storage.getAlarm() };
    });
  }

  private async complaint(busy: readonly Looked[]): Promise<string> {
    const running: string[] = [];
    for await (const job of this.deployment.client.list({ state: 'active' })) running.push(`${job.type} (${job.id})`);
    const jobs = running.length > 0 ? `; running: ${running.slice(0, 10).join(', ')}` : '';
    const names = busy.map(({ name }) => name).join(', ') || 'objects that start ever more of it';
    return `the queue does not come to rest: after ${this.restMs} ms there is work under way in ${names}${jobs}`;
  }
}

const endless = ({ name }: Looked, rings: number, passedMs: number): string =>
  `the queue does not come to rest: ${rings} alarms rang within ${passedMs} ms of its clock, and ${name} is still busy`;

function earliest(objects: readonly Looked[]): (Looked & { wakes: number }) | undefined {
  const set = objects.filter((one): one is Looked & { wakes: number } => one.wakes !== null);
  return set.sort((a, b) => a.wakes - b.wakes)[0];
}
