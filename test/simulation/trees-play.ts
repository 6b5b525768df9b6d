/**
 * Plays trees of jobs that wait for jobs: a real engine, and a stand-in for another queue whose messages are lost, repeated and
 * late. Nobody sleeps on runs that have all ended, one child is started for each place of a run, every pending run ends or its
 * parent does, and with handlers that succeed everything ends.
 */
import { parseJob } from '../../src/job/envelope/parse';
import { ApiError } from '../../src/job/errors';
import type { Awaited, JobBody, NewJob } from '../../src/job/record';
import type { StepRecord } from '../../src/job/steps';
import type { RunEnd, RunRequest } from '../../src/job/wire';
import { beginRemoval } from '../../src/queue/features/lifecycle/remove';
import { configure } from '../../src/queue/features/lifecycle/settings';
import { adopt } from '../../src/queue/features/transfer/moves';
import { actOnRow } from '../../src/queue/jobs/bulk-act';
import { cancel, cancelOpen } from '../../src/queue/jobs/cancel';
import { claim } from '../../src/queue/jobs/claim';
import { enqueue, enqueueEach } from '../../src/queue/jobs/enqueue';
import { redrive } from '../../src/queue/jobs/redrive';
import { settleReport } from '../../src/queue/jobs/report';
import { endRuns, RUN } from '../../src/queue/jobs/runs';
import { recordedSteps, recordStep } from '../../src/queue/jobs/steps';
import { find } from '../../src/queue/read/find';
import { list } from '../../src/queue/read/list';
import { bodyOf, historyOf } from '../../src/queue/store/job-row';
import { stateOf } from '../../src/queue/store/rows';
import { RUN_CANCEL, RUN_ENDED } from '../../src/queue/store/run-notes';
import type { QueueApi } from '../../src/rpc/queue';
import type { RunEnding } from '../../src/rpc/runs';
import { holds } from './agree';
import { reservations } from './moves';
import { busy, lost, Outside, type Question } from './outside';
import type { History } from './steps';
import type { TreeRun, TreeStep, TreeTerms } from './trees';
import { ELSEWHERE, Elsewhere, type FarJob, type FarMessage, RUN_NAME } from './trees-elsewhere';
import { Died, InjectedFault, World } from './world';

const HERE = 'simulated';
const TYPE = 'tree';
const MAX_DEPTH = 3;
const MESSAGES = [RUN, RUN_ENDED, RUN_CANCEL];
const EXCUSES = [/could not be delivered yet/, /could not be applied at once/, /injected/, /not all due work/];
const DAY_MS = 86_400_000;

/** What is known of a job of the simulated queue. */
interface Known {
  id: string;
  awaited: Awaited | undefined;
  undoes: string | undefined;
  /** The runs that it sleeps on, as it was seen last. */
  asleep: { names: string[]; until: number } | undefined;
  /** Somebody made it live again: nobody needs to wait for it. */
  isRedriven: boolean;
}

interface Seen {
  state: string;
  steps: Record<string, StepRecord>;
  claims: number;
  undoJob: string | undefined;
  asleep: Known['asleep'];
}

const GONE: Seen = { state: 'gone', steps: {}, claims: 0, undoJob: undefined, asleep: undefined };
const ENDED = ['gone', 'completed', 'discarded', 'cancelled'];
const isEnded = ({ state }: Seen) => ENDED.includes(state);
const isPending = (record: StepRecord | undefined) => record?.run !== undefined && record.until !== undefined;
const placeOf = ({ by, claim, name, index }: Omit<Awaited, 'queue' | 'depth'>) => `${by} ${claim} ${name} ${index}`;

/** Something that an operation of the object does, and what follows where that has become durable. */
interface Turn {
  play(): void;
  after?(): void;
}

export class TreesPlay {
  private readonly world: World;
  private readonly far = new Elsewhere();
  private outside!: Outside;
  private readonly known = new Map<string, Known>();
  private operations = 0;
  private began = 0;
  private isAlarmLost = false;
  private isDeleted = false;
  /** Runs that are detached. */
  private readonly detached = new Set<string>();

