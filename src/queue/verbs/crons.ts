/** The cron entries of a queue. */
import { withBody } from '../../across/bodies';
import type { Verbs } from '../../durable/answering';
import { jobOf } from '../../job/cron/definition';
import type { Outcome } from '../../job/errors';
import type { QueueApi } from '../../rpc/queue';
import { consider, look, none, type On, write } from '../access-modes';
import type { Operation } from '../creation';
import { mustReadCron, noSuchCron, noteTriggered, triggerHere } from '../features/cron/fire';
import * as crons from '../features/cron/manage';
import type { QueueLife } from '../life';

/** About a cron entry of this queue. */
function onCron<A extends [string, ...unknown[]], T>(
  run: (life: QueueLife, operation: Operation<T>) => Outcome<T> | Promise<Outcome<T>> | undefined,
  operation: On<A, T>,
) {
  return async (life: QueueLife, ...args: A): Promise<Outcome<T>> =>
    (await run(life, (q, now) => operation(q, now, ...args))) ?? { ok: false, error: noSuchCron(args[0]).data };
}

export const CRON_VERBS = {
  putCron: write((q, now, request) => crons.putCron(q, request, now)),
  checkCron: consider((q, now, definition) => crons.checkCron(q, definition, now)),
  cron: onCron(
    (life, operation) => life.read(operation),
    (q, _, name) => crons.readCron(q, name),
  ),
  cronSummaries: look((q) => q.store.crons.summaries(), none),
  cronsNamed: look(
    (q, _, names) => crons.cronsNamed(q, names),
    () => ({ crons: [], omitted: [] }),
  ),
  removeCron: write((q, now, name, version) => crons.removeCron(q, name, version, now)),
  enableCron: onCron(
    (life, operation) => life.writeIfExists(operation),
    (q, now, name, enabled) => crons.enableCron(q, name, enabled, now),
  ),
  async triggerCron(life, name) {
    const made = life.read((q, now) => jobOf(mustReadCron(q, name).definition, { now }));
    if (!made) return { ok: false, error: noSuchCron(name).data };
    if (!made.ok) return made;
    const job = made.value;
    if (job.unique?.scope !== 'global') {
      const triggered = await life.write((q, now) => triggerHere(q, name, job, now));
      return triggered.ok ? { ok: true, value: withBody(job, triggered.value) } : triggered;
    }
    const outcome = await life.enqueueAcross(job);
    if (outcome.ok) await life.write((q, now) => noteTriggered(q, name, outcome.value, now));
    return outcome;
  },
  cronHistory: onCron(
    (life, operation) => life.read(operation),
    (q, now, name, limit) => crons.cronHistory(q, name, limit, now),
  ),
  handOffCron: write((q, now, definition, version) => crons.handOffCron(q, definition, version, now)),
  confirmCron: write((q, _, name, version) => crons.confirmCron(q, name, version)),
} satisfies Partial<Verbs<QueueLife, QueueApi>>;
