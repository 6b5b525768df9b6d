/** Verbs for workers that pull. */
import type { Verbs } from '../../durable/answering';
import type { Outcome } from '../../job/errors';
import { MAX_CLAIM_BYTES } from '../../job/size';
import type { QueueApi } from '../../rpc/queue';
import type { Report, Reported } from '../../rpc/workers';
import { change, held, jobs, look, noJob, none, nothing, readJob, writeIfExists } from '../access-modes';
import { failedClaim } from '../features/pull/feature';
import { checkpointOf, deleteCheckpoint, saveCheckpoint } from '../jobs/checkpoint';
import { heartbeat } from '../jobs/heartbeat';
import { leasedBy, releaseLeased } from '../jobs/leased';
import { addLog, logOf } from '../jobs/log';
import { progressOf, reportProgress } from '../jobs/progress';
import { settleReport, takeBack } from '../jobs/report';
import { signal } from '../jobs/snooze';
import { recordStep, stepsOf } from '../jobs/steps';
import type { QueueLife } from '../life';

async function reportTo(
  { engine }: QueueLife,
  reports: readonly Report[],
  mostTold: number,
): Promise<Outcome<Reported>[]> {
  return engine ? engine.pull.report(reports, mostTold) : reports.map(({ job_id }) => noJob(job_id));
}

export const WORKER_VERBS = {
  claim: (life, request) => life.claim(request),
  activeCount: look(
    (q) => q.store.leases.active.size,
    () => 0,
  ),
  withdraw: async (life, waiter) => life.withdraw(waiter),
  takeBack: writeIfExists((q, now, claims) => takeBack(q, claims, now), nothing),
  settle: change((q, now, report) => settleReport(q, report, now, Math.random)),
  async report(life, reports, mostTold = MAX_CLAIM_BYTES) {
    await life.created();
    return reportTo(life, reports, mostTold);
  },
  async reportAndClaim(life, reports, request, mostTold = MAX_CLAIM_BYTES) {
    await life.created();
    const told = reportTo(life, reports, mostTold);
    const claimed = life.claim(request).catch((error: unknown) => failedClaim('a claim that followed reports', error));
    return { told: await told, claimed: await claimed };
  },
  heartbeat: writeIfExists(
    (q, now, request) => heartbeat(q, request, now),
    () => ({ extended: [], cancelled: [], lost: [] }),
    ({ job_ids, worker_id }) => (job_ids ? jobs(job_ids) : held(worker_id)),
  ),
  reportProgress: change((q, now, request) => reportProgress(q, request, now)),
  progress: readJob((q, now, id) => progressOf(q, id, now)),
  saveCheckpoint: change((q, now, request) => saveCheckpoint(q, request, now)),
  checkpoint: readJob((q, _, id) => checkpointOf(q, id)),
  deleteCheckpoint: change((q, now, request) => deleteCheckpoint(q, request, now)),
  recordStep: change((q, now, request) => recordStep(q, request, now)),
  steps: readJob((q, _, id) => stepsOf(q, id)),
  signal: change((q, now, request) => signal(q, request, now)),
  addLog: change((q, now, request) => addLog(q, request, now)),
  log: readJob((q, _, id) => logOf(q, id)),
  leasedBy: look((q, _, workerId) => leasedBy(q, workerId), none, held),
  releaseLeased: writeIfExists((q, now, workerId) => releaseLeased(q, workerId, now, Math.random), none, held),
  silence: async (life, workerIds, silenced) => life.silence(workerIds, silenced),
} satisfies Partial<Verbs<QueueLife, QueueApi>>;
