import { withBody } from '../../across/bodies';
import type { Verbs } from '../../durable/answering';
import type { Outcome } from '../../job/errors';
import type { PutCron } from '../../rpc/cron';
import type { EnqueuedJob } from '../../rpc/receipts';
import { type CronDefinition, jobOf } from '../../schedules/definition';
import { consider, look, none, type On, write } from '../access-modes';
import type { Operation } from '../creation';
import * as crons from '../features/cron/feature';
import { mustReadCron, noSuchCron, noteTriggered, triggerHere } from '../features/cron/fire';
import type { QueueLife } from '../life';

function onCron<A extends [string, ...unknown[]], T>(
  operation: On<A, T>,
  run: (life: QueueLife, operation: Operation<T>) => Outcome<T> | Promise<Outcome<T>> | undefined,
) {
  return async (life: QueueLife, ...args: A): Promise<Outcome<T>> =>
    (await run(life, (q, now) => operation(q, now, ...args))) ?? { ok: false, error: noSuchCron(args[0]).data };
}

export const CRON_VERBS = {
  /** @returns the entry, and whether it is new. 409 `conflict` when it was changed, deleted or moved meanwhile */
  putCron: write((q, now, request: PutCron) => crons.putCron(q, request, now)),
  /** Would the queue accept the jobs of this entry? */
  checkCron: consider((q, now, definition: CronDefinition) => crons.checkCron(q, definition, now)),
  cron: onCron(
    (q, _, name: string) => crons.readCron(q, name),
    (life, operation) => life.read(operation),
  ),
  cronSummaries: look((q) => q.store.crons.summaries(), none),
  /** Those of these entries that the queue has; `omitted` are there too, but did not fit into one message. */
  cronsNamed: look(
    (q, _, names: string[]) => crons.cronsNamed(q, names),
    () => ({ crons: [], omitted: [] }),
  ),
  /** Null when it has none of this name. */
  removeCron: write((q, now, name: string, version: number) => crons.removeCron(q, name, version, now)),
  enableCron: onCron(
    (q, now, name: string, enabled: boolean) => crons.enableCron(q, name, enabled, now),
    (life, operation) => life.writeIfExists(operation),
  ),
  /** Enqueues a job of the entry now, whatever its schedule, overlap policy and limits say. */
  async triggerCron(life, name: string): Promise<Outcome<EnqueuedJob>> {
    const made = life.read((q, now) => jobOf(mustReadCron(q, name).definition, { now }));
    if (!made) return { ok: false, error: noSuchCron(name).data };
    if (!made.ok) return made;
    const job = made.value;
    if (job.unique?.scope !== 'global') {
      const triggered = await life.write((q, now) => triggerHere(q, name, job, now));
      return triggered.ok ? { ok: true, value: withBody(job, triggered.value) } : triggered;
    }
    const outcome = await life.others.enqueueAcross(job);
    if (outcome.ok) await life.write((q, now) => noteTriggered(q, name, outcome.value, now));
    return outcome;
  },
  cronHistory: onCron(
    (q, now, name: string, limit: number) => crons.cronHistory(q, name, limit, now),
    (life, operation) => life.read(operation),
  ),
  /**
   * Stops an entry that goes to another queue from firing, and keeps it until {@link confirmCron}.
   * @returns what that queue is to take over; null when there is nothing
   */
  handOffCron: write((q, now, definition: CronDefinition, version: number) =>
    crons.handOffCron(q, definition, version, now),
  ),
  /** Another queue has taken over. */
  confirmCron: write((q, _, name: string, version: number) => crons.confirmCron(q, name, version)),
} satisfies Verbs<QueueLife>;