  constructor(
    storage: DurableObjectStorage,
    private readonly history: History,
    private readonly complaints: unknown[][],
  ) {
    complaints.length = 0;
    this.world = new World(storage, history.start, (world) => this.hooks(world), history.sizes);
  }

  private hooks(world: World) {
    const outside = new Outside(world.withheld);
    this.outside = outside;
    const queue = (name: string) =>
      ({
        adopt: (step, jobs) => outside.ask('adopt', step, jobs),
        runsEnded: (ends) => outside.ask('ended', name, ends),
        cancelSteps: (ids) => outside.ask('cancel', name, ids),
      }) as QueueApi;
    const wherever = {
      runsEnded: async (ends) => ({ ok: true, value: this.end(this.far.ended(ends)) }),
      cancelSteps: async (ids) => ({ ok: true, value: this.cancelHere(this.far.cancel(ids)) }),
    } as QueueApi;
    return {
      others: {
        queue,
        enqueueEach: (entries: unknown, once: unknown) => outside.ask<never>('start', entries, once),
        ...{ reservations, noteIds: async () => undefined },
        destroy: async () => {
          this.isDeleted = true;
          world.recreate();
        },
        withJob: <T>(_: string, call: (api: QueueApi, name: string) => Promise<T>) => call(wherever, 'wherever'),
      },
    };
  }

  private get q() {
    return this.world.engine.q;
  }

  private get now() {
    return this.world.now;
  }

  private end(endings: RunEnding[]): RunEnding[] {
    return endings.length === 0 ? [] : this.world.engine.writeNow((now) => endRuns(this.q, endings, now));
  }

  private cancelHere(ids: string[]): string[] {
    return ids.length === 0 ? [] : this.world.engine.writeNow((now) => cancelOpen(this.q, ids, now));
  }

  async run(): Promise<void> {
    try {
      if ((this.history.trees as TreeTerms).strict) {
        this.world.engine.writeNow(() => configure(this.q, { groups: { order: 'strict' } }));
      }
      for (const step of this.history.steps) if (step?.op === 'tree') await this.step(step);
      await this.drain();
    } finally {
      this.world.kill();
    }
  }

  private async step(step: TreeStep): Promise<void> {
    await this.world.settled();
    const { trouble } = step;
    const turn = await this.turnOf(step);
    this.touched.clear();
    if (trouble === 'fault') this.world.failAt(step.statement);
    try {
      if (trouble === 'lose') {
        // Somebody who learns of what is lost would know more than is so.
        if (turn) this.world.lose(() => this.attempt(() => ({ play: turn.play })));
        this.world.start();
      } else if (turn) {
        turn.play();
        turn.after?.();
      }
    } catch (error) {
      if (!(error instanceof InjectedFault || error instanceof ApiError)) throw error;
    }
    if (trouble === 'die') {
      this.world.kill();
      this.world.start();
    }
    await this.world.settled();
    this.world.heal();
    this.world.faulted = false;
    this.listen(trouble !== 'none');
    this.check();
  }

  /** Jobs that an operator has changed in this step. */
  private readonly touched = new Set<string>();

  private listen(isTroubled: boolean): void {
    const said = this.complaints.splice(0);
    const first = said.find(
      (parts) =>
        !parts.some((part) => part instanceof Died) && !EXCUSES.some((excuse) => excuse.test(String(parts[0]))),
    );
    if (first && !isTroubled) throw new Error(`complained: ${first.map(String).join(' ')}`, { cause: first[1] });
  }

  /** A job as its queue has it now. */
  private see(id: string): Seen {
    const { q, now } = this;
    const found = find(q, id);
    if (!found) return GONE;
    const { row } = found;
    if (!row) return { ...GONE, state: 'completed' };
    const isActive = q.store.leases.active.has(row.key);
    const state = stateOf(row, isActive, now);
    const { snoozed, undo_job: undoJob } = historyOf(row);
    const sleeps = snoozed?.runs && snoozed.claim === row.claims && (state === 'scheduled' || state === 'retryable');
    const asleep = sleeps ? { names: snoozed.runs as string[], until: snoozed.until } : undefined;
    return { state, steps: recordedSteps(q, row.key) as Seen['steps'], claims: row.claims, undoJob, asleep };
  }

