import { exportedCron } from '../../across/import';
import { exports } from '../../contract/export';
import { EXPORT_VERSION, PartWriter } from '../../export/file';
import { notFound, refusal, unwrap } from '../../job/errors';
import { own } from '../../job/own';
import type { ExportPage, ExportStart } from '../../rpc/export';
import type { QueueApi } from '../../rpc/queue';
import { queueObject } from '../../rpc/stubs';
import { type AppContext, media } from '../context';
import { renderQueueConfig } from '../queues/config';
import { renderGroupOverride } from '../queues/groups';
import { queueNameIn } from '../request/path';
import { booleanParam } from '../request/query';
import { serve } from '../route';
import { importQueue } from './import';

const TYPE = 'application/x-ndjson';

export const adminExportRoutes = serve(exports, { read: exportQueue, write: importQueue });

/** Schedules that are asked for together. */
const CRONS = 100;

async function exportQueue(c: AppContext) {
  const name = queueNameIn(c);
  const ended = booleanParam(c, 'ended') ?? false;
  if (c.get('redact')) {
    const message = 'An export is not redacted: it needs a key that may see everything.';
    throw refusal(403, 'forbidden', message, { details: { required_scope: 'data:reveal' } });
  }
  const queue = queueObject(c.env, name);
  const start = unwrap(await queue.beginExport());
  if (!start) throw notFound('queue', name);
  if (c.req.method === 'HEAD') return media(c, null, TYPE);
  const texts = fileOf(queue, name, start, ended);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await texts.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await texts.return(undefined);
    },
  });
  return media(c, body, TYPE, { 'Cache-Control': 'no-store, no-transform' });
}

/** The text of a file. An error in it ends the connection: a file without its last line is refused. */
async function* fileOf(queue: QueueApi, name: string, start: ExportStart, ended: boolean): AsyncGenerator<string> {
  const writer = new PartWriter({ tocsin: 'export', version: EXPORT_VERSION, queue: name, ended });
  const jobs: Record<string, number> = {};
  const notKept: Record<string, number> = start.undecided > 0 ? { undecided_batch: start.undecided } : {};
  const groups = Object.entries(start.groups).map(([group, override]) => [group, renderGroupOverride(override)]);
  const settings = { mode: start.mode, config: renderQueueConfig(start.config), groups: Object.fromEntries(groups) };
  yield writer.begin() + (await writer.add(JSON.stringify({ settings })));
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: ExportPage = unwrap(await queue.exportPage({ after, until: start.until, ended }));
    const { lines } = page;
    add(jobs, page.jobs);
    add(notKept, page.not_kept);
    let text = '';
    for (let from = 0, at = lines.indexOf('\n'); at >= 0; at = lines.indexOf('\n', from)) {
      text += await writer.add(lines.slice(from, at));
      from = at + 1;
    }
    if (text !== '') yield text;
    after = page.next;
  }
  yield* schedulesOf(queue, writer);
  yield await writer.end(jobs, notKept);
}

/** The last ones, so that none of them fires before the jobs are there. */
async function* schedulesOf(queue: QueueApi, writer: PartWriter): AsyncGenerator<string> {
  const names = (await queue.cronSummaries()).map(({ name }) => name).sort();
  for (let at = 0; at < names.length; at += CRONS) {
    for (let wanted = names.slice(at, at + CRONS); wanted.length > 0; ) {
      const { crons, omitted } = await queue.cronsNamed(wanted);
      const found = crons.map(({ definition }) => definition).sort((a, b) => (a.name < b.name ? -1 : 1));
      for (const definition of found) {
        const text = await writer.add(JSON.stringify({ schedule: exportedCron(definition) }));
        if (text !== '') yield text;
      }
      wanted = omitted;
    }
  }
}

function add(counts: Record<string, number>, more: Record<string, number>): void {
  for (const [name, n] of Object.entries(more)) counts[name] = (own(counts, name) ?? 0) + n;
}
