/**
 * The queue object: one per queue. It wires RPC to the operations, one file each in the folders beside this one; the methods
 * of a subject stand with it (`workers/object.ts`, `limits/object.ts`, `operations/object.ts`, `cron/object.ts`), and
 * `host.ts` holds what they all stand on.
 */
import { type Outcome, outcomeOf } from '../job/errors';
import type { JobView, NewJob } from '../job/record';
import { directoryObject } from '../routing/objects';
import type { StepStart } from '../workflow/api';
import type {
  DeadLetterRequest,
  EnqueueReceipt,
  ListPage,
  ListRequest,
  QueueApi,
  QueueConfig,
  QueueEvent,
  QueueSettings,
  QueueStats,
  QueueStatus,
  UniqueQuestion,
  UniqueRivals,
} from './api';
import { activate } from './jobs/activate';
import { awaitEnd } from './jobs/await-end';
import {
  abortBatch,
  commitBatch,
  confirmBatch,
  decideBatch,
  decisionOf,
  prepareBatch,
  refuseGivenUp,
} from './jobs/batch';
import { cancel } from './jobs/cancel';
import { checkJobs, enqueue } from './jobs/enqueue';
import { mustFind, runningOf, viewOf, viewOfRow } from './jobs/find';
import { getMany } from './jobs/get-many';
import { once } from './jobs/idempotency';
import { deadLetterRow, deleteDeadLetter, type RedriveOptions, redrive } from './jobs/redrive';
import type { IdempotencyKey, RememberedAnswer } from './operations/api';
import type { QueueDefaults, SettingsChange } from './operations/config';
import { deadLetters, list } from './operations/list';
import { configure, setPaused, takeDefaults } from './operations/settings';
import { emptyStats, stats } from './operations/stats';
import { knownFingerprints } from './unique/keys';
import { rivalsHere } from './unique/rivals';
import { WorkersObject } from './workers/object';
import { cancelSteps, startSteps } from './workflow/steps';

export class QueueObject extends WorkersObject implements QueueApi {
  // ---- producers ---------------------------------------------------------------------------------------------------

  async enqueue(
    queue: string,
    jobs: NewJob[],
    ticket?: string,
    idempotency?: IdempotencyKey,
  ): Promise<Outcome<EnqueueReceipt>> {
    return (
      (await this.refusal(queue, jobs)) ??
      this.write(queue, (q, now) => {
        if (ticket !== undefined) refuseGivenUp(q, ticket, now);
        return once(q, idempotency, now, () => enqueue(q, jobs, now));
      })
    );
  }

  async checkJobs(queue: string, jobs: NewJob[]): Promise<Outcome<void>> {
    const { engine } = this;
    if (!engine) return (await this.refusal(queue, jobs)) ?? { ok: true, value: undefined };
    return outcomeOf(() => checkJobs(engine.q, jobs, Date.now()));
  }

  async startSteps(queue: string, start: StepStart): Promise<Outcome<(string | null)[]>> {
    return this.write(queue, (q, now) => startSteps(q, start, now));
  }

  async cancelSteps(queue: string, ids: string[]): Promise<Outcome<void>> {
    return this.write(queue, (q, now) => cancelSteps(q, ids, now));
  }

  async uniqueRivals(_queue: string, questions: UniqueQuestion[]): Promise<UniqueRivals[]> {
    const q = this.present();
    if (!q) return questions.map(() => ({ known: false, undecided: false, blocking: [] }));
    return questions.map((question) => rivalsHere(q, question, Date.now()));
  }

  async knownFingerprints(_queue: string, fingerprints: string[]): Promise<string[]> {
    return this.engine ? knownFingerprints(this.engine.q.sql, fingerprints) : [];
  }

  async prepareBatch(
    queue: string,
    batch: string,
    coordinator: string,
    jobs: NewJob[],
  ): Promise<Outcome<EnqueueReceipt>> {
    const refused = await this.refusal(queue, jobs);
    return refused ?? this.write(queue, (q, now) => prepareBatch(q, batch, coordinator, jobs, now));
  }

  async prepareBatchIfExists(
    queue: string,
    batch: string,
    coordinator: string,
    jobs: NewJob[],
  ): Promise<Outcome<EnqueueReceipt | null>> {
    const refused = await this.refusal(queue, jobs);
    const held = refused ?? this.writeIfExists((q, now) => prepareBatch(q, batch, coordinator, jobs, now));
    return held ?? { ok: true, value: null };
  }

  async decideBatch(
    queue: string,
    batch: string,
    others: string[],
    answer?: RememberedAnswer,
  ): Promise<Outcome<EnqueueReceipt | null>> {
    return this.write(queue, (q, now) => decideBatch(q, batch, others, now, answer));
  }

  async commitBatch(queue: string, batch: string): Promise<Outcome<void>> {
    return this.write(queue, (q, now) => commitBatch(q, batch, now));
  }