  private inState(...states: string[]): Known[] {
    return [...this.known.values()].filter(({ id }) => states.includes(this.see(id).state));
  }

  private pickOf<T>(all: readonly T[], pick: number): T | undefined {
    return all[pick % Math.max(1, all.length)];
  }

  private async turnOf(step: TreeStep): Promise<Turn | undefined> {
    const { pick, world, q } = { ...step, world: this.world, q: this.q };
    const write = (operation: (now: number) => unknown): Turn => ({
      play: () => void world.engine.writeNow(operation),
    });
    const onJob = (job: Known | undefined, operation: (id: string, now: number) => unknown) =>
      job && write((now) => operation(job.id, now));
    const report = (outcome: object) =>
      onJob(this.pickOf(this.inState('active'), pick), (job_id, now) =>
        settleReport(q, { job_id, ...outcome } as Parameters<typeof settleReport>[1], now, () => 0.5),
      );
    const failure = (retryable: boolean) => ({ kind: 'failed', error: { code: 'bad', message: 'no', retryable } });
    const open = () => this.inState('available', 'scheduled', 'retryable', 'active');
    const farOpen = () => [...this.far.jobs.values()].filter(({ isOpen }) => isOpen);
    const farEnd = (how: 'completed' | 'discarded' | 'cancelled', some: FarJob[]) => {
      const job = this.pickOf(some, pick);
      if (job) this.far.end(job, how);
      return undefined;
    };
    switch (step.act) {
      case 'begin': {
        const job = await this.newJob(HERE, step.pick % 2 === 0 ? { group: `root${(step.pick >> 1) % 2}` } : {});
        return write((now) => enqueue(q, [job], now));
      }
      case 'claim':
        return write((now) => claim(q, { count: 1 + (pick % 3), worker_id: 'ann' }, now));
      case 'run': {
        const parents = this.inState('active').filter((job) => this.mayRun(job));
        const job = this.pickOf(parents, pick);
        const runs = job && JSON.stringify(this.requests(job, step.runs));
        return onJob(job, (job_id, now) =>
          settleReport(q, { job_id, kind: 'snoozed', snooze: {}, runs: runs as string }, now, () => 0.5),
        );
      }
      case 'complete': {
        const job = this.pickOf(this.inState('active'), pick);
        return onJob(job, (job_id, now) =>
          settleReport(q, { job_id, kind: 'completed', result: JSON.stringify(job_id) }, now, () => 0.5),
        );
      }
      case 'fail':
        return report(failure(true));
      case 'kill':
        return report(failure(false));
      case 'mark': {
        const record = JSON.stringify({ result: pick, undo: true });
        const job = this.pickOf(this.inState('active'), pick);
        return onJob(job, (job_id, now) => recordStep(q, { job_id, name: `step ${pick % 3}`, record }, now));
      }
      case 'cancel':
        return onJob(this.pickOf(open(), pick), (id, now) => cancel(q, id, now));
      case 'purge': {
        const some = this.inState('available', 'scheduled', 'retryable', 'discarded', 'cancelled');
        return onJob(this.pickOf(some, pick), (id, now) => {
          const row = find(q, id)?.row;
          if (row) actOnRow(q, 'delete', row, now);
        });
      }
      case 'redrive': {
        const job = this.pickOf(this.inState('discarded', 'cancelled', 'retryable'), pick);
        return onJob(job, (id, now) => {
          redrive(q, id, { deadLetterOnly: false }, now);
          (job as Known).isRedriven = true;
          this.touched.add(id);
        });
      }
      case 'elapse':
        world.now += step.ms;
        return undefined;
      case 'alarm':
        world.now = Math.max(world.now, world.alarm ?? 0);
        return { play: () => world.fire() };
      case 'drop-alarm':
        this.isAlarmLost ||= world.alarm !== null;
        world.alarm = null;
        return undefined;
      case 'evict':
        world.start();
        return undefined;
      case 'answer': {
        const question = this.outside.pick(pick);
        return question && { play: () => this.answer(question, step.fate) };
      }
      case 'deliver':
        return this.deliver(this.pickOf(this.far.sent, pick), step.fate);
      case 'calm':
        await this.calm();
        return undefined;
      case 'far-run': {
        const some = farOpen().filter((job) => !job.waitsFor && (job.awaited?.depth ?? 0) < MAX_DEPTH);
        const job = this.pickOf(some, pick);
        if (job) await this.farRun(job, step.runs[0] as TreeRun);
        return undefined;
      }
      case 'far-complete':
        return farEnd(
          'completed',
          farOpen().filter(({ waitsFor }) => !waitsFor),
        );
      case 'far-fail':
        return farEnd(
          'discarded',
          farOpen().filter(({ waitsFor }) => !waitsFor),
        );
      case 'far-cancel':
        return farEnd('cancelled', farOpen());
      case 'far-move': {
        // One whose job is on its way here stays: its queue sends that first. In a strict group a job above may wait for it.
        const { strict } = this.history.trees as TreeTerms;
        const job = this.pickOf(
          farOpen().filter(
            ({ waitsFor, body }) =>
              (!waitsFor || waitsFor.id !== undefined) &&
              !(strict && (JSON.parse(body) as JobBody).group !== undefined),
          ),
          pick,
        );
        if (!job) return undefined;
        this.far.depart(job, HERE, this.now);
        const { id, awaited, isRedriven } = job;
        this.known.set(id, { id, awaited, undoes: undefined, asleep: undefined, isRedriven });
        return undefined;
      }
      case 'far-redrive': {
        const job = this.pickOf(
          [...this.far.jobs.values()].filter(({ isOpen }) => !isOpen),
          pick,
        );
        if (job) this.far.redrive(job);
        return undefined;
      }
    }
  }

