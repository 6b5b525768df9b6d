/** The queue object's methods about cron entries; see `manage.ts` and `fire.ts` for what they do. */
import { type CronDefinition, jobOf } from '../../job/cron/definition';
import { type Outcome, outcomeOf } from '../../job/errors';
import type { EnqueuedJob } from '../api';
import { QueueHost } from '../host';
import type { CronExecutionView, CronQueueApi, CronSkip, CronSummary, CronView, PutCron } from './api';
import { mustReadCron, noSuchCron, noteTriggered, triggerHere } from './fire';
import {
  checkCron,
  confirmCron,
  cronHistory,
  cronsNamed,
  enableCron,
  handOffCron,
  putCron,
  readCron,
  removeCron,
} from './manage';

export abstract class CronObject extends QueueHost implements CronQueueApi {
  async putCron(queue: string, request: PutCron): Promise<Outcome<CronView & { created: boolean }>> {
    const job = () => jobOf(request.definition, { now: Date.now() });
    const refused = request.run ? undefined : await this.refusal(queue, [job()]);
    return refused ?? this.write(queue, (q, now) => putCron(q, request, now));
  }

  async checkCron(queue: string, definition: CronDefinition): Promise<Outcome<void>> {
    const refused = await this.refusal(queue, [jobOf(definition, { now: Date.now() })]);
    return refused ?? this.writeIfExists((q, now) => checkCron(q, definition, now)) ?? { ok: true, value: undefined };
  }

  async cron(_queue: string, name: string): Promise<Outcome<CronView>> {
    const q = this.present();
    return q ? outcomeOf(() => readCron(q, name)) : missing(name);
  }

  async cronSummaries(_queue: string): Promise<CronSummary[]> {
    return this.present()?.crons.summaries() ?? [];
  }

  async cronsNamed(_queue: string, names: string[]): Promise<{ crons: CronView[]; omitted: string[] }> {
    const q = this.present();
    return q ? cronsNamed(q, names) : { crons: [], omitted: [] };
  }

  async removeCron(queue: string, name: string, version: number): Promise<Outcome<CronView | null>> {
    return this.write(queue, (q, now) => removeCron(q, name, version, now));
  }

  async enableCron(_queue: string, name: string, enabled: boolean): Promise<Outcome<CronView>> {
    return this.writeIfExists((q, now) => enableCron(q, name, enabled, now)) ?? missing(name);
  }

  async triggerCron(queue: string, name: string): Promise<Outcome<EnqueuedJob>> {
    const q = this.present();
    if (!q) return missing(name);
    const made = outcomeOf(() => jobOf(mustReadCron(q, name).definition, { now: Date.now() }));
    if (!made.ok) return made;
    const job = made.value;
    if (job.unique?.scope !== 'global') return this.write(queue, (state, now) => triggerHere(state, name, job, now));
    const outcome = await this.enqueueAcross(queue, job);
    if (outcome.ok) await this.write(queue, (state, now) => noteTriggered(state, name, outcome.value, now));
    return outcome;
  }

  async cronHistory(
    _queue: string,
    name: string,
    limit: number,
  ): Promise<Outcome<{ executions: CronExecutionView[]; skipped: CronSkip[] }>> {
    const q = this.present();
    return q ? outcomeOf(() => cronHistory(q, name, limit, Date.now())) : missing(name);
  }

  async handOffCron(queue: string, definition: CronDefinition, version: number): Promise<Outcome<CronView | null>> {
    return this.write(queue, (q, now) => handOffCron(q, definition, version, now));
  }

  async confirmCron(queue: string, name: string, version: number): Promise<Outcome<void>> {
    return this.write(queue, (q, now) => confirmCron(q, name, version, now));
  }
}

function missing(name: string): Outcome<never> {
  return { ok: false, error: noSuchCron(name).data };
}
