import type { Verbs } from '../../durable/answering';
import type { AttemptName, EndReport } from '../../job/attempt/outcome';
import type { Outcome } from '../../job/errors';
import { MAX_CLAIM_BYTES } from '../../job/size';
import type { StreamPlace } from '../../job/streams';
import type {
  CheckpointRequest,
  ClaimRequest,
  HeartbeatRequest,
  LogRequest,
  ProgressRequest,
  Report,
  Reported,
  ReportedAndClaimed,
  SignalRequest,
  StepRequest,
  StreamRequest,
} from '../../rpc/workers';
import { change, held, jobs, look, noJob, none, nothing, readJob, writeIfExists } from '../access-modes';
import { failedClaim } from '../features/pull/feature';
import { heartbeat, leasedBy, releaseLeased } from '../jobs/heartbeat';
import { addLog, logOf, progressOf, reportProgress } from '../jobs/progress';
import { settleReport, takeBack } from '../jobs/report';
import { signal } from '../jobs/snooze';
import { checkpointOf, deleteCheckpoint, recordStep, saveCheckpoint, stepPartsOf, stepsOf } from '../jobs/steps';
import { streamPage, streamsOf } from '../jobs/streams';
import type { QueueLife } from '../life';

const reportTo = async (
  { engine }: QueueLife,
  reports: readonly Report[],
  mostTold: number,
): Promise<Outcome<Reported>[]> =>
  engine ? engine.pull.report(reports, mostTold) : reports.map(({ job_id }) => noJob(job_id));

export const WORKER_VERBS = {
  claim: (life, request: ClaimRequest) => life.claim(request),
  activeCount: look(
    (q) => q.store.leases.active.size,
    () => 0,
  ),
  /** The caller of this claim is gone: it takes no job any more. */
  withdraw: async (life, waiter: string) => life.withdraw(waiter),
  /**
   * Takes back claims whose jobs never reached the caller, as if they had not been made. Attempts that are over stay
   * over.
   */
  takeBack: writeIfExists((q, now, claims: AttemptName[]) => takeBack(q, claims, now), nothing),
  settle: change((q, now, report: EndReport) => settleReport(q, report, now, Math.random)),
  /**
   * Many reports, each fenced on its own: an outcome for each, in order.
   * @param mostTold bytes of steps on record that the answer may repeat; absent: 4 MiB
   */
  async report(life, reports: Report[], mostTold: number = MAX_CLAIM_BYTES): Promise<Outcome<Reported>[]> {
    await life.created();
    return reportTo(life, reports, mostTold);
  },
  /** As `report`, and a claim that does not wait: both share a transaction, in this order. */
  async reportAndClaim(
    life,
    reports: Report[],
    request: ClaimRequest,
    mostTold: number = MAX_CLAIM_BYTES,
  ): Promise<ReportedAndClaimed> {
    await life.created();
    const told = reportTo(life, reports, mostTold);
    const claimed = life.claim(request).catch((error: unknown) => failedClaim('a claim that followed reports', error));
    return { told: await told, claimed: await claimed };
  },
  heartbeat: writeIfExists(
    (q, now, request: HeartbeatRequest) => heartbeat(q, request, now),
    () => ({ extended: [], cancelled: [], lost: [] }),
    ({ job_ids, worker_id }) => (job_ids ? jobs(job_ids) : held(worker_id)),
  ),
  /** Records progress and extends the lease; a job that does not run ignores it. */
  reportProgress: change((q, now, request: ProgressRequest) => reportProgress(q, request, now)),
  progress: readJob((q, now, id: string) => progressOf(q, id, now)),
  saveCheckpoint: change((q, now, request: CheckpointRequest) => saveCheckpoint(q, request, now)),
  /** Null when the job has none. */
  checkpoint: readJob((q, _, id: string) => checkpointOf(q, id)),
  deleteCheckpoint: change((q, now, request: AttemptName) => deleteCheckpoint(q, request, now)),
  /** Records a step of the job; the first result of a name wins. */
  recordStep: change((q, now, request: StepRequest) => recordStep(q, request, now)),
  /** JSON text of what is on record of the job's steps. */
  steps: readJob((q, _, id: string) => stepsOf(q, id)),
  /** The large results of these steps. */
  stepParts: readJob((q, _, id: string, names: string[]) => stepPartsOf(q, id, names)),
  /** A signal for the job, which continues at once if it waits for it. */
  signal: change((q, now, request: SignalRequest) => signal(q, request, now)),
  /** Chunks of a stream: shown to its readers, and answered once they are written. */
  writeStream: (life, request: StreamRequest) => life.writeStream(request),
  streams: readJob((q, _, id: string) => streamsOf(q, id)),
  streamPage: readJob((q, now, id: string, name: string, after: StreamPlace | undefined, maxChars: number) =>
    streamPage(q, { id, name, after, maxChars }, now),
  ),
  addLog: change((q, now, request: LogRequest) => addLog(q, request, now)),
  log: readJob((q, _, id: string) => logOf(q, id)),
  leasedBy: look((q, _, workerId: string) => leasedBy(q, workerId), none, held),
  /** Gives the jobs of a worker that is gone to others. @returns their ids */
  releaseLeased: writeIfExists((q, now, workerId: string) => releaseLeased(q, workerId, now, Math.random), none, held),
  /** These workers are to get no jobs from now on, or may again. */
  silence: async (life, workerIds: string[], silenced: boolean) => life.silence(workerIds, silenced),
} satisfies Verbs<QueueLife>;