  private async newJob(queue: string, options: object): Promise<NewJob> {
    const retry = { max_attempts: 2, backoff_strategy: 'constant', initial_interval: 1_000, jitter: false };
    return parseJob({ type: TYPE, args: [], options: { queue, retry, ...options } }, { now: this.now }).job;
  }

  private mayRun({ id, awaited }: Known): boolean {
    const row = find(this.q, id)?.row;
    return row?.type === TYPE && (awaited?.depth ?? 0) < MAX_DEPTH && bodyOf(row).group !== 'leaf';
  }

  /** What a handler asks for now: jobs for a new name, and to go on waiting for one that is pending. */
  private requests({ id, awaited }: Known, runs: readonly TreeRun[]): RunRequest[] {
    const { steps } = this.see(id);
    const row = find(this.q, id)?.row;
    const held = (row && bodyOf(row).group) ?? awaited?.holds?.[0]?.[1];
    const asked = new Map<string, RunRequest>();
    for (const run of runs) {
      const { name, how, detached, timeout, ttl, where } = run;
      const group = run.group === 'held' ? held : run.group === 'leaf' ? 'leaf' : undefined;
      const child = (queue: string) => ({
        ...{ type: TYPE, args: [] },
        options: {
          ...{ queue, retry: { max_attempts: 1 } },
          ...(group !== undefined && { group }),
          ...(ttl > 0 && { expires_at: `+PT${ttl / 1000}S` }),
        },
      });
      const queues = { here: [HERE], elsewhere: [ELSEWHERE], both: [HERE, ELSEWHERE] }[where];
      const all = queues.length > 1 ? queues : how === 'one' ? queues : [...queues, ...queues];
      const known = Object.hasOwn(steps, name);
      if (known && !isPending(steps[name])) continue;
      asked.set(name, {
        name,
        ...(!known && { jobs: all.map(child) as never }),
        ...(all.length > 1 && { all: true }),
        ...(how === 'stop' && all.length > 1 && { stop: true }),
        ...(detached && { detached }),
        ...(timeout > 0 && { timeout_ms: timeout }),
      });
    }
    return [...asked.values()];
  }

