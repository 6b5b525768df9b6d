/** What happened to a job: its failed attempts, and its whole story. */
import { badCursor, decodeCursor, encodeCursor } from '../../across/paging';
import { history as contract, type JobHistoryEvent } from '../../contract/history';
import { unsupported } from '../../job/errors';
import { failedAttempts, type HistoryEvent, historyOfJob } from '../../job/history';
import { formatInstant, withWrittenTimes } from '../../job/time';
import { also } from '../../ojs/names';
import { type AppContext, json } from '../context';
import { envelopeOf } from '../jobs/render';
import { pagination, readPaging } from '../request/pagination';
import { callJob } from '../request/path';
import { serve } from '../route';

export const historyRoutes = serve(contract, {
  retries,
  show: history,
  forget: refuseToForget,
  showOfEvents: history,
  forgetOfEvents: refuseToForget,
});

function refuseToForget(): never {
  throw unsupported('The history is part of the job: delete the job to delete it.', { field: 'history' });
}

/** The attempts that failed, and the policy that decides what follows. */
async function retries(c: AppContext) {
  const view = await callJob(c, (queue, id) => queue.get(id));
  return json(c, {
    job_id: view.record.id,
    retries: failedAttempts(view.record).map((attempt) =>
      withWrittenTimes({ started_at: null, next_retry_at: null, ...attempt }),
    ),
    policy: envelopeOf(c, view).retry_effective ?? {},
  });
}

/** The state of a job after events that do not name it. */
const ENDED: Readonly<Record<string, string>> = { 'job.cancelled': 'cancelled', 'job.discarded': 'discarded' };

async function history(c: AppContext) {
  const { record } = await callJob(c, (queue, id) => queue.get(id));
  const paging = readPaging(c);
  const known = historyOfJob(record);
  const states = statesAfter(known);
  const events = known.map(
    ({ event_type, at, actor, data }, index): JobHistoryEvent =>
      also('JobHistoryEvent', {
        id: `evt_${record.id}-${index}`,
        job_id: record.id,
        event_type,
        state: states[index] as string,
        timestamp: formatInstant(at),
        actor,
        data,
      }),
  );
  const start = paging.offset + (paging.cursor === undefined ? 0 : readPosition(paging.cursor));
  const page = events.slice(start, start + paging.limit);
  const hasMore = events.length > start + page.length;
  const nextCursor = hasMore ? encodeCursor({ position: start + page.length }) : null;
  const total = events.length;
  return json(c, {
    events: page,
    total,
    next_cursor: nextCursor,
    pagination: pagination(paging, { total, hasMore, nextCursor }),
  });
}

function statesAfter(events: readonly HistoryEvent[]): unknown[] {
  const states: unknown[] = [];
  for (const { event_type, data } of events) states.push(data.to ?? ENDED[event_type] ?? states.at(-1) ?? 'available');
  return states;
}

function readPosition(cursor: string): number {
  const { position } = decodeCursor(cursor);
  if (!Number.isInteger(position) || (position as number) < 0) throw badCursor();
  return position as number;
}