  async abortBatch(_queue: string, batch: string): Promise<Outcome<void>> {
    await this.opened();
    return this.writeIfExists((q, now) => abortBatch(q, batch, now)) ?? { ok: true, value: undefined };
  }

  async giveUpBatch(_queue: string, batch: string): Promise<Outcome<'committed' | 'aborted'>> {
    await this.opened();
    return this.writeIfExists((q, now) => decisionOf(q, batch, now)) ?? { ok: true, value: 'aborted' };
  }

  async batchDecision(queue: string, batch: string): Promise<Outcome<'committed' | 'aborted'>> {
    return this.write(queue, (q, now) => decisionOf(q, batch, now));
  }

  async confirmBatch(queue: string, batch: string, queues: string[]): Promise<Outcome<void>> {
    return this.write(queue, (q, now) => confirmBatch(q, batch, queues, now));
  }

  async get(_queue: string, id: string): Promise<Outcome<JobView>> {
    return this.read(id, (q, now) => viewOf(q, mustFind(q, id), now));
  }

  async cancel(_queue: string, id: string): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => cancel(q, id, now));
  }

  async activate(_queue: string, id: string): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => activate(q, id, now));
  }

  // ---- reading -----------------------------------------------------------------------------------------------------

  async awaitEnd(_queue: string, id: string, waitMs: number): Promise<Outcome<JobView>> {
    const read = () => this.read(id, (q, now) => viewOf(q, mustFind(q, id), now));
    if (!this.engine) return read();
    return awaitEnd(this.engine.q.events, id, Date.now() + waitMs, () => Date.now(), read);
  }

  async getMany(_queue: string, ids: string[]): Promise<{ jobs: JobView[]; omitted: string[] }> {
    const q = this.present();
    return q ? getMany(q, ids, Date.now()) : { jobs: [], omitted: [] };
  }

  async runningOf(_queue: string, ids: string[]): Promise<string[]> {
    const q = this.present();
    return q ? runningOf(q, ids) : [];
  }

  async list(_queue: string, request: ListRequest): Promise<Outcome<ListPage>> {
    const q = this.present();
    if (!q) return { ok: true, value: { jobs: [], total: 0, has_more: false } };
    return outcomeOf(() => list(q, request, Date.now()));
  }

  async deadLetters(_queue: string, request: DeadLetterRequest): Promise<Outcome<{ jobs: JobView[]; total: number }>> {
    const q = this.present();
    if (!q) return { ok: true, value: { jobs: [], total: 0 } };
    return outcomeOf(() => deadLetters(q, request, Date.now()));
  }

  async deadLetter(_queue: string, id: string): Promise<Outcome<JobView>> {
    return this.read(id, (q, now) => viewOfRow(q, deadLetterRow(q, id), now));
  }

  async stats(queue: string): Promise<Outcome<QueueStats>> {
    const q = this.present();
    if (!q) return { ok: true, value: emptyStats(queue, Date.now()) };
    return outcomeOf(() => stats(q, Date.now()));
  }

  async events(_queue: string, request: { types?: string[]; after?: string; limit: number }): Promise<QueueEvent[]> {
    return this.present()?.events.read(request) ?? [];
  }

  // ---- operators ---------------------------------------------------------------------------------------------------

  async redrive(_queue: string, id: string, options: RedriveOptions): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => redrive(q, id, options, now));
  }

  async deleteDeadLetter(_queue: string, id: string): Promise<Outcome<{ job_id: string }>> {
    return this.change(id, (q) => deleteDeadLetter(q, id));
  }

  async pause(queue: string): Promise<Outcome<QueueStatus>> {
    return this.write(queue, (q, now) => setPaused(q, true, now));
  }

  async resume(queue: string): Promise<Outcome<QueueStatus>> {
    return this.write(queue, (q, now) => setPaused(q, false, now));
  }

  async config(_queue: string): Promise<Outcome<QueueConfig>> {
    return { ok: true, value: this.engine?.q.own ?? {} };
  }

  async settings(_queue: string): Promise<Outcome<QueueSettings>> {
    const { engine } = this;
    if (engine) return { ok: true, value: { own: engine.q.own, effective: engine.q.settings } };
    const defaults = await directoryObject(this.env).queueDefaults();
    return { ok: true, value: { own: {}, effective: defaults?.config ?? {} } };
  }

  async configure(queue: string, change: SettingsChange): Promise<Outcome<QueueConfig>> {
    return this.write(queue, (q) => configure(q, change));
  }

  async takeDefaults(_queue: string, defaults: QueueDefaults): Promise<Outcome<void>> {
    await this.opened();
    return this.writeIfExists((q) => takeDefaults(q, defaults)) ?? { ok: true, value: undefined };
  }
}