  private async farRun(by: FarJob, { ttl }: TreeRun): Promise<void> {
    const job = await this.newJob(HERE, { ...(ttl > 0 && { expires_at: `+PT${ttl / 1000}S` }) });
    const { claim } = by;
    const depth = (by.awaited?.depth ?? 0) + 1;
    const holds = by.awaited?.holds;
    const awaited: Awaited = {
      ...{ by: by.id, queue: ELSEWHERE, name: RUN_NAME, claim, depth, ...(holds && { holds }) },
    };
    const body = JSON.stringify({ ...(JSON.parse(job.body) as JobBody), awaited });
    const message: FarMessage = {
      ...{ kind: 'start', key: `run ${++this.operations}`, by, claim },
      job: { ...job, awaited: true, body },
    };
    by.claim++;
    by.waitsFor = { id: undefined, claim };
    this.far.sent.push(message);
  }

  /** A message of the other queue arrives; perhaps it is sent again. */
  private deliver(message: FarMessage | undefined, fate: TreeStep['fate']): Turn | undefined {
    if (!message || fate === 'busy') return undefined;
    const { engine } = this.world;
    const { far, q } = this;
    const heard = () => {
      if (fate !== 'lost') far.sent.splice(far.sent.indexOf(message), 1);
    };
    if (message.kind === 'start') {
      const { by, claim, job, key } = message;
      const isVoid = by.waitsFor?.claim !== claim;
      let id: string | undefined;
      const take = () => {
        const jobs = [isVoid ? { ...job, superseded: true } : job];
        const { outcomes } = engine.writeNow((now) => enqueueEach(q, jobs, { key, hash: '' }, now));
        const [outcome] = outcomes;
        id = outcome?.ok ? outcome.value.record.id : undefined;
      };
      return {
        play: take,
        after: () => {
          // Its queue repeats it within a minute: the answer is remembered for a day, which may pass in one step.
          if (fate === 'lost') take();
          far.sent.splice(far.sent.indexOf(message), 1);
          far.started(message, id);
        },
      };
    }
    if (message.kind === 'move') {
      const { job } = message;
      const arrived = () => {
        heard();
        if (fate !== 'lost') far.departing.delete(job.id);
      };
      return { play: () => engine.writeNow((now) => adopt(q, job.id, [job], undefined, now)), after: arrived };
    }
    if (message.kind === 'ended') return { play: () => void far.ended(this.end([message.ending])), after: heard };
    return { play: () => void far.cancel(this.cancelHere([message.id])), after: heard };
  }

  /** A question of the simulated queue meets its fate. */
  private answer(question: Question, fate: TreeStep['fate']): void {
    if (fate === 'busy') {
      question.fail(busy());
      return;
    }
    let value: unknown;
    try {
      value = this.valueOf(question, fate === 'refuse');
    } catch (error) {
      question.fail(error as Error);
      return;
    }
    if (fate === 'lost') question.fail(lost());
    else question.answer(value);
  }

  private valueOf({ what, about }: Question, isRefused: boolean): unknown {
    const { far } = this;
    if (what === 'start') {
      const [entries, { key }] = about as [{ value: { job: NewJob } }[], { key: string }];
      const jobs = entries.map(({ value }) => value.job);
      return far.enqueue(jobs, key, isRefused, this.now);
    }
    const [queue, items] = about as [string, never[]];
    if (what === 'adopt') return { ok: true, value: far.adopt(queue, items) };
    if (what === 'ended') return { ok: true, value: queue === ELSEWHERE ? far.ended(items) : this.end(items) };
    return { ok: true, value: queue === ELSEWHERE ? far.cancel(items) : this.cancelHere(items) };
  }

  /** Nothing is on its way any more. */
  private get isCalm(): boolean {
    return (
      this.far.sent.length === 0 &&
      this.outside.questions.length === 0 &&
      !MESSAGES.some((kind) => this.q.store.outbox.has(kind))
    );
  }

