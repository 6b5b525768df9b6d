/** Messages of a handler while it runs, on a call with a live connection: handled like a worker's reports over HTTP. */
import { readEnd, readSignalRights, signalUrl } from '../../../access/token';
import { Telling } from '../../../across/receipts';
import type { RunMessage } from '../../../dispatch/run-messages';
import type { Enqueuer } from '../../../job/attempt/outcome';
import type { Parent } from '../../../job/envelope/children';
import { conflict } from '../../../job/errors';
import type { Host } from '../../feature';
import type { Claimed } from '../../jobs/claim';
import { tellLog } from '../../jobs/log';
import { noteProgress } from '../../jobs/progress';
import { noteStep, recall } from '../../jobs/steps';
import { writeStream } from '../../jobs/streams';
import type { Active } from '../../store/active';
import type { Stored } from '../../store/parts';
import { childrenOf } from './children';

export interface Speaker {
  /** While this claim runs nothing changes the job's row. */
  claimed: Pick<Claimed, 'row' | 'active'>;
  delivery: string;
  parent: Parent;
  target: Enqueuer;
}

/**
 * Handles a message. Messages that arrive together share a transaction.
 * @returns the answer to the handler, once it is durable
 * @throws {ApiError} 409 when the attempt is over; 413; the reasons to refuse an enqueue
 */
export async function hear(host: Host, speaker: Speaker, message: RunMessage): Promise<unknown> {
  const { q } = host;
  const { row } = speaker.claimed;
  switch (message.kind) {
    case 'log': {
      const active = mustRun(q, speaker);
      // Kept at once, so that an attempt that ends before the transaction has its last lines.
      q.observed.logs.add(active, message.lines);
      return host.write((now) => tellLog(q, row, active, message.lines.length, now));
    }
    case 'stream':
      return writeStream(host, row, mustRun(q, speaker), message.said);
    case 'enqueue':
      mustRun(q, speaker);
      return enqueue(host, speaker, message.children);
    case 'signal_url': {
      mustRun(q, speaker);
      const rights = readSignalRights({ ...message.asked, job: speaker.parent.id });
      const end = readEnd(message.asked.expires_in, 'tocsin:signal', host.now());
      return signalUrl(q.config.variables.tokens, rights, { end, jti: crypto.randomUUID() });
    }
    case 'progress':
      return asWhoRuns(host, speaker, (active, now) => noteProgress(q, row, active, message, now));
    case 'checkpoint':
      return asWhoRuns(host, speaker, (_, now) => {
        q.store.checkpoints.save(row.key, message.content, now);
      });
    case 'recall':
      return asWhoRuns(host, speaker, () => recall(q, row.key, message.name));
    case 'step':
      return asWhoRuns(host, speaker, (_, now) => {
        // The first result wins: the handler receives it.
        return noteStep(q, row, message, now);
      });
  }
}

/** Runs in the next shared transaction, if the attempt still runs then. */
function asWhoRuns<T>(host: Host, speaker: Speaker, act: (active: Active, now: number) => T): Promise<T> {
  host.about(() => [speaker.claimed.row.key]);
  return host.write((now) => act(mustRun(host.q, speaker), now));
}

/** @throws {ApiError} 409 */
function mustRun(q: Stored, { claimed, delivery }: Speaker): Active {
  const active = q.store.leases.active.get(claimed.row.key);
  if (active?.claim === claimed.active.claim) return active;
  throw conflict(`Delivery ${delivery} is over.`, { delivery_id: delivery, expected_state: 'active' });
}

async function enqueue({ q, others, now }: Host, { target, parent }: Speaker, children: unknown): Promise<unknown> {
  const jobs = await others.enqueue(await childrenOf(target, children, parent, now()));
  const telling = new Telling(q.config.variables.retryVariables);
  return jobs.map((view) => ({ ...telling.envelope(view), ...(view.deduplicated && { deduplicated: true }) }));
}
