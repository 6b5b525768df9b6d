/** Output streams of a job. */
import { streams } from '../../contract/streams';
import { parseReport } from '../../job/envelope/json';
import { placeText, readStreamName, readStreamPlace, readStreamSaid } from '../../job/streams';
import { type AppContext, json, unredacted } from '../context';
import { MAX_BATCH_BYTES, readBody } from '../request/body';
import { callJob, pathParam } from '../request/path';
import { textParam } from '../request/query';
import { serve } from '../route';
import { attemptIn } from '../workers/report-in-request';
import { chunkShown, followStream } from './follow';

export const streamRoutes = serve(streams, { list, show, write });

/** Characters of a page. */
const MAX_PAGE = 1024 * 1024;

async function list(c: AppContext) {
  const found = await callJob(c, (queue, id) => queue.streams(id));
  const shown = found.map(({ next: chunks, ...stream }) => ({ ...stream, chunks }));
  return unredacted(c, { job_id: pathParam(c, 'id'), streams: shown });
}

async function show(c: AppContext) {
  const name = readStreamName(pathParam(c, 'name'), 'name');
  const after = readStreamPlace(textParam(c, 'after'), 'after');
  const accepted = c.req.header('Accept') ?? '';
  if (accepted.includes('text/event-stream') || !accepted.includes('json')) return followStream(c, name, after);
  const page = await callJob(c, (queue, id) => queue.streamPage(id, name, after, MAX_PAGE));
  const { state, run = null, first, chunks, isWhole } = page;
  const n = first + chunks.length - 1;
  return unredacted(c, {
    ...{ job_id: pathParam(c, 'id'), name, state, run },
    chunks: chunks.map((text) => chunkShown(c, name, JSON.parse(text))),
    next: isWhole && state !== 'open' ? null : run === null || n < 0 ? '0' : placeText({ run, n }),
  });
}

async function write(c: AppContext) {
  const name = readStreamName(pathParam(c, 'name'), 'name');
  const body = await readBody(c, MAX_BATCH_BYTES, parseReport);
  const request = { ...attemptIn(c, body, 'stream'), ...readStreamSaid(body, name) };
  const written = await callJob(c, (queue) => queue.writeStream(request));
  return json(c, { job_id: request.job_id, name, ...written });
}