  /** All that is on its way arrives. */
  private async calm(): Promise<void> {
    const { world } = this;
    for (let round = 0; !this.isCalm; round++) {
      holds(round < 500, () => 'some messages never arrive');
      const question = this.outside.pick(round);
      const message = this.far.sent[round % Math.max(1, this.far.sent.length)];
      if (question && (round % 2 === 0 || !message)) this.answer(question, 'take');
      else if (message) this.attempt(() => this.deliver(message, 'take'));
      else {
        world.now = Math.max(world.now + 1, this.wakesAt('sends the messages that are left'));
        world.fire();
      }
      await world.settled();
    }
  }

  /** New jobs, and what must always hold. */
  private check(): void {
    const { world } = this;
    world.quietly(() => {
      const page = list(this.q, { limit: 30, total: false }, this.now);
      for (const { record } of page.jobs) {
        if (this.known.has(record.id)) continue;
        const { awaited, meta } = JSON.parse(record.body) as JobBody;
        const undoes = meta.undo_of as string | undefined;
        this.known.set(record.id, { id: record.id, awaited, undoes, asleep: undefined, isRedriven: false });
      }
      this.oneOfEach();
      for (const job of this.known.values()) this.checkJob(job, this.see(job.id));
      if (this.isCalm) this.checkCalm();
    });
  }

  /** All jobs that handlers wait for. */
  private children() {
    const here = [...this.known.values()].map((job) => ({ ...job, isOpen: !isEnded(this.see(job.id)) }));
    return [...here, ...this.far.jobs.values()].flatMap(({ awaited, ...job }) =>
      awaited ? [{ ...job, awaited }] : [],
    );
  }

  /** One child for each parent, claim, name and place; one undo job that is open for each job. */
  private oneOfEach(): void {
    const places = new Map<string, string>();
    for (const { id, awaited } of this.children()) {
      const place = placeOf(awaited);
      holds(!places.has(place), () => `two jobs for ${place}: ${places.get(place)}, ${id}`);
      places.set(place, id);
    }
    const undone = new Set<string>();
    for (const { id, undoes } of this.known.values()) {
      if (undoes === undefined || isEnded(this.see(id))) continue;
      holds(!undone.has(undoes), () => `${undoes} is undone twice at once`);
      undone.add(undoes);
    }
  }

  private checkJob(job: Known, seen: Seen): void {
    const { id, asleep, undoes } = job;
    const { steps } = seen;
    for (const [name, record] of Object.entries(steps)) if (record.run) this.checkRecord(id, name, record);
    if (asleep && seen.state === 'available' && asleep.until > this.now && !this.touched.has(id)) {
      // The failure of a job that lives a second time wakes its handler, and may be replaced by its result at once.
      const isReplaced = this.children().some(
        ({ awaited, isRedriven }) => isRedriven && awaited.by === id && asleep.names.includes(awaited.name),
      );
      holds(
        isReplaced || this.mayGoOn(steps, asleep.names),
        () => `${id} continues, and still waits for ${asleep.names.join(', ')}`,
      );
    }
    job.asleep = seen.asleep;
    const isUndoable = undoes === undefined && Object.values(steps).some(({ undo }) => undo);
    if (['discarded', 'cancelled'].includes(seen.state)) {
      const has = seen.undoJob !== undefined;
      holds(has === isUndoable, () => `${id} in ${seen.state} has ${has ? 'an' : 'no'} undo job`);
    }
  }

  /** What a record says is what its own jobs have said. */
  private checkRecord(by: string, name: string, { run, result, until }: StepRecord): void {
    if (!run) return;
    const { claim = 0, jobs, ends = [], ended = 0 } = run;
    if (run.detached) this.detached.add(placeOf({ by, claim, name }));
    // One that nobody waited for any longer has none.
    const list = Array.isArray(result) ? (result as RunEnd[]) : [];
    const several: [number, RunEnd][] = until === undefined ? [...list.entries()] : ends;
    const said: [number | undefined, RunEnd][] = jobs === undefined ? [[undefined, { result }]] : several;
    if (jobs !== undefined) {
      const places = new Set(said.map(([place]) => place));
      holds(places.size === said.length, () => `${name} of ${by} has an end twice`);
      if (until !== undefined) holds(ended === places.size, () => `${name} of ${by} counts ${ended} ends`);
      holds(ended <= jobs, () => `${name} of ${by} counts ${ended} ends of ${jobs} jobs`);
    }
    const children = this.children();
    for (const [index, { result: of }] of said) {
      if (typeof of !== 'string') continue;
      const child = children.find(({ id }) => id === of);
      const place = placeOf({ by, claim, name, ...(index !== undefined && { index }) });
      holds(child !== undefined && placeOf(child.awaited) === place, () => `${place} has the result of ${of}`);
    }
  }

  /** Have all ended, or has one of them failed? */
  private mayGoOn(steps: Seen['steps'], names: readonly string[]): boolean {
    const pending = names.filter((name) => isPending(steps[name]));
    const failed = names.filter((name) => {
      const { error, run } = steps[name] ?? {};
      return error !== undefined || (run?.failed ?? 0) > 0;
    });
    return pending.length === 0 || failed.some((name) => !pending.includes(name));
  }

  /** What must hold when nothing is on its way. */
  private checkCalm(): void {
    const children = this.children();
    const open = new Set(children.filter(({ isOpen }) => isOpen).map(({ awaited }) => placeOf(awaited)));
    const isAnyOpen = (by: string, claim: number, name: string, jobs: number | undefined) =>
      jobs === undefined
        ? open.has(placeOf({ by, claim, name }))
        : Array.from({ length: jobs }, (_, index) => placeOf({ by, claim, name, index })).some((one) => open.has(one));
    for (const { id } of this.known.values()) {
      const { steps, asleep, ...seen } = this.see(id);
      if (asleep && asleep.until > this.now) {
        holds(
          !this.mayGoOn(steps, asleep.names),
          () => `${id} sleeps on runs that have ended: ${asleep.names.join(', ')}`,
        );
      }
      for (const [name, record] of Object.entries(steps)) {
        const { run } = record;
        if (!run || !isPending(record) || (ENDED.includes(seen.state) && !run.detached)) continue;
        const { claim = 0, jobs } = run;
        holds(
          isAnyOpen(id, claim, name, jobs),
          () => `${name} of ${id} in ${seen.state} is pending, and its jobs ended`,
        );
      }
    }
    for (const { isOpen, isRedriven, awaited, id } of children) {
      if (isOpen && !isRedriven)
        holds(this.isWanted(awaited), () => `${id} runs for ${placeOf(awaited)}, which is over`);
    }
    for (const { id, isOpen, waitsFor } of this.far.jobs.values()) {
      if (!isOpen || waitsFor?.id === undefined || this.far.jobs.get(waitsFor.id)?.isOpen) continue;
      const { state } = this.see(waitsFor.id);
      holds(!ENDED.includes(state), () => `${id} elsewhere waits for ${waitsFor.id}, which is ${state}`);
    }
  }

  /** Does its handler wait for it, or has it left it to itself? */
  private isWanted({ by, name, claim }: Awaited): boolean {
    const far = this.far.jobs.get(by);
    if (this.detached.has(placeOf({ by, claim, name }))) return true;
    if (far) return far.isOpen && (far.runs.get(name) ?? far.waitsFor)?.claim === claim;
    const seen = this.see(by);
    const record = seen.steps[name];
    const isIts = record?.run?.claim === claim;
    return isIts && isPending(record) && !isEnded(seen);
  }

  /** With handlers that succeed everything ends, long before anybody stops waiting. */
  private async drain(): Promise<void> {
    const { world } = this;
    this.began = world.now;
    if ((this.history.trees as TreeTerms).leaves) await this.leave();
    const isOpen = () =>
      [...this.known.values()].some(({ id }) => !isEnded(this.see(id))) ||
      [...this.far.jobs.values()].some((job) => job.isOpen);
    for (let round = 0; isOpen() || !this.isCalm; round++) {
      holds(round < 400 && world.now < this.began + 3 * DAY_MS, () => `not all jobs end: ${this.left()}`);
      await this.calm();
      this.listen(true);
      this.check();
      for (const job of this.far.jobs.values()) {
        if (job.isOpen && !job.waitsFor && job.runs.size === 0) this.far.end(job, 'completed');
      }
      world.engine.writeNow((now) => claim(this.q, { count: 100, worker_id: 'ann' }, now));
      const running = this.inState('active');
      for (const { id: job_id } of running) {
        // The end of another has cancelled it.
        if (this.see(job_id).state !== 'active') continue;
        const report = { job_id, kind: 'completed', result: JSON.stringify(job_id) } as const;
        world.engine.writeNow((now) => settleReport(this.q, report, now, () => 0.5));
      }
      if (running.length === 0 && this.isCalm && isOpen()) {
        const at = this.wakesAt('brings the jobs that are left to their end');
        world.now = Math.max(world.now + 1_000, Math.min(at, world.now + 3_600_000));
      }
      world.fire();
      await world.settled();
    }
  }

  /** The queue is deleted; its jobs go on in the other one, also those that messages are about which are on their way. */
  private async leave(): Promise<void> {
    const { world, far } = this;
    // What would begin here anew begins before.
    for (const message of far.sent.filter(({ kind }) => kind === 'start' || kind === 'move')) {
      const turn = this.deliver(message, 'take');
      turn?.play();
      turn?.after?.();
    }
    this.check();
    const redriven = new Set([...this.known.values()].flatMap(({ id, isRedriven }) => (isRedriven ? [id] : [])));
    world.engine.writeNow((now) => beginRemoval(this.q, { strategy: 'move', target_queue: ELSEWHERE }, now));
    for (let round = 0; !this.isDeleted; round++) {
      holds(round < 500, () => 'the queue is never deleted');
      await world.settled();
      if (this.isDeleted) break;
      const question = this.outside.pick(round);
      const message = far.sent[round % Math.max(1, far.sent.length)];
      const running = this.inState('active');
      if (round % 3 === 0 && message) this.attempt(() => this.deliver(message, 'take'));
      else if (question) this.attempt(() => ({ play: () => this.answer(question, round % 5 === 0 ? 'lost' : 'take') }));
      else if (running.length > 0) {
        for (const { id: job_id } of running) {
          const report = { job_id, kind: 'completed', result: JSON.stringify(job_id) } as const;
          if (this.see(job_id).state === 'active')
            world.engine.writeNow((now) => settleReport(this.q, report, now, () => 0.5));
        }
      } else {
        world.now = Math.max(world.now + 1, this.wakesAt('goes on with the deletion'));
        world.fire();
      }
    }
    await world.settled();
    this.listen(true);
    this.known.clear();
    for (const job of far.jobs.values()) job.isRedriven ||= redriven.has(job.id);
  }

  /** Something about jobs that may just be on their way: then it is tried again. */
  private attempt(turnOf: () => Turn | undefined): void {
    try {
      const turn = turnOf();
      turn?.play();
      turn?.after?.();
    } catch (error) {
      if (!(error instanceof InjectedFault || error instanceof ApiError)) throw error;
    }
  }

  /** When the object wakes by itself, epoch ms. One whose alarm was lost notices that when it is late, or constructed anew. */
  private wakesAt(what: string): number {
    const { world } = this;
    if (world.alarm === null && this.isAlarmLost) world.start();
    this.isAlarmLost = false;
    holds(world.alarm !== null, () => `nothing ${what}`);
    return world.alarm as number;
  }

  private left(): string {
    const here = [...this.known.values()].map(({ id }) => `${id} ${this.see(id).state}`);
    const there = [...this.far.jobs.values()].flatMap(({ id, isOpen }) => (isOpen ? [`${id} elsewhere`] : []));
    return [...here.filter((text) => !ENDED.some((state) => text.endsWith(state))), ...there].join(', ');
  }
}
